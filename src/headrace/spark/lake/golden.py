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

from headrace.spark.lake.delta import File, Folder, Snapshot
from headrace.spark.lake.gold import window
from headrace.spark.lake.silver import ATTEMPTS_TABLE, BATCH, JOBS_TABLE
from headrace.spark.lake.table import Sources, Table
from headrace.spark.lake.views import frame_of, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREADS = 3
"""Tables computed at once: each leaves the cores idle while Spark plans it."""


class Refreshed(NamedTuple):
    table: Table
    rows: int
    """Written, the ones that stayed as they were in a rewritten day included."""


class SilverFrames:
    """Silver at one moment, as gold is computed from it."""

    def __init__(self, spark: SparkSession, jobs: Snapshot, attempts: Snapshot) -> None:
        self._spark = spark
        self._jobs = jobs
        self._attempts = attempts

    def describe(self, step: str) -> None:
        """The jobs that this thread starts from now on, as Spark's own page names them."""
        self._spark.sparkContext.setJobDescription(step)

    def since(self, moment: datetime | None) -> Sources:
        """What a table needs whose hours from this one on are computed anew.

        Files that cannot matter are left out by the statistics of the snapshot: Spark would open each.
        """
        jobs = window.files_since(self._jobs.files, *window.JOB_SPAN, moment)
        attempts = window.files_since(self._attempts.files, *window.ATTEMPT_SPAN, moment)
        return Sources(
            jobs=frame_of(self._spark, JOBS_TABLE, self._jobs, jobs),
            attempts=frame_of(self._spark, ATTEMPTS_TABLE, self._attempts, attempts),
            since=moment,
            all_jobs=frame_of(self._spark, JOBS_TABLE, self._jobs),
        )


class Gold:
    """All gold tables of a lake."""

    def __init__(self, lake: Path, tables: Sequence[Table]) -> None:
        self.tables = tuple(tables)
        self._lake = lake

    def folder(self, table: Table) -> Folder:
        schema = to_arrow_schema(schema_of(table), timezone="UTC")
        return Folder(self._lake / table.name, schema, table.partition_by)

    def mend_statistics(self) -> None:
        """Also of tables that this run has no reason to write."""
        for table in self.tables:
            folder = self.folder(table)
            if folder.exists:
                folder.mend_statistics()

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
        silver: SilverFrames,
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
            silver.describe(f"headrace: {table.name}")
            computed = table.transform(silver.since(start)).toArrow()
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
    folder.commit(snapshot, folder.write(rows), gone, marks=marks)
    return int(rows.num_rows)


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
