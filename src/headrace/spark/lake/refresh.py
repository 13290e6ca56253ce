"""Gold kept up to date: of every table the hours that changed, computed by Spark and written by its tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.spark.lake import hours as changed
from headrace.spark.lake.bronze import BATCH, HELD_BYTES_MAX
from headrace.spark.lake.delta import Folder, Snapshot
from headrace.spark.lake.gold import window
from headrace.spark.lake.hours import Hours, Span
from headrace.spark.lake.intake import check_seen
from headrace.spark.lake.silver import ATTEMPTS_TABLE, JOBS_TABLE, LEVELS_TABLE, SILVER
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import Sources, Table, folder_of
from headrace.spark.lake.tasks import ANSWER
from headrace.spark.lake.views import frame_of, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 3
"""Tables computed at once: each leaves the cores idle while Spark plans it."""
LITTLE_ROWS = 300_000
"""Up to so many rows of silver, compiling a query takes longer than running it uncompiled."""

_LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    # The files of a snapshot are known: looking each up takes less time than a job that does.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}


def session_for(spark: SparkSession, rows: int) -> SparkSession:
    """A session beside the given one, with views and settings of its own, for tables with so many rows."""
    made = spark.newSession()
    settings = _ALWAYS | (_LITTLE if rows <= LITTLE_ROWS else {})
    for name, value in settings.items():
        made.conf.set(name, value)
    return made


class SilverFrames:
    """Silver at one moment, as gold is computed from it."""

    def __init__(
        self, spark: SparkSession, silver: Mapping[Table, Snapshot], parallelism: int
    ) -> None:
        self.spark = spark
        rows = silver[JOBS_TABLE].rows
        self.writers = 1 if rows <= LITTLE_ROWS else parallelism
        """Tasks that write the files of a table."""
        self._silver = silver

    def across(self, asked: Hours | None) -> Sources:
        """What a table needs whose rows of these hours are computed anew.

        Files that cannot matter are left out by the statistics of the snapshot: Spark would open each.
        """
        jobs, attempts = self._silver[JOBS_TABLE], self._silver[ATTEMPTS_TABLE]
        return Sources(
            jobs=frame_of(
                self.spark,
                JOBS_TABLE,
                jobs,
                window.files_across(jobs.files, *window.JOB_SPAN, asked),
            ),
            attempts=frame_of(
                self.spark,
                ATTEMPTS_TABLE,
                attempts,
                window.files_across(attempts.files, *window.ATTEMPT_SPAN, asked),
            ),
            levels=frame_of(self.spark, LEVELS_TABLE, self._silver[LEVELS_TABLE]),
            hours=asked,
            all_jobs=frame_of(self.spark, JOBS_TABLE, jobs),
        )


class Gold:
    """All gold tables of a lake."""

    def __init__(self, lake: Storage, tables: Sequence[Table]) -> None:
        self.tables = tuple(tables)
        self._lake = lake

    def folder(self, table: Table) -> Folder:
        return folder_of(self._lake, table, to_arrow_schema(schema_of(table), timezone="UTC"))

    def due(
        self, silver: Mapping[Table, Snapshot], batch: int, *, everything: bool
    ) -> dict[Table, Hours | None]:
        """The tables that silver's batches up to this one leave to be computed, and which hours of each.

        None: whole. So are those that missed a batch of which silver's log does not tell any more.
        """
        found: dict[Table, Hours | None] = {}
        for table in self.tables:
            mark = self._mark(table)
            if everything or mark < -1:
                found[table] = None
            elif mark < batch:
                spans = changed_since(silver, mark, batch)
                if spans is None:
                    found[table] = None
                elif hours := changed.union(
                    span for kind in table.changes_with for span in spans.get(kind, ())
                ):
                    found[table] = hours
        return found

    def _mark(self, table: Table) -> int:
        """The batch of silver that it was last computed from. Before the first, if it is not there."""
        folder = self.folder(table)
        return folder.snapshot().mark(BATCH) if folder.exists else -2

    def refresh(
        self,
        silver: SilverFrames,
        due: Mapping[Table, Hours | None],
        batch: int,
        tell: Callable[[int], None],
    ) -> None:
        """Compute the hours of each table (None: all) and put the rows in place of the old.

        A table that is new, or has grown a column, is computed whole. Done again it gives the same. `tell`
        is told how many are done.
        """

        def one(table: Table) -> None:
            folder = self.folder(table)
            asked = None if folder.prepare() else due[table]
            silver.spark.sparkContext.setJobDescription(f"headrace: {table.name}")
            self._replace(silver, table, folder, asked, batch)

        with ThreadPoolExecutor(THREADS, thread_name_prefix="headrace-gold") as pool:
            for done, _ in enumerate(pool.map(one, due), start=1):
                tell(done)

    def settle(self, batch: int) -> None:
        """Note of tables that nothing has changed that they hold all batches up to this one."""
        for table in self.tables:
            folder = self.folder(table)
            if folder.exists:
                base = folder.snapshot()
                if base.mark(BATCH) < batch:
                    folder.commit(base, (), marks={BATCH: batch})

    def _replace(
        self, silver: SilverFrames, table: Table, folder: Folder, asked: Hours | None, batch: int
    ) -> None:
        base = folder.snapshot()
        assert table.transform is not None
        rows = table.transform(silver.across(asked)).select(*folder.schema.names)
        gone = list(base.files)
        if asked is not None:
            gone = [file for file in gone if asked.touch_day(file.partition["day"])]
            stay = frame_of(silver.spark, table, base, gone).where(~window.within("hour", asked))
            rows = rows.unionByName(stay.select(*folder.schema.names)) if gone else rows
        actions = _written(rows.coalesce(silver.writers), folder)
        check_seen(folder.storage, [action.path for action in actions])
        marks = {BATCH: batch} if batch >= 0 else {}
        folder.commit(base, actions, gone, marks=marks)


def changed_since(
    silver: Mapping[Table, Snapshot], mark: int, batch: int
) -> dict[str, list[Span]] | None:
    """The hours that silver's batches behind `mark` have changed. None: its log does not tell of all."""
    spans: dict[str, list[Span]] = {}
    for table in SILVER:
        missed = set(range(mark + 1, batch + 1))
        for note in silver[table].notes(2 * len(missed) + _OTHERS):
            number = note["batch"]
            if number in missed:
                if note["hours"] is None:
                    return None
                missed.discard(number)
                for kind, noted in note["hours"].items():
                    spans.setdefault(kind, []).extend(changed.decoded(noted))
            if number <= mark or not missed:
                break
        if missed:
            return None
    return spans


_OTHERS = 20
"""Commits that bring no batch: files that were joined, columns that were added."""


def _written(rows: DataFrame, folder: Folder) -> list[AddAction]:
    """The rows as files of the table, which Spark's tasks have written."""
    told = rows.mapInArrow(_writing(folder), ANSWER).collect()
    return [action for row in told for action in pickle.loads(row.answer)]  # noqa: S301 - from our own tasks


def _writing(folder: Folder) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place, part in enumerate(_in_parts(batches)):
            rows = pa.Table.from_batches(part).select(folder.schema.names).cast(folder.schema)
            told: Any = pickle.dumps(folder.write(rows))
            yield pa.RecordBatch.from_pydict(
                {"place": pa.array([place], pa.int64()), "answer": pa.array([told], pa.binary())}
            )

    return write


def _in_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    part: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            part.append(batch)
        if sum(one.nbytes for one in part) >= HELD_BYTES_MAX:
            yield part
            part = []
    if part:
        yield part
