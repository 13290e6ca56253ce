"""The lake against the store: nothing of its log is missing, and folding it gives the jobs the store has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.lake.checks import Offence, offence
from headrace.spark.lake.delta import Snapshot
from headrace.spark.lake.store import Store
from headrace.spark.lake.table import SAMPLE_ROWS, Check
from headrace.spark.schemas import EVENTS, JOBS
from headrace.spark.source.extract.base import Pieces
from headrace.spark.source.extract.choice import extract_of
from headrace.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GET_JOBS_MAX = 20_000
"""Up to so many touched jobs are asked for by id; beyond that, the store's whole table is read."""
_GET_AT_ONCE = 2_000

_ALWAYS = ("state", "attempt", "failures", "losses", "run_at", "updated_at")
_WHOLE_LIVES = ("created_at", "started_at", "finalized_at", "assignee", "assigned_at")
"""These come from events that a trimmed log may no longer hold."""
_COMPARED = pa.schema([JOBS.field(name) for name in ("id", "version", *_ALWAYS, *_WHOLE_LIVES)])
_SEQ = pa.schema([EVENTS.field("seq")])
_COLUMNS = [field for field in _COMPARED if field.name not in ("id", "version")]

_LATEST = """SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY job_id ORDER BY last_seq DESC) AS nth
    FROM silver_jobs WHERE last_seq >= :seq) WHERE nth = 1"""

AGREEMENT = Check(
    "folding its events gives the store's job",
    # Where the store has moved on since, the version tells; where it has used the id again, the creation
    # does (of a life whose beginning is gone: its last change).
    "SELECT silver.job_id, silver.born_seq, silver.version, "  # noqa: S608 - our own words
    + ", ".join(f"silver.{field.name}, stored.{field.name}" for field in _COLUMNS)
    + f" FROM ({_LATEST}) silver JOIN store_jobs stored"
    " ON stored.id = silver.job_id AND stored.version = silver.version"
    " AND if(silver.born_seq IS NULL, silver.updated_at = stored.updated_at,"
    " silver.created_at = stored.created_at)"
    " WHERE NOT ("
    + " AND ".join(f"silver.{name} <=> stored.{name}" for name in _ALWAYS)
    # Each change is an event: where some are missing, the log was trimmed before the lake held them.
    + " AND (size(silver.timeline) < silver.version OR ("
    + " AND ".join(f"silver.{name} <=> stored.{name}" for name in _WHOLE_LIVES)
    + ")))",
)


def missing_events(
    spark: SparkSession, url: str, after: str, upto: str, bronze: Snapshot
) -> list[Offence]:
    """Events that the store's log holds between two cursors and bronze does not."""
    if not upto or after == upto:
        return []
    told = (
        spark.range(1, numPartitions=1)
        .mapInArrow(_seqs(url, after, upto), "seq long")
        .toArrow()["seq"]
    )
    if not len(told):
        return []
    bounds = pc.min_max(told).as_py()
    files = [file for file in bronze.files if file.may_hold("seq", bounds["min"], bounds["max"])]
    held = bronze.read(["seq"], files=files)["seq"].to_numpy()
    lacking = np.setdiff1d(told.to_numpy(), held)
    if not len(lacking):
        return []
    sample = tuple(f"seq {seq}" for seq in lacking[:SAMPLE_ROWS])
    return [Offence("bronze/events", "it holds every event of the log", len(lacking), sample)]


def _seqs(
    url: str, after: str, upto: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The seqs between two cursors, to be read in a task, never here.

    This process has the file of a SQLite store open by Python's own library: a second library in the same
    process would undo its locks.
    """

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            extract = extract_of(SourceOptions.parse({"url": url, "table": "events"}))
            begin = after or extract.log_start()
            for piece in extract.cut_log(begin, upto, Pieces(None, 500_000)):
                yield from extract.rows("events", piece, _SEQ)

    return read


def disagreements(spark: SparkSession, url: str, store: Store, seq: int) -> list[Offence]:
    """Jobs whose row in silver is not what the store says at the same version.

    Of those that changed at or after `seq`. Needs the view `silver_jobs`.
    """
    touched = (
        spark.table("silver_jobs")
        .where(f"last_seq >= {seq}")
        .select("job_id")
        .distinct()
        .limit(GET_JOBS_MAX + 1)
        .toArrow()["job_id"]
        .to_pylist()
    )
    if len(touched) > GET_JOBS_MAX:
        stored = (
            spark.read.format("headrace")
            .option("url", url)
            .option("table", "jobs")
            .schema(", ".join(f"{field.name} {_ddl(field)}" for field in _COMPARED))
            .load()
        )
    else:
        rows = list(_stored(store, touched))
        stored = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_COMPARED))
    stored.createOrReplaceTempView("store_jobs")
    count = spark.sql(f"SELECT count(*) FROM ({AGREEMENT.sql})", args={"seq": seq}).collect()[0][0]  # noqa: S608 - our own words
    return [offence(spark, "silver/jobs", AGREEMENT, count, seq)] if count else []


def _stored(store: Store, ids: list[str]) -> Iterator[dict[str, object]]:
    for start in range(0, len(ids), _GET_AT_ONCE):
        for job in store.jobs(ids[start : start + _GET_AT_ONCE]).values():
            yield {name: getattr(job, name) for name in _COMPARED.names}


def _ddl(field: pa.Field) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(field.type).simpleString()
