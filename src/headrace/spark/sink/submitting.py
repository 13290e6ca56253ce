"""The way into any store: batches of rows through the manager, where the rules stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from headrace import validation
from headrace.errors import HeadraceError, InvalidInput
from headrace.manager import JobManager
from headrace.model import Job
from headrace.spark.sink.failures import EXAMPLES_MAX, RowsChanged
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.opening import patiently
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.rows import Batch, Reader, Row
from headrace.spec import JobSpec

BATCH_SIZE = 5_000


class PartWriter(Protocol):
    """Writes the rows of one partition."""

    async def submit(self, record: pa.RecordBatch) -> None:
        """Store what can be stored, and note what cannot.

        Once a bad row is to fail the write nothing more is stored, but all rows are still looked at.
        """
        ...

    async def finish(self) -> None:
        """After the last batch."""
        ...


class Submitter:
    """Stores the rows of one partition. Rows that are stored already are found, not stored again."""

    def __init__(
        self, manager: JobManager, options: SinkOptions, reader: Reader, done: TaskDone
    ) -> None:
        self.manager = manager
        self.options = options
        self.reader = reader
        self.done = done

    async def submit(self, record: pa.RecordBatch) -> None:
        batch = self.reader.read(record)
        await self.submit_each(batch, batch.rows())
        self.note(batch)

    async def finish(self) -> None:
        pass

    async def submit_each(self, batch: Batch, rows: Sequence[Row]) -> None:
        """Store these rows of the batch, or note what is wrong with them as problems of the batch."""
        size = self.options.batch_size or BATCH_SIZE
        for start in range(0, len(rows), size):
            await self._store(batch, rows[start : start + size])

    def note(self, batch: Batch) -> None:
        """Count the rows of a batch that is done with, and keep its bad ones."""
        self.done.rows += len(batch)
        if batch.problems:
            self.done.bad += len(batch.problems)
            room = EXAMPLES_MAX if self.options.rejects is None else self.options.rejects_max
            self.done.kept += batch.bad_rows()[: max(0, room - len(self.done.kept))]
            if self.is_failing():
                del self.done.kept[EXAMPLES_MAX:]  # nobody will ask for more

    def is_failing(self, batch: Batch | None = None) -> bool:
        """The driver will refuse the write: to store more would be of no use."""
        most = 0 if self.options.rejects is None else self.options.rejects_max
        here = self.done.bad + (0 if batch is None else len(batch.problems))
        return self.done.too_many or here > most

    async def _store(self, batch: Batch, rows: Sequence[Row]) -> None:
        if self.is_failing(batch):
            self.check_each(batch, rows)
            return
        try:
            self.count(*await submit_rows(self.manager, [row.spec for row in rows]))
        except InvalidInput as error:
            if len(rows) == 1:
                batch.problems[rows[0].place] = error
                return
            left = self.check_each(batch, rows)
            # Nothing wrong with any of them as such: one waits for a job that there is not.
            half = len(left) if len(left) < len(rows) else len(left) // 2
            for part in (left[:half], left[half:]):
                if part:
                    await self._store(batch, part)

    def check_each(self, batch: Batch, rows: Iterable[Row]) -> list[Row]:
        """Those that the manager would take; what it says of the others becomes the batch's problem."""
        good: list[Row] = []
        for row in rows:
            try:
                self.manager.draft(row.spec)
                good.append(row)
            except HeadraceError as error:
                batch.problems[row.place] = error
        return good

    def count(self, created: int, repeated: int) -> None:
        self.done.created += created
        self.done.repeated += repeated


async def submit_rows(manager: JobManager, specs: Sequence[JobSpec]) -> tuple[int, int]:
    """Store every row or none: how many are new, and how many were there. Raises RowsChanged."""
    by_id = {spec.id: spec for spec in reversed(specs)}  # of several with one key, the first
    distinct = list(reversed(by_id.values()))
    await _check_repeated(manager, {spec.id: spec for spec in distinct if spec.key is None})
    submitted = await patiently(lambda: manager.submit_many(distinct))
    created = sum(submitted.created)
    for spec, job, is_new in zip(distinct, submitted.jobs, submitted.created, strict=True):
        if not is_new and spec.key is None:
            _check_same(spec, job)
    return created, len(specs) - created


async def _check_repeated(manager: JobManager, by_place: Mapping[str | None, JobSpec]) -> None:
    """Look before anything is stored. A task stores its rows in order: if the first is new, all are."""
    ids = [job_id for job_id in by_place if job_id is not None]
    first = await patiently(lambda: manager.look_up(ids[:1]))
    if first:
        stored = await patiently(lambda: manager.look_up(ids))
        for job_id, job in stored.items():
            _check_same(by_place[job_id], job)


def _check_same(spec: JobSpec, job: Job) -> None:
    """A row without a key is known by its place; another row at that place must not pass for it."""
    wanted = (spec.tenant, spec.queue, spec.type, validation.check_tags(spec.tags))
    stored = (job.tenant, job.queue, job.type, job.tags)
    if stored != wanted or job.payload_json != bytes(spec.payload):
        raise RowsChanged.at(job.id)
