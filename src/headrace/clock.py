"""Where time comes from, and the one conversion between times and stored integers.

Every operation takes its time from one clock. In production it is the store's: hosts whose clocks
disagree still agree on who holds a lease. Tests use a manual clock, on every store.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

STEP_SECONDS = 5.0
"""Times that differ by more were taken before and after a clock was set; by less, from clocks that differ."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(moment: datetime) -> int:
    """Microseconds since the epoch: what stores keep. Exact, both ways."""
    return (moment - EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def seconds_ahead(moment: datetime, now: datetime) -> float:
    """How far the moment lies ahead."""
    return (moment - now).total_seconds()


class Clock(Protocol):
    def now(self) -> datetime:
        """The present time, aware, in UTC."""
        ...


class SystemClock:
    """This host's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class StoreClock:
    """The store's clock, read by measuring how far it is from this host's monotonic clock.

    The monotonic clock carries it between measurements, so a step of the host's wall clock does
    not move it. A store clock that reads a little earlier than before holds still until it has caught up;
    one that was set back, by more than STEP_SECONDS, is followed. The host's own wall clock is never
    looked at.
    """

    def __init__(self, store_time: datetime, *, round_trip_seconds: float = 0.0) -> None:
        self._latest = store_time
        self.set_back_from: datetime | None = None
        """The latest time it had shown when it was set back; for maintenance to take up, and to forget."""
        self.measure(store_time, round_trip_seconds=round_trip_seconds)

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - self._mark

    def measure(self, store_time: datetime, *, round_trip_seconds: float = 0.0) -> None:
        """Take a new reading; half of the round trip is taken to have passed since."""
        self._base = store_time + timedelta(seconds=round_trip_seconds / 2)
        self._mark = time.monotonic()
        if seconds_ahead(self._latest, self._base) > STEP_SECONDS:
            self.set_back_from = max(self._latest, self.set_back_from or self._latest)
            self._latest = self._base

    def now(self) -> datetime:
        moment = self._base + timedelta(seconds=time.monotonic() - self._mark)
        self._latest = max(self._latest, moment)
        return self._latest


class ManualClock:
    """Stands still until it is told to move. For tests and the simulator."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def set(self, moment: datetime) -> None:
        self._now = moment


class ShiftedClock:
    """Another clock, moved by an offset that can grow: lets a test jump ahead on a live clock."""

    def __init__(self, base: Clock) -> None:
        self.base = base
        self._offset = timedelta(0)

    def now(self) -> datetime:
        return self.base.now() + self._offset

    def advance_to(self, moment: datetime) -> None:
        """Jump so that `now` is `moment`; a moment in the past changes nothing."""
        ahead = moment - self.now()
        if ahead > timedelta(0):
            self._offset += ahead
