"""The lake against the store: nothing of its log is missing, and folding it gives the jobs the store has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect import open_store
from headrace.model import Job
from headrace.spark.lake.bronze import EVENTS_TABLE, SCHEMA
from headrace.spark.lake.checks import Checked, Offence, offence
from headrace.spark.lake.delta import Snapshot, read_files
from headrace.spark.lake.silver import JOBS_SCHEMA, JOBS_TABLE
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import SAMPLE_ROWS, Check
from headrace.spark.lake.tasks import Tasks
from headrace.spark.schemas import EVENTS, JOBS
from headrace.spark.source.batch import started
from headrace.spark.source.extract.base import Pieces, Slice
from headrace.spark.source.extract.choice import extract_of
from headrace.spark.source.options import RETRY_SECONDS, SourceOptions
from headrace.spark.source.patience import patiently

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE_JOBS = 20_000
"""So many of the jobs that changed are asked for by id; `--full-check` compares all that the store has."""
_GET_AT_ONCE = 2_000
_SLICE_EVENTS = 500_000

_ALWAYS = ("state", "attempt", "failures", "losses", "run_at", "updated_at")
_WHOLE_LIVES = ("created_at", "started_at", "finalized_at", "assignee", "assigned_at")
"""These come from events that a trimmed log may no longer hold."""
_COMPARED = pa.schema([JOBS.field(name) for name in ("id", "version", *_ALWAYS, *_WHOLE_LIVES)])
_SEQ = pa.schema([EVENTS.field("seq")])
_COLUMNS = [field for field in _COMPARED if field.name not in ("id", "version")]
HOLDS_THE_LOG = "it holds every event of the log"
AGREES = "folding its events gives the store's job"

_LATEST = """SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY job_id ORDER BY last_seq DESC) AS nth
    FROM silver_jobs) WHERE nth = 1"""

AGREEMENT = Check(
    AGREES,
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
    + " AND (silver.events < silver.version OR ("
    + " AND ".join(f"silver.{name} <=> stored.{name}" for name in _WHOLE_LIVES)
    + ")))",
)


# --- the log -------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """What the store says of a part of its log."""

    events: int
    seqs: int
    """Their sum."""
    whole: bool
    """Whether the log still holds all of it."""


def count_log(tasks: Tasks, url: str, after: str, upto: str) -> Counted:
    """One aggregate in the store, asked in a task: this process must not open a SQLite file once more."""
    (told,) = tasks.run(partial(_count_log, url), [(after, upto)])
    return told


def _count_log(url: str, part: tuple[str, str]) -> Counted:
    after, upto = part
    extract = extract_of(SourceOptions.parse({"url": url, "table": "events"}))

    def count() -> Counted:
        start = extract.log_start()
        events, seqs = extract.count_log(after, upto)
        return Counted(events, seqs, extract.place(start) <= extract.place(after))

    return patiently(count, RETRY_SECONDS)


def missing_events(tasks: Tasks, url: str, after: str, upto: str, bronze: Snapshot) -> Checked:
    """Events that the store's log holds between two cursors and bronze does not: seq by seq, in tasks."""
    if not upto or after == upto:
        return Checked(1, ())
    (slices,) = tasks.run(partial(_cut, url), [(after, upto)])
    files = tuple(
        (file.path, file.low.get("seq", 0), file.high.get("seq", 2**62)) for file in bronze.files
    )
    answers = tasks.run(partial(_lacking, url, bronze.storage, files), slices)
    count = sum(number for number, _ in answers)
    if not count:
        return Checked(1, ())
    seqs = sorted(seq for _, some in answers for seq in some)[:SAMPLE_ROWS]
    sample = tuple(f"seq {seq}" for seq in seqs)
    return Checked(1, (Offence(EVENTS_TABLE.name, HOLDS_THE_LOG, count, sample),))


def _cut(url: str, part: tuple[str, str]) -> Sequence[Slice]:
    after, upto = part
    extract = extract_of(SourceOptions.parse({"url": url, "table": "events"}))
    return patiently(
        lambda: extract.cut_log(after or extract.log_start(), upto, Pieces(None, _SLICE_EVENTS)),
        RETRY_SECONDS,
    )


def _lacking(
    url: str, bronze: Storage, files: Sequence[tuple[str, int, int]], piece: Slice
) -> tuple[int, list[int]]:
    extract = extract_of(SourceOptions.parse({"url": url, "table": "events"}))
    batches = list(started(extract, "events", piece, _SEQ, RETRY_SECONDS))
    told = pa.Table.from_batches(batches, schema=_SEQ)["seq"].to_numpy()
    if not len(told):
        return 0, []
    paths = [path for path, low, high in files if low <= told.max() and high >= told.min()]
    held = read_files(bronze, SCHEMA, EVENTS_TABLE.partition_by, paths, columns=["seq"])[
        "seq"
    ].to_numpy()
    lacking = np.setdiff1d(told, held)
    return len(lacking), lacking[:SAMPLE_ROWS].tolist()


# --- the jobs ------------------------------------------------------------------------------------


def sample_disagreements(tasks: Tasks, url: str, jobs: Snapshot, seq: int) -> Checked:
    """Of the jobs that changed at or after `seq` a sample, each held against the store's, in tasks."""
    files = [file.path for file in jobs.files if file.high.get("last_seq", seq) >= seq]
    if not files:
        return Checked(1, ())
    count = min(tasks.parallelism, len(files))
    parts = [tuple(files[start::count]) for start in range(count)]
    check = partial(_disagreeing, url, jobs.storage, seq, SAMPLE_JOBS // count)
    answers = tasks.run(check, parts)
    wrong = [row for found in answers for row in found]
    if not wrong:
        return Checked(1, ())
    return Checked(1, (Offence(JOBS_TABLE.name, AGREES, len(wrong), tuple(wrong[:SAMPLE_ROWS])),))


def _disagreeing(
    url: str, storage: Storage, seq: int, count: int, paths: Sequence[str]
) -> list[str]:
    wanted = [
        *("job_id", "born_seq", "version", "events", "last_seq"),
        *(field.name for field in _COLUMNS),
    ]
    rows = read_files(
        storage,
        JOBS_SCHEMA,
        JOBS_TABLE.partition_by,
        paths,
        columns=wanted,
        where=pc.field("last_seq") >= seq,
    )
    if len(rows) > count:
        places = np.random.default_rng(seq).choice(len(rows), count, replace=False)
        rows = rows.take(pa.array(places))
    latest: dict[str, dict[str, Any]] = {}
    for row in rows.to_pylist():
        known = latest.setdefault(row["job_id"], row)
        if row["last_seq"] > known["last_seq"]:
            latest[row["job_id"]] = row
    stored = asyncio.run(_stored(url, sorted(latest)))
    return [
        f"{job_id}: {wrong}"
        for job_id, job in stored.items()
        if (wrong := _difference(latest[job_id], job))
    ][: SAMPLE_ROWS * 10]


async def _stored(url: str, ids: Sequence[str]) -> Mapping[str, Job]:
    """Those that the store still holds."""
    store = await open_store(url, create=False)
    try:
        found: dict[str, Job] = {}
        for start in range(0, len(ids), _GET_AT_ONCE):
            found |= await store.get(ids[start : start + _GET_AT_ONCE])
        return found
    finally:
        await store.close()


def _difference(row: Mapping[str, Any], job: Job) -> str:
    """What the two say otherwise of the same version of the same life; "" if nothing."""
    same_life = (
        row["updated_at"] == job.updated_at
        if row["born_seq"] is None
        else row["created_at"] == job.created_at
    )
    if row["version"] != job.version or not same_life:
        return ""
    names = _ALWAYS if row["events"] < row["version"] else (*_ALWAYS, *_WHOLE_LIVES)
    return ", ".join(
        f"{name} is {row[name]}, the store's {getattr(job, name)}"
        for name in names
        if row[name] != getattr(job, name)
    )


def all_disagreements(spark: SparkSession, url: str) -> Checked:
    """Every job of the store against its row, by the source. Needs the view `silver_jobs`."""
    stored = (
        spark.read.format("headrace")
        .option("url", url)
        .option("table", "jobs")
        .schema(", ".join(f"{field.name} {_ddl(field)}" for field in _COMPARED))
        .load()
    )
    stored.createOrReplaceTempView("store_jobs")
    count = spark.sql(f"SELECT count(*) FROM ({AGREEMENT.sql})").collect()[0][0]  # noqa: S608 - our own words
    failed = (offence(spark, JOBS_TABLE.name, AGREEMENT, count),) if count else ()
    return Checked(1, failed)


def _ddl(field: pa.Field) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(field.type).simpleString()
