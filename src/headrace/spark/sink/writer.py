"""What Spark calls to write: the tasks' part, and the driver's part at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from headrace import validation
from headrace.errors import InvalidInput
from headrace.spark.sink import reject_count
from headrace.spark.sink.columns import check_schema
from headrace.spark.sink.failures import BadRows, RejectsNotKept
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.naming import Naming, new_write_id
from headrace.spark.sink.opening import application, key_ring, open_manager
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.paths import forget_staged, part_writer, store_staged
from headrace.spark.sink.reject_count import RejectCount
from headrace.spark.sink.rejects import keep_rejects
from headrace.spark.sink.rows import Reader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"

Messages = Sequence[WriterCommitMessage | None]


class _Write:
    """What both kinds of write have in common. Pickled: the tasks have the driver's own copy."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidInput(
                f'jobs are added, never replaced: write with mode("append"); {validation.UNCHANGED}'
            )
        app = application(options)
        check_schema(schema, type_given=options.type is not None)
        self.options = options
        keys = key_ring(options, app)
        self.primary_key = None if keys is None else keys.primary
        self.tenant = options.tenant or (None if app is None else app.tenant)

    async def write_part(self, batches: Iterable[pa.RecordBatch], naming: Naming) -> TaskDone:
        """The task's part: store the rows of a partition, or stage them."""
        done = TaskDone(naming.write_id, naming.partition)
        async with (
            await open_manager(self.options, primary_key=self.primary_key) as manager,
            part_writer(
                manager, self.options, Reader(self.options, naming, self.tenant), done
            ) as part,
        ):
            count = RejectCount(manager, done, self.options.rejects_max)
            for batch in batches:
                await part.submit(batch)
                if self.options.rejects is not None:
                    await count.look()
            await part.finish()
        return done

    def finish(self, messages: Messages, *, batch: int | None) -> None:
        """The driver's part: refuse the whole, or keep the rejects, then store what was staged.

        In this order: if the rejects cannot be kept, nothing of an all-or-nothing write is stored.
        """
        parts = [one for one in messages if isinstance(one, TaskDone)]
        if any(part.counted for part in parts):
            asyncio.run(self._forget_count(parts[0].write_id))
        self._refuse_if_bad(parts)
        if self.options.rejects is not None and parts:
            self._keep_rejects(self.options.rejects, parts, batch)
        if self.options.atomic and parts:
            asyncio.run(self._store_staged(parts))

    async def _forget_count(self, write_id: str) -> None:
        async with await open_manager(self.options, primary_key=self.primary_key) as manager:
            await reject_count.forget(manager, write_id)

    async def _store_staged(self, parts: Sequence[TaskDone]) -> None:
        async with await open_manager(self.options, primary_key=self.primary_key) as manager:
            await store_staged(manager, self.options, self.tenant, parts)

    def give_up(self, write_id: str) -> None:
        """Drop what tasks have staged. What they have stored is stored."""
        if self.options.atomic:
            asyncio.run(self._forget_staged(write_id))

    async def _forget_staged(self, write_id: str) -> None:
        async with await open_manager(self.options, primary_key=self.primary_key) as manager:
            await forget_staged(manager, self.options, write_id)

    def _refuse_if_bad(self, parts: Sequence[TaskDone]) -> None:
        bad = sum(part.bad for part in parts)
        if bad <= (0 if self.options.rejects is None else self.options.rejects_max):
            return
        raise BadRows.of(bad, [row for part in parts for row in part.kept], _stored(parts))

    def _keep_rejects(self, path: str, parts: Sequence[TaskDone], batch: int | None) -> None:
        rejected = [row for part in parts for row in part.kept]
        try:
            keep_rejects(path, parts[0].write_id, batch, rejected)
        except Exception as error:
            raise RejectsNotKept.at(path, len(rejected), error, _stored(parts)) from error


def _stored(parts: Sequence[TaskDone]) -> str:
    """What became of the good rows of a write that fails, as far as its tasks tell."""
    # Also the repeated: an earlier attempt at a task may have stored them, and only the last one tells.
    there = sum(part.created + part.repeated for part in parts)
    if not there:
        return "nothing was stored"
    return (
        f"{there} other rows are stored, and a write with the same write_id "
        f"({parts[0].write_id}) stores only the rest"
    )


class Writer(_Write, DataSourceArrowWriter):
    """`df.write`: the rows of each partition are stored by its task, or all of them at the end."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite=overwrite)
        self.write_id = options.write_id or new_write_id()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        naming = Naming(self.write_id, _task().partitionId())
        return asyncio.run(self.write_part(iterator, naming))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.finish(messages, batch=None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's signature
        self.give_up(self.write_id)


class StreamWriter(_Write, DataSourceStreamArrowWriter):
    """`df.writeStream`: as `Writer`, once per batch of the stream; a repeated batch finds its jobs."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        task = _task()
        stream = self.options.write_id or task.getLocalProperty(_QUERY_ID)
        batch = task.getLocalProperty(_BATCH_ID)
        assert stream is not None
        assert batch is not None
        naming = Naming(f"{stream}-{int(batch):08d}", task.partitionId())
        return asyncio.run(self.write_part(iterator, naming))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self.finish(messages, batch=batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's signature
        for write_id in {one.write_id for one in messages if isinstance(one, TaskDone)}:
            self.give_up(write_id)


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context
