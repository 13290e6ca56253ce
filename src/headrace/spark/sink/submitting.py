"""The way into any store: batches of rows through the manager, where the rules stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from headrace.errors import HeadraceError, InvalidInput
from headrace.manager import JobManager
from headrace.model import Job
from headrace.spark.sink.failures import EXAMPLES_MAX, RowsChanged
from headrace.spark.sink.message import TaskDone
from headrace.spark.sink.opening import patiently
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.rows import BadRow, Reader, Row
from headrace.spec import JobSpec

BadRowOf = Callable[[Row, HeadraceError], BadRow]


class Submitter:
    """Stores the rows of one partition. Rows that are stored already are found, not stored again."""

    def __init__(
        self, manager: JobManager, options: SinkOptions, reader: Reader, done: TaskDone
    ) -> None:
        self._manager = manager
        self._options = options
        self._reader = reader
        self._done = done

    async def submit(self, batch: pa.RecordBatch) -> None:
        """Store what can be stored, and note what cannot.

        Once a bad row is to fail the write nothing more is stored, but all rows are still looked at.
        """
        first = self._reader.next_row
        rows, bad = self._reader.read(batch)
        self.note(bad)
        self._done.rows += batch.num_rows

        def bad_row(row: Row, error: HeadraceError) -> BadRow:
            return self._reader.bad(row.number, error, batch, row.number - first)

        size = self._options.batch_size
        for start in range(0, len(rows), size):
            await self._store(rows[start : start + size], bad_row)

    async def finish(self) -> None:
        """After the last batch."""

    def note(self, bad: Sequence[BadRow]) -> None:
        self._done.bad += len(bad)
        room = EXAMPLES_MAX if self._options.rejects is None else self._options.rejects_max
        self._done.kept += bad[: max(0, room - len(self._done.kept))]

    @property
    def is_failing(self) -> bool:
        """The driver will refuse the write: to store more would be of no use."""
        most = 0 if self._options.rejects is None else self._options.rejects_max
        return self._done.bad > most

    async def _store(self, rows: Sequence[Row], bad_row: BadRowOf) -> None:
        if self.is_failing:
            self.note([bad_row(row, error) for row, error in self._refused(rows)])
            return
        try:
            await self._store_all(rows)
        except RowsChanged:
            raise
        except InvalidInput as error:
            if len(rows) == 1:
                self.note([bad_row(rows[0], error)])
                return
            refused = self._refused(rows)
            self.note([bad_row(row, why) for row, why in refused])
            numbers = {row.number for row, _ in refused}
            left = [row for row in rows if row.number not in numbers]
            # Nothing wrong with any of them as such: one waits for a job that there is not.
            half = len(left) if refused else len(left) // 2
            for part in (left[:half], left[half:]):
                if part:
                    await self._store(part, bad_row)

    def _refused(self, rows: Iterable[Row]) -> list[tuple[Row, HeadraceError]]:
        found: list[tuple[Row, HeadraceError]] = []
        for row in rows:
            try:
                self._manager.check(row.spec)
            except HeadraceError as error:
                found.append((row, error))
        return found

    async def _store_all(self, rows: Sequence[Row]) -> None:
        created, repeated = await submit_rows(self._manager, rows)
        self._done.created += created
        self._done.repeated += repeated


async def submit_rows(manager: JobManager, rows: Sequence[Row]) -> tuple[int, int]:
    """Store every row or none: how many are new, and how many were there."""
    specs = {row.spec.id: row.spec for row in reversed(rows)}  # of several with one key, the first
    distinct = list(reversed(specs.values()))
    submitted = await patiently(lambda: manager.submit_many(distinct))
    created = sum(submitted.created)
    for spec, job, is_new in zip(distinct, submitted.jobs, submitted.created, strict=True):
        if not is_new and spec.key is None:
            _check_same(spec, job)
    return created, len(rows) - created


def _check_same(spec: JobSpec, job: Job) -> None:
    """A row without a key is known by its place; another row at that place must not pass for it."""
    if (job.tenant, job.queue, job.type) != (spec.tenant, spec.queue, spec.type) or (
        job.payload_json != bytes(spec.payload)
    ):
        raise RowsChanged(
            f"job {spec.id} was stored with other contents by an earlier attempt: the rows of this "
            "DataFrame do not come in the same order each time, so their places do not name them. What "
            "was stored stays; sort the rows, or give each a key, and write again"
        )
