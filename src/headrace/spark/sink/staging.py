"""All or nothing: tasks only check their rows, and the driver stores all of them in one step."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headrace import validation
from headrace.errors import InvalidInput
from headrace.manager import JobManager
from headrace.manager.submission import BATCH_JOBS_MAX
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.naming import Naming
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.rows import Reader, Row
from headrace.spark.sink.submitting import BadRowOf, Submitter, submit_rows


class Stager(Submitter):
    """Looks at the rows of one partition, and sends them on to the driver."""

    def __init__(
        self, manager: JobManager, options: SinkOptions, reader: Reader, done: TaskDone
    ) -> None:
        super().__init__(manager, options, reader, done)
        self._batches: list[pa.RecordBatch] = []

    async def submit(self, batch: pa.RecordBatch) -> None:
        await super().submit(batch)
        if self._done.rows > BATCH_JOBS_MAX:
            _refuse(self._done.rows)
        self._batches.append(batch)

    async def _store(self, rows: Sequence[Row], bad_row: BadRowOf) -> None:
        self.note([bad_row(row, error) for row, error in self._refused(rows)])

    async def finish(self) -> None:
        if self._batches and not self.is_failing:
            self._done.staged = _packed(self._batches)


async def store(
    manager: JobManager, options: SinkOptions, tenant: str | None, parts: Sequence[TaskDone]
) -> None:
    """Store what the tasks have sent, in the order of the partitions."""
    rows: list[Row] = []
    for part in sorted(parts, key=lambda one: one.partition):
        reader = Reader(options, Naming(part.write_id, part.partition), tenant)
        bad = {row.row for row in part.kept}
        for batch in _unpacked(part.staged):
            good, _ = reader.read(batch)
            rows += (row for row in good if row.number not in bad)
    if len(rows) > BATCH_JOBS_MAX:
        _refuse(len(rows))
    if rows:
        await submit_rows(manager, rows)


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


def _unpacked(packed: bytes) -> list[pa.RecordBatch]:
    return list(pa.ipc.open_stream(packed)) if packed else []
