"""What happened lately, counted: from the events of the log to rates."""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from headrace.model import Event, EventKind

RATE_SECONDS = 10.0
FAILED_SECONDS = 60.0


class What(enum.Enum):
    SUBMITTED = "submitted"
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"


FAILED = frozenset({EventKind.RETRYING, EventKind.FAILED, EventKind.DEAD, EventKind.LOST})
"""An attempt failed, or its worker vanished, or the job was given up."""

_WHAT = {
    EventKind.ENQUEUED: What.SUBMITTED,
    EventKind.LEASED: What.STARTED,
    EventKind.COMPLETED: What.COMPLETED,
    **dict.fromkeys(FAILED, What.FAILED),
}

Place = tuple[str, str]
"""Tenant and queue."""
Counts = Counter[tuple[What, Place]]


class _Slice(msgspec.Struct, frozen=True):
    """What came between two looks."""

    since: datetime
    until: datetime
    counts: Counts
    is_all: bool


class Activity:
    """Counts by when they were seen, in slices, so that an event that shows late is still counted."""

    def __init__(self, now: datetime) -> None:
        self._until = now
        self._slices: deque[_Slice] = deque()
        self._lately: Counts = Counter()
        self._minute: Counts = Counter()

    def add(self, until: datetime, events: Iterable[Event], *, is_all: bool) -> None:
        """The events seen since the last time; `is_all` False: there were more."""
        counts: Counts = Counter()
        for event in events:
            what = _WHAT.get(event.kind)
            if what is not None:
                counts[what, (event.tenant, event.queue)] += 1
        self._slices.append(_Slice(self._until, until, counts, is_all))
        self._until = until
        while self._slices[0].until <= until - timedelta(seconds=FAILED_SECONDS):
            self._slices.popleft()
        self._lately = _sum(self._last(RATE_SECONDS))
        self._minute = _sum(self._last(FAILED_SECONDS))

    @property
    def seconds(self) -> float:
        """What the rates are taken over."""
        return self._length(RATE_SECONDS)

    @property
    def failed_seconds(self) -> float:
        """What failures are counted over."""
        return self._length(FAILED_SECONDS)

    @property
    def is_all(self) -> bool:
        """No event of the last minute was left out."""
        return all(one.is_all for one in self._slices)

    def per_second(self, what: What, place: Place | None = None) -> float | None:
        """Of one place, or of all. None: no time has passed yet."""
        seconds = self.seconds
        if seconds <= 0:
            return None
        if place is not None:
            return self._lately[what, place] / seconds
        return sum(count for (which, _), count in self._lately.items() if which is what) / seconds

    def failed(self, place: Place) -> int:
        return self._minute[What.FAILED, place]

    def _length(self, seconds: float) -> float:
        first = next(self._last(seconds), None)
        return 0.0 if first is None else (self._until - first.since).total_seconds()

    def _last(self, seconds: float) -> Iterator[_Slice]:
        """The slices that ended within so many seconds, the oldest first."""
        start = self._until - timedelta(seconds=seconds)
        return (one for one in self._slices if one.until > start)


def _sum(slices: Iterable[_Slice]) -> Counts:
    total: Counts = Counter()
    for one in slices:
        total.update(one.counts)
    return total
