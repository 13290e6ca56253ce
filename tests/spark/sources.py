"""Stores with something of everything in them, and their rows as their own verbs tell them."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.types import StructType

from headrace import JobManager, JobSpec, KeyRing, PermanentError
from headrace.clock import ManualClock
from headrace.connect import open_store
from headrace.model import Event, Job
from headrace.retry import Exponential
from headrace.spark.schemas import JOBS, TABLES, spark_schema
from headrace.spark.source.batch import Reader
from headrace.spark.source.columns import columns_of
from headrace.spark.source.options import SourceOptions
from headrace.stores.base import JobStore, Query
from tests.spark.wild import START, all_events, table_of, wild_on

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

Row = dict[str, Any]
_Answer = TypeVar("_Answer")

ODD = 'é 漢字 🦆 "quoted" \\ \n\t%s {x}; DROP TABLE jobs;--'
NAME = 'é 漢字 🦆 "quoted" \\ %s {x};--'
SECRET = "a secret that only the key ring reads"


def on_store(url: str, act: Callable[[JobStore], Awaitable[_Answer]]) -> _Answer:
    """Act on the store; nobody has it open afterwards."""

    async def acted() -> _Answer:
        store = await open_store(url)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(acted())


def fill(url: str, *, seed: int = 1, steps: int = 150) -> None:
    """A wild history, and jobs in which every column has a value."""

    async def filled(store: JobStore) -> None:
        await (await wild_on(store, seed)).steps(steps)
        await _everything(store)

    on_store(url, filled)


def add_jobs(url: str, count: int, *, tenant: str = "default") -> None:
    """Plain jobs: one event each."""

    async def added(store: JobStore) -> None:
        manager = JobManager(store, clock=ManualClock(START), tenant=tenant)
        await manager.submit_many([JobSpec(type="plain", payload=None) for _ in range(count)])

    on_store(url, added)


def complete_jobs(url: str, count: int) -> None:
    """Jobs that were enqueued, claimed and completed, in a queue of their own: three events each."""

    async def completed(store: JobStore) -> None:
        manager = JobManager(store, clock=ManualClock(START))
        await manager.submit_many([JobSpec(type="plain", queue="done") for _ in range(count)])
        for job in await manager.claim("w", queues=["done"], limit=count):
            await manager.complete(job.id, job.token)

    on_store(url, completed)


async def _everything(store: JobStore) -> None:
    clock = ManualClock(START)
    ring = KeyRing({"k1": bytes(range(32))}, primary="k1")
    for keys in (None, ring):
        tenant = "odd" if keys is None else "sealed"
        manager = JobManager(store, clock=clock, tenant=tenant, keys=keys)
        await manager.submit_many(
            [
                JobSpec(
                    type="odd/ü",
                    queue="odd",
                    payload={"text": SECRET if keys else ODD, "n": 2**53, "none": None},
                    tags=["a,b", NAME, "k=v"],
                    key=f"{NAME} {keys is None} {number}",
                    limit_key="lk",
                    correlation_id="c",
                    callback_url="https://example.org/%C3%A9",
                    timeout_seconds=12.5,
                    lifetime_seconds=86_400.0,
                    backoff=Exponential(initial=0.5),
                )
                for number in range(4)
            ]
        )
        clock.advance(0.000001)
        first, second, third, _ = await manager.claim("w ü", limit=4)
        await manager.progress(first.id, first.token or "", 0.25, "half é")
        await manager.checkpoint(first.id, first.token or "", {"page": SECRET if keys else ODD})
        await manager.keep_log(first.id, first.token or "", [{"message": "line é"}])
        clock.advance(3)
        await manager.complete(first.id, first.token, {"answer": SECRET if keys else ODD})
        await manager.fail(second.id, second.token, PermanentError(ODD, code="E ü"))
        await manager.redrive([second.id])
        await manager.spawn(
            third.id, third.token or "", [JobSpec(type="child", lease_seconds=None)]
        )
        await manager.progress(third.id, third.token or "", 0.5)


# --- what the verbs say --------------------------------------------------------------------------


def events_of(url: str) -> list[Event]:
    return on_store(url, all_events)


def event_rows(url: str) -> list[Row]:
    rows: list[Row] = table_of(events_of(url)).to_pylist()
    return by_seq(rows)


def jobs_of(url: str) -> list[Job]:
    async def found(store: JobStore) -> list[Job]:
        return list(await store.find(Query(limit=10_000)))

    return on_store(url, found)


def job_rows(url: str) -> list[Row]:
    return by_seq([_row(job) for job in jobs_of(url)])


def _row(job: Job) -> Row:
    row: Row = {}
    for name in JOBS.names:
        if name in ("payload", "result", "checkpoint", "log", "backoff"):
            encoded: bytes | None = getattr(job, f"{name}_json")
            row[name] = None if encoded is None else encoded.decode()
        elif name in ("category", "code", "message"):
            row[name] = None if job.failure is None else getattr(job.failure, name)
        else:
            row[name] = getattr(job, name)
    return row | {"tags": list(job.tags)}


# --- what Spark says -----------------------------------------------------------------------------


def load(spark: SparkSession, url: str, table: str, **options: Any) -> DataFrame:
    reader = spark.read.format("headrace").option("url", url).option("table", table)
    return reader.options(**options).load()


def stream(spark: SparkSession, url: str, **options: Any) -> DataStreamReader:
    return (
        spark.readStream.format("headrace")
        .option("url", url)
        .option("table", "events")
        .options(**options)
    )


def read(url: str, table: str, *, columns: str | None = None, **options: Any) -> list[Row]:
    """As Spark would, without Spark: the reader travels, and its batches must fit to the letter."""
    return [row for piece in read_slices(url, table, columns=columns, **options) for row in piece]


def read_slices(
    url: str, table: str, *, columns: str | None = None, **options: Any
) -> list[list[Row]]:
    """The rows of each task."""
    given = {name: str(value) for name, value in options.items()}
    schema = spark_schema(TABLES[table])
    if columns is not None:
        schema = StructType([schema[name] for name in columns.split()])
    reader = Reader(SourceOptions.parse({"url": url, "table": table, **given}), schema)
    slices = []
    for piece in reader.partitions():
        there, copy = pickle.loads(pickle.dumps((reader, piece)))
        batches = list(there.read(copy))
        assert all(batch.schema == columns_of(table, schema) for batch in batches)
        slices.append([row for batch in batches for row in batch.to_pylist()])
    return slices


def rows_of(frame: DataFrame, by: str = "seq") -> list[Row]:
    table: pa.Table = frame.toArrow()
    rows: list[Row] = table.to_pylist()
    return by_seq(rows, by)


def by_seq(rows: list[Row], by: str = "seq") -> list[Row]:
    return sorted(rows, key=lambda row: row[by])
