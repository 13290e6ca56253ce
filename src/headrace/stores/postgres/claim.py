"""Claiming: how far to reach, plain or by shares; what could be claimed, and what is held."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from headrace.errors import StoreError
from headrace.model import Job, State
from headrace.stores.base import ClaimRequest, Head, Held, Record, Share
from headrace.stores.postgres.columns import CLAIMED
from headrace.stores.postgres.drivers import Row
from headrace.stores.postgres.errors import Violated
from headrace.stores.postgres.lanes import LaneKey, Lanes
from headrace.stores.postgres.marks import Mark, Marks, Place, Start
from headrace.stores.postgres.rows import LANE, read_claimed
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import Column, transposed

_FILTERS_MAX = 1000
_REACH_MIN = 4
_REACH_FACTOR_MAX = 64.0
_INTEGER_MAX = 2**31 - 1
_SEQ, _RUN_AT = ([column.name for column in CLAIMED].index(name) for name in ("seq", "run_at"))
_TRAILER = 2
_EARLY, _EXCESS = -2, -1
"""Where these stand in a row of a claim, the last two behind what is about the job."""


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
                rows = await self._attempt(request, limit, _reach(limit, factor))
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
        return await self._jobs(request, taken)

    async def claim_shares(
        self, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
    ) -> list[Job] | None:
        """One statement. Behind a gate there is one claim at a time, so hardly a job is held by others."""
        lanes = await self._lanes.known(
            LaneKey(share.tenant, share.queue, share.type, share.priority, share.limit_key)
            for share in shares
        )
        asked = [
            (lane, min(share.jobs, request.limit))
            for lane, share in zip(lanes, shares, strict=True)
            if lane is not None and share.jobs > 0
        ]
        starts = self._marks_of(request.tags).start(request.now)
        try:
            rows = await self._session.write(
                "claim_shares",
                *_leasing(request, request.limit, math.ceil(self._reach_factor) * _REACH_MIN),
                [gate.kind for gate in gates],
                [gate.name for gate in gates],
                [gate.version for gate in gates],
                [gate.body_json for gate in gates],
                *transposed(asked, 2),
                *transposed([starts.get(lane, Start()) for lane, _ in asked], 4),
                request.horizon,
            )
        except Violated:  # a gate came up that was not there
            return None
        if rows and rows[-1][0] is None:
            return None
        return await self._jobs(request, rows)

    async def heads(self, request: ClaimRequest) -> list[Head]:
        """Reads the lanes as a claim does, and learns from it as a claim does."""
        marks = self._marks_of(request.tags)
        starts = marks.start(request.now)
        began = time.monotonic()
        *rows, (_, _, _, _, entries) = await self._session.read(
            "heads", request.horizon, request.limit, *_filters(request), *_gaps(starts)
        )
        jobs: dict[int, int] = {}
        run_ats: dict[int, datetime] = {}
        for lane, _, run_at, _, count in rows:
            jobs[lane] = min(jobs.get(lane, 0) + count, request.limit)
            run_ats[lane] = min(run_ats.get(lane, run_at), run_at)
        marks.learn(
            lambda: {Place(lane, early): (run_at, seq) for lane, early, run_at, seq, _ in rows},
            entries - sum(count for *_, count in rows) - len(jobs),
            full=not starts,
            seconds=time.monotonic() - began,
        )
        await self._lanes.know(jobs)
        return [
            Head(**self._lanes.key(lane)._asdict(), run_at=run_ats[lane], jobs=count)
            for lane, count in jobs.items()
        ]

    async def next_due(self, request: ClaimRequest) -> datetime | None:
        """Walks the lanes of a claim without tags, whatever the request's."""
        starts = self._marks_of(()).start(request.now)
        tenant, queues, types, _ = _filters(request)
        ((due_at,),) = await self._session.read(
            "next_due", request.horizon, tenant, queues, types, *_gaps(starts)
        )
        assert due_at is None or isinstance(due_at, datetime)
        return due_at

    async def _attempt(self, request: ClaimRequest, limit: int, reach: int) -> Sequence[Row]:
        marks = self._marks_of(request.tags)
        starts = marks.start(request.now)
        began = time.monotonic()
        rows = await self._session.write(
            "claim", *_leasing(request, limit, reach), *_gaps(starts), request.horizon
        )
        taken = [row for row in rows if row[0] is not None]
        if taken:
            excess = taken[0][_EXCESS]
            seconds = time.monotonic() - began
            marks.learn(lambda: _firsts(taken), excess, full=not starts, seconds=seconds)
        return rows

    def _marks_of(self, tags: Sequence[str]) -> Marks:
        if len(self._marks) > _FILTERS_MAX:
            self._marks.clear()
        return self._marks.setdefault(tuple(tags), Marks())

    async def _jobs(self, request: ClaimRequest, rows: Sequence[Row]) -> list[Job]:
        await self._lanes.know({row[LANE] for row in rows})
        known = (State.RUNNING, request.worker, request.nonce)
        return [read_claimed(row[:-_TRAILER], known, self._lanes.key) for row in rows]


def _firsts(rows: Sequence[Row]) -> dict[Place, Mark]:
    """Of each lane the first job that was claimed, the early ones and the others."""
    firsts: dict[Place, Mark] = {}
    for row in rows:
        firsts.setdefault(Place(row[LANE], row[_EARLY]), (row[_RUN_AT], row[_SEQ]))
    return firsts


def _reach(limit: int, factor: float) -> int:
    return min(math.ceil(limit * factor) + _REACH_MIN, _INTEGER_MAX)


def _leasing(request: ClaimRequest, limit: int, reach: int) -> list[object]:
    """What both kinds of claim begin with."""
    seconds = request.lease_seconds
    return [
        request.worker,
        request.now,
        limit,
        reach,
        request.nonce,
        *_filters(request),
        seconds is not None,
        None if seconds is None else request.now + timedelta(seconds=seconds),
    ]


def _filters(request: ClaimRequest) -> list[object]:
    return [
        request.tenant,
        None if request.queues is None else list(request.queues),
        None if request.types is None else list(request.types),
        list(request.tags),
    ]


def _gaps(starts: Mapping[int, Start]) -> list[Column]:
    """The marked lanes, and before the first: each with where the next one begins. See open_lanes.sql."""
    lanes = sorted(starts)
    ends = [*lanes, _INTEGER_MAX]
    return transposed(
        [
            (lane, end, *starts.get(lane, Start()))
            for lane, end in zip([0, *lanes], ends, strict=True)
        ],
        6,
    )


async def held(session: Session, now: datetime, queues: Sequence[str]) -> list[Held]:
    return [
        Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=jobs)
        for tenant, queue, limit_key, jobs in await session.read("held", now, list(queues))
    ]
