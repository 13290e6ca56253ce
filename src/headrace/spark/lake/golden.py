"""Gold kept up to date: every table computed anew from the first hour that changed, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.spark.lake.delta import File, Folder
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

    def refresh(
        self, jobs: DataFrame, attempts: DataFrame, since: datetime | None, batch: int
    ) -> list[Refreshed]:
        """Compute all rows from that moment's hour on (None: all) and put them in place of the old.

        A table that is new, or has grown a column, is computed whole. Done again it gives the same.
        """
        hour = None if since is None else _hour(since)

        def one(table: Table) -> Refreshed:
            folder = self.folder(table)
            start = None if folder.prepare() else hour
            assert table.transform is not None
            computed = table.transform(Sources(jobs, attempts, start)).toArrow()
            rows = computed.select(folder.schema.names).cast(folder.schema)
            return Refreshed(table, _replace(folder, rows, start, batch))

        with ThreadPoolExecutor(THREADS, thread_name_prefix="headrace-gold") as pool:
            return list(pool.map(one, self.tables))


def _replace(folder: Folder, rows: pa.Table, since: datetime | None, batch: int) -> int:
    snapshot = folder.snapshot()
    gone: list[File] = list(snapshot.files)
    if since is not None:
        gone = [file for file in gone if file.partition["day"] >= since.date()]
        edge = [file for file in gone if file.partition["day"] == since.date()]
        kept = snapshot.read(where=pc.field("hour") < pa.scalar(since), files=edge)
        rows = pa.concat_tables([kept, rows])
    if gone or rows.num_rows:
        folder.commit(folder.write(rows), gone, marks={"headrace batch": batch})
    return int(rows.num_rows)


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
