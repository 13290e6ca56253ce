"""Which way rows take: in bulk where the store can, else through the manager; at once, or staged first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from headrace.manager import JobManager
from headrace.spark.sink import staging
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.rows import Reader
from headrace.spark.sink.submitting import PartWriter, Submitter


@asynccontextmanager
async def part_writer(
    manager: JobManager, options: SinkOptions, reader: Reader, done: TaskDone
) -> AsyncIterator[PartWriter]:
    """What writes the rows of one partition."""
    plain = (staging.Stager if options.atomic else Submitter)(manager, options, reader, done)
    if not loads_in_bulk(manager):
        yield plain
        return
    from headrace.spark.sink.bulk import BulkStager, BulkSubmitter
    from headrace.stores.postgres import PostgresStore
    from headrace.stores.postgres.bulk import Loader

    assert isinstance(manager.store, PostgresStore)
    kind = BulkStager if options.atomic else BulkSubmitter
    with kind(plain, manager.store, Loader(options.url)) as part:
        yield part


async def store_staged(
    manager: JobManager, options: SinkOptions, tenant: str | None, parts: Sequence[TaskDone]
) -> None:
    """The end of an all-or-nothing write: store everything that the tasks have staged, in one step."""
    if loads_in_bulk(manager):
        from headrace.spark.sink.bulk import load_staged

        await load_staged(manager, options, tenant, parts)
    else:
        await staging.store_staged(manager, options, tenant, parts)


async def forget_staged(manager: JobManager, options: SinkOptions, write_id: str) -> None:
    """The end of an all-or-nothing write that failed."""
    if loads_in_bulk(manager):
        from headrace.spark.sink.bulk import forget_staged as forget

        await forget(manager, options, write_id)


def loads_in_bulk(manager: JobManager) -> bool:
    return manager.capabilities.loads_in_bulk
