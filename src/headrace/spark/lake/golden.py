"""Gold kept up to date: every table computed anew from the first hour that changed, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.spark.lake.delta import File, Folder
from headrace.spark.lake.silver import BATCH
from headrace.spark.lake.table import Sources, Table
from headrace.spark.lake.views import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

THREADS = 3
"""Tables computed at once: each leaves the cores idle while Spark plans it."""


class Refreshed(NamedTuple):
    table: Table
    rows: int
    """Written, the ones that stayed as they were in a rewritten day included."""


class Gold:
    """All gold tables of a lake."""

    def __init__(self, lake: Path, tables: Sequence[Table]) -> None:
        self.tables = tuple(tables)
        self._lake = lake

    def folder(self, table: Table) -> Folder:
        schema = to_arrow_schema(schema_of(table), timezone="UTC")
        return Folder(self._lake / table.name, schema, table.partition_by)

    def starts(
        self, touched: Mapping[int, datetime], batch: int, *, everything: bool
    ) -> dict[Table, datetime | None]:
        """The tables that silver's batches up to this one leave to be computed, and since when each.

        None: whole. `touched`: the moments that batches have changed, as far as somebody remembers: what
        a table has missed and nobody does, because it was left out for a while, makes it whole.
        """
        first = min(touched.values(), default=None)
        found: dict[Table, datetime | None] = {}
        for table in self.tables:
            missed = set(range(self._mark(table) + 1, batch + 1)) - touched.keys()
            if missed or everything:
                found[table] = None
            elif first is not None:
                found[table] = first
        return found

    def _mark(self, table: Table) -> int:
        """The batch of silver that it was last computed from. Before the first, if it is not there."""
        folder = self.folder(table)
        return folder.snapshot().mark(BATCH) if folder.exists else -2

    def refresh(
        self,
        jobs: DataFrame,
        attempts: DataFrame,
        starts: Mapping[Table, datetime | None],
        batch: int,
        tell: Callable[[int], None],
    ) -> list[Refreshed]:
        """Compute each table from its moment's hour on (None: all) and put the rows in place of the old.

        A table that is new, or has grown a column, is computed whole. Done again it gives the same. `tell`
        is told how many are done.
        """

        def one(table: Table) -> Refreshed:
            folder = self.folder(table)
            since = starts[table]
            start = None if folder.prepare() or since is None else _hour(since)
            assert table.transform is not None
            computed = table.transform(Sources(jobs, attempts, start)).toArrow()
            rows = computed.select(folder.schema.names).cast(folder.schema)
            return Refreshed(table, _replace(folder, rows, start, batch))

        with ThreadPoolExecutor(THREADS, thread_name_prefix="headrace-gold") as pool:
            refreshed: list[Refreshed] = []
            for table in pool.map(one, starts):
                refreshed.append(table)
                tell(len(refreshed))
            return refreshed


def _replace(folder: Folder, rows: pa.Table, since: datetime | None, batch: int) -> int:
    snapshot = folder.snapshot()
    gone: list[File] = list(snapshot.files)
    if since is not None:
        gone = [file for file in gone if file.partition["day"] >= since.date()]
        edge = [file for file in gone if file.partition["day"] == since.date()]
        kept = snapshot.read(where=pc.field("hour") < pa.scalar(since), files=edge)
        rows = pa.concat_tables([kept, rows])
    marks = {BATCH: batch} if batch >= 0 else {}
    folder.commit(folder.write(rows), gone, marks=marks)
    return int(rows.num_rows)


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
