"""Claiming: where to start reading each lane, how far to reach, and when to look at everything again."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from headrace.errors import StoreError
from headrace.model import Job
from headrace.stores.base import ClaimRequest
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.rows import LANE, read_job
from headrace.stores.postgres.session import Row, Session

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
_FILTERS_MAX = 1000
_REACH_MIN = 4
_REACH_FACTOR_MAX = 64.0
_TRAILER = 4  # early, first_run_at, first_seq, excess


class Place(NamedTuple):
    lane: int
    early: bool


Mark = tuple[datetime, int]
"""(run_at, seq): nothing waits before it, as far as is known."""


class Marks:
    """Where to start reading each lane, for one tag filter. See functions/claim_jobs.sql.

    Used only while a forgotten transaction makes it necessary, first for jobs that came in time, then,
    if that does not help, for early ones too.
    """

    def __init__(self) -> None:
        self._marks: dict[Place, Mark] = {}
        self._level = 0
        self._last_time: datetime | None = None
        self._full_probe_at = -math.inf
        self._full_probe_cost = 0.0

    def start(self, now: datetime) -> list[tuple[int, bool, datetime, int]]:
        """The marks for a claim at this time; none: read everything."""
        turned_back = self._last_time is not None and now < self._last_time
        self._last_time = now
        rest = max(FULL_PROBE_SECONDS, self._full_probe_cost / FULL_PROBE_SHARE)
        if self._level == 0 or turned_back or time.monotonic() - self._full_probe_at > rest:
            self._marks.clear()
            return []
        latest = (now - MARK_LAG, 0)
        return [
            (*place, *(mark if place.early else min(mark, latest)))
            for place, mark in self._marks.items()
            if not place.early or self._level > 1
        ]

    def learn(self, rows: Sequence[Row], *, full: bool, seconds: float) -> None:
        """Take from what a claim answered how it went, and the first waiting job of each lane."""
        if not rows:
            return
        crowded = rows[0][-1] > EXCESS_MAX
        if full:
            self._full_probe_at = time.monotonic()
            self._full_probe_cost = seconds
            self._level = max(self._level, 1) if crowded else 0
        elif crowded:
            self._level = 2
        for row in rows:
            early, run_at, seq, _ = row[-_TRAILER:]
            place, mark = Place(row[LANE], early), (run_at, seq)
            self._marks[place] = max(self._marks.get(place, mark), mark)


class Claimer:
    """Claims on one store. Remembers marks per tag filter and how crowded the heads of the lanes are."""

    def __init__(self, session: Session, lanes: Lanes) -> None:
        self._session = session
        self._lanes = lanes
        self._marks: dict[tuple[str, ...], Marks] = {}
        self._reach_factor = 1.0

    async def claim(self, request: ClaimRequest) -> list[Job]:
        """One statement, unless so many jobs are just being claimed by others that it must reach further.

        How far is each claim's own affair: others, going on at once, change what is remembered.
        """
        taken: list[Row] = []
        factor = self._reach_factor
        while True:
            limit = request.limit - len(taken)
            try:
                rows = await self._attempt(request, limit, math.ceil(limit * factor) + _REACH_MIN)
            except StoreError:
                if taken:  # leased already, so the caller must hear of them
                    break
                raise
            cut_short = bool(rows) and rows[-1][0] is None
            taken += rows[:-1] if cut_short else rows
            if not cut_short:
                break
            factor *= 2
            self._reach_factor = min(max(self._reach_factor, factor), _REACH_FACTOR_MAX)
        self._reach_factor = max(1.0, self._reach_factor * 0.98)
        await self._lanes.know({row[LANE] for row in taken})
        return [read_job(row[:-_TRAILER], self._lanes) for row in taken]

    async def _attempt(self, request: ClaimRequest, limit: int, reach: int) -> Sequence[Row]:
        if len(self._marks) > _FILTERS_MAX:
            self._marks.clear()
        marks = self._marks.setdefault(tuple(request.tags), Marks())
        start = marks.start(request.now)
        began = time.monotonic()
        seconds = request.lease_seconds
        rows = await self._session.write(
            "claim",
            request.worker,
            request.now,
            limit,
            reach,
            request.nonce,
            request.tenant,
            None if request.queues is None else list(request.queues),
            None if request.types is None else list(request.types),
            list(request.tags),
            seconds is not None,
            None if seconds is None else request.now + timedelta(seconds=seconds),
            *([one[index] for one in start] for index in range(4)),
        )
        marks.learn(
            [row for row in rows if row[0] is not None],
            full=not start,
            seconds=time.monotonic() - began,
        )
        return rows
