"""All or nothing: tasks only check their rows, and the driver stores all of them in one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from headrace import validation
from headrace.errors import InvalidInput
from headrace.manager import JobManager
from headrace.manager.submission import BATCH_JOBS_MAX
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.naming import Naming
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.rows import NUMBER, Batch, Reader, Row
from headrace.spark.sink.submitting import Submitter, submit_rows
from headrace.spec import JobSpec


class Stager(Submitter):
    """Looks at the rows of one partition, and sends the good ones to the driver."""

    def __init__(
        self, manager: JobManager, options: SinkOptions, reader: Reader, done: TaskDone
    ) -> None:
        super().__init__(manager, options, reader, done)
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    async def submit_each(self, batch: Batch, rows: Sequence[Row]) -> None:
        good = self.check_each(batch, rows)
        self._rows += len(good)
        if self._rows > BATCH_JOBS_MAX:
            _refuse(self._rows)
        if good:
            numbers = pa.array([batch.numbers[row.place] for row in good], pa.int64())
            places = pa.array([row.place for row in good], pa.int64())
            self._batches.append(batch.record.take(places).append_column(NUMBER, numbers))

    async def finish(self) -> None:
        if self._batches and not self.is_failing():
            self.done.staged = _packed(self._batches)


async def store_staged(
    manager: JobManager, options: SinkOptions, tenant: str | None, parts: Sequence[TaskDone]
) -> None:
    """Store what the tasks have sent, in the order of the partitions: all or nothing."""
    specs = staged_specs(options, tenant, parts)
    if specs:
        await submit_rows(manager, specs)


def staged_specs(
    options: SinkOptions, tenant: str | None, parts: Sequence[TaskDone]
) -> list[JobSpec]:
    """What the tasks have sent, in the order of the partitions. InvalidInput if it is too much."""
    specs = [
        spec
        for part in sorted(parts, key=lambda one: one.partition)
        for spec in _specs(options, tenant, part)
    ]
    if len(specs) > BATCH_JOBS_MAX:
        _refuse(len(specs))
    return specs


def _specs(options: SinkOptions, tenant: str | None, part: TaskDone) -> Iterator[JobSpec]:
    reader = Reader(options, Naming(part.write_id, part.partition), tenant)
    for record in pa.ipc.open_stream(part.staged) if part.staged else ():
        yield from (row.spec for row in reader.read(record).rows())


def _refuse(rows: int) -> None:
    raise InvalidInput(
        f"an all-or-nothing write to this store takes at most {BATCH_JOBS_MAX} rows, and there are {rows} or "
        f"more; {validation.UNCHANGED}: write without atomic (a repeated write with the same write_id stores "
        "only what is missing), or in parts"
    )


def _packed(batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue())
