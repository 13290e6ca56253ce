"""Where claims start reading each lane while a forgotten transaction keeps the entries of jobs long gone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

EXCESS_MAX = 1000
"""Index entries without a job that a claim may walk over before marks are used. With fewer, every claim
reads from the very beginning, and is exact whatever other processes do."""
MARK_LAG = timedelta(seconds=1)
"""Marks stay this far behind the present: jobs that are due now may still be about to be committed."""
FULL_PROBE_SECONDS = 0.1
FULL_PROBE_SHARE = 0.05
"""While marks are used, a claim reads from the very beginning every FULL_PROBE_SECONDS, or less often, so
that such claims take no more than this share of the time. So long, at most, is a job passed over that
appeared before a mark."""


class Place(NamedTuple):
    lane: int
    early: bool


Mark = tuple[datetime, int]
"""(run_at, seq): nothing waits before it, as far as is known."""


class Start(NamedTuple):
    """Where to start reading one lane. None: at its beginning."""

    run_at: datetime | None = None
    seq: int | None = None
    early_run_at: datetime | None = None
    early_seq: int | None = None


class Marks:
    """What is known of the lanes, for one tag filter. See pick_jobs.

    Used only while a forgotten transaction makes it necessary, first for jobs that came in time, then,
    if that does not help, for early ones too.
    """

    def __init__(self) -> None:
        self._marks: dict[Place, Mark] = {}
        self._level = 0
        self._last_time: datetime | None = None
        self._full_probe_at = -math.inf
        self._full_probe_cost = 0.0

    def start(self, now: datetime) -> Mapping[int, Start]:
        """Where to start each lane at this time; none: read everything."""
        turned_back = self._last_time is not None and now < self._last_time
        self._last_time = now
        rest = max(FULL_PROBE_SECONDS, self._full_probe_cost / FULL_PROBE_SHARE)
        if self._level == 0 or turned_back or time.monotonic() - self._full_probe_at > rest:
            self._marks.clear()
            return {}
        latest = (now - MARK_LAG, 0)
        starts: dict[int, Start] = {}
        for (lane, early), mark in self._marks.items():
            known = starts.get(lane, Start())
            if not early:
                run_at, seq = min(mark, latest)
                starts[lane] = known._replace(run_at=run_at, seq=seq)
            elif self._level > 1:
                starts[lane] = known._replace(early_run_at=mark[0], early_seq=mark[1])
        return starts

    def learn(
        self,
        firsts: Callable[[], Mapping[Place, Mark]],
        excess: int,
        *,
        full: bool,
        seconds: float,
    ) -> None:
        """Take from a claim how it went and, if that matters, the first waiting job of each lane."""
        crowded = excess > EXCESS_MAX
        if full:
            self._full_probe_at = time.monotonic()
            self._full_probe_cost = seconds
            self._level = max(self._level, 1) if crowded else 0
        elif crowded:
            self._level = 2
        if self._level:
            for place, mark in firsts().items():
                self._marks[place] = max(self._marks.get(place, mark), mark)
