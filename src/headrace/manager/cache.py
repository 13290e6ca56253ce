"""What this process has read a moment ago and need not read again for every job: limits and backlogs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from headrace.stores.base import JobStore, Record

FRESH_SECONDS = 1.0
"""What was read longer ago is read again."""
BACKLOGS_MAX = 1000
"""So many backlogs are remembered; with more of them, old ones are let go of."""


def is_fresh(read_at: datetime, now: datetime) -> bool:
    return 0 <= (now - read_at).total_seconds() < FRESH_SECONDS


class Cache:
    """Shared by all managers that one process has on a store, whatever their tenant."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[datetime, Mapping[str, Record]]] = {}
        self._backlogs: dict[tuple[str, str | None], BacklogEstimate] = {}
        self.counted: tuple[str, int] | None = None
        """Up to where in the log, and in which hour, nothing was left to be counted into recent history."""

    async def records(self, store: JobStore, kind: str, now: datetime) -> Mapping[str, Record]:
        """All records of a kind by name, as they were at most `FRESH_SECONDS` ago."""
        read_at, found = self._records.get(kind, (None, {}))
        if read_at is None or not is_fresh(read_at, now):
            found = {record.name: record for record in await store.records(kind)}
            self._records[kind] = (now, found)
        return found

    def forget(self, kind: str) -> None:
        """The next one to ask reads them again."""
        self._records.pop(kind, None)

    def backlog(self, queue: str, tenant: str | None, now: datetime) -> BacklogEstimate:
        """What waits on a queue: of one tenant or, None, of all."""
        if len(self._backlogs) >= BACKLOGS_MAX:
            self._backlogs = {
                scope: one for scope, one in self._backlogs.items() if one.is_needed(now)
            }
        return self._backlogs.setdefault((queue, tenant), BacklogEstimate(queue, tenant))


class BacklogEstimate:
    """A backlog as it was measured, and what this process has added to it since."""

    def __init__(self, queue: str, tenant: str | None) -> None:
        self._queue = queue
        self._tenant = tenant
        self._measured_at: datetime | None = None
        self._measured = Size()
        self._measured_from = Size()  # what had been added when the measurement began
        self._added = Size()  # ever, by this process
        self._on_the_way = Size()

    @property
    def load(self) -> Size:
        """Not less than there is, except for what other processes have added since."""
        return self._measured.plus(self._added).minus(self._measured_from).plus(self._on_the_way)

    def is_fresh(self, now: datetime) -> bool:
        return self._measured_at is not None and is_fresh(self._measured_at, now)

    def is_needed(self, now: datetime) -> bool:
        return self.is_fresh(now) or self._on_the_way != Size()

    async def measure(self, store: JobStore, now: datetime) -> None:
        before = self._added
        backlog = await store.backlog(tenant=self._tenant, queue=self._queue)
        if before.jobs >= self._measured_from.jobs:  # nobody who began later was faster
            self._measured_at = now
            self._measured = Size(backlog.jobs, backlog.payload_bytes)
            self._measured_from = before

    def send(self, load: Size) -> None:
        """This is being stored: whoever asks meanwhile must count it."""
        self._on_the_way = self._on_the_way.plus(load)

    def arrive(self, load: Size, *, stored: bool) -> None:
        """It is stored, or it came to nothing."""
        self._on_the_way = self._on_the_way.minus(load)
        if stored:
            self._added = self._added.plus(load)


class Size(NamedTuple):
    """So many jobs, and the bytes of their payloads."""

    jobs: int = 0
    payload_bytes: int = 0

    def plus(self, other: Size) -> Size:
        return Size(self.jobs + other.jobs, self.payload_bytes + other.payload_bytes)

    def minus(self, other: Size) -> Size:
        return Size(self.jobs - other.jobs, self.payload_bytes - other.payload_bytes)
