"""A write without Spark: its tasks and its end, called as Spark calls them, in any order, however often."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from headrace import connect
from headrace.manager import JobManager
from headrace.model import Event, Job
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.naming import Naming
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.writer import Writer
from headrace.stores.base import EventQuery, Query

WRITE_ID = "w"


def writer(url: str, schema: pa.Schema, **options: str) -> Writer:
    named = {"url": url, "type": "t", "write_id": WRITE_ID} | options
    return Writer(SinkOptions.parse(named), from_arrow_schema(schema), overwrite=False)


def run_task(own: Writer, records: Iterable[pa.RecordBatch], partition: int = 0) -> TaskDone:
    return asyncio.run(own.write_part(records, Naming(own.write_id, partition)))


def write(url: str, *parts: pa.RecordBatch, **options: str) -> list[TaskDone]:
    """One partition per record batch, each in two pieces, then the driver's part."""
    own = writer(url, parts[0].schema, **options)
    done = [run_task(own, halves(part), number) for number, part in enumerate(parts)]
    own.commit(list(done))
    return done


def halves(record: pa.RecordBatch) -> list[pa.RecordBatch]:
    half = record.num_rows // 2
    return [record.slice(0, half), record.slice(half)] if half else [record]


def payloads(count: int, **columns: Sequence[Any]) -> pa.RecordBatch:
    """So many rows with payloads {"n": 0}, {"n": 1} …, and these columns besides."""
    own = pa.array([{"n": number} for number in range(count)], pa.struct([("n", pa.int64())]))
    return pa.record_batch({"payload": own, **columns})


def jobs_of(url: str) -> list[Job]:
    """Every job, in the order they were stored in."""

    async def read(manager: JobManager) -> list[Job]:
        return list(await manager.store.find(Query(limit=10_000)))

    found: list[Job] = with_manager(url, read)
    return found


def events_of(url: str) -> list[Event]:
    async def read(manager: JobManager) -> list[Event]:
        return list(await manager.store.events(EventQuery(limit=10_000)))

    found: list[Event] = with_manager(url, read)
    return found


def with_manager(url: str, call: Any) -> Any:
    async def within() -> Any:
        async with await connect(url) as manager:
            return await call(manager)

    return asyncio.run(within())
