"""How many rows all tasks of a write have rejected so far: together they keep no more than may be kept.

What a task keeps travels to the driver in one message, and a hundred tasks that each keep their fill would be
a hundred times too much there, though the driver will only refuse the write. So a task that has rejected
many rows tells the others, by a record of the store: a count for each partition, that of the attempt which
counted furthest.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from headrace.errors import StoreError
from headrace.manager import JobManager
from headrace.manager.records import change_record
from headrace.spark.sink.failures import EXAMPLES_MAX
from headrace.spark.sink.message import TaskDone
from headrace.stores.base import Record

KIND = "rejects"
STEP_ROWS = 1_000
"""A task keeps so many more before it looks at the others again."""


class RejectCount:
    """One partition's share in the count of its write."""

    def __init__(self, manager: JobManager, done: TaskDone, most: int) -> None:
        self._manager = manager
        self._done = done
        self._most = most

    async def look(self) -> None:
        """Once many more rows were rejected: keep only examples, if those of all tasks are too many."""
        done = self._done
        if done.bad - done.counted < STEP_ROWS or done.too_many:
            return
        done.counted = done.bad
        try:
            total = await self._share()
        except StoreError:
            return  # the driver counts for itself; this only spares its memory
        if total > self._most:
            done.too_many = True
            del done.kept[EXAMPLES_MAX:]

    async def _share(self) -> int:
        done = self._done

        def add(record: Record) -> tuple[Record, int]:
            counts = _counts(record)
            counts[done.partition] = max(counts.get(done.partition, 0), done.bad)
            return replace(record, body_json=msgspec.json.encode(counts)), sum(counts.values())

        return await change_record(
            self._manager.store, KIND, done.write_id, add, what="the count of rejected rows"
        )


async def forget(manager: JobManager, write_id: str) -> None:
    """The write has ended, well or badly."""
    await change_record(
        manager.store, KIND, write_id, lambda _: (None, None), what="the count of rejected rows"
    )


def _counts(record: Record) -> dict[int, int]:
    return msgspec.json.decode(record.body_json, type=dict[int, int] | None) or {}
