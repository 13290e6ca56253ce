"""Leasing due jobs, the next ones or shares of given lanes; and what that is decided by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import ClaimRequest, Head, Held, Record, Share
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.lanes import Lane, pack_lane, read_lanes
from headrace.stores.redis.rows import from_us, length_us, read_jobs
from headrace.stores.redis.scripts import Script

_CLAIM = Script("claim")
_HEADS = Script("heads")
_NEXT_DUE = Script("next_due")
_CLAIM_SHARES = Script("claim_shares")
_HELD = Script("held")

_JOBS_PER_CALL = 1000  # a larger claim takes several calls: each holds up everyone else's

_encode = msgspec.msgpack.Encoder().encode


async def claim(server: Server, request: ClaimRequest) -> list[Job]:
    """Up to `limit` jobs in claim order; each call of the script is atomic."""
    taken: list[Job] = []
    resume = b""
    while (left := request.limit - len(taken)) > 0:
        size = min(left, _JOBS_PER_CALL)
        reply, stopped_at = await server.write_script(_CLAIM, _request(request, size), resume)
        jobs = read_jobs(reply)
        taken += jobs
        if jobs:
            if len(jobs) < size:
                break
        elif stopped_at is None:
            break
        resume = stopped_at or b""
    return taken


async def heads(server: Server, request: ClaimRequest) -> list[Head]:
    """The lanes with due jobs; up to ten thousand lines are looked at in one step."""
    if request.limit <= 0:
        return []
    wanted = _request(request, request.limit)
    fronts: dict[Lane, tuple[int, int]] = {}
    resume: bytes | None = b""
    while resume is not None:
        named, flat, resume = await server.read_script(_HEADS, wanted, resume)
        lanes = read_lanes(named)
        for number, run_at, jobs in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            lane = lanes[number]
            first, counted = fronts.get(lane, (run_at, 0))
            fronts[lane] = min(first, run_at), min(counted + jobs, request.limit)
    return [
        Head(
            tenant=lane.tenant,
            queue=lane.queue,
            type=lane.type,
            priority=lane.priority,
            limit_key=lane.limit_key,
            run_at=from_us(run_at),
            jobs=jobs,
        )
        for lane, (run_at, jobs) in fronts.items()
    ]


async def claim_shares(
    server: Server, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
) -> list[Job] | None:
    """One step, whatever it takes: the gates are replaced in the very call that leases."""
    wanted = _request(request, request.limit)
    shared = _shares(shares, request.limit)
    replaced: list[Argument] = []
    for gate in gates:
        replaced += (gate.kind, gate.name, gate.version, gate.body_json)
    resume = b""
    while True:
        answer = await server.write_script(_CLAIM_SHARES, wanted, shared, resume, *replaced)
        if answer is None:
            return None
        reply, resume = answer
        if resume is None:
            return read_jobs(reply)


async def next_due(server: Server, request: ClaimRequest) -> datetime | None:
    """When the next job becomes due; tags are not looked at."""
    run_at = await server.read_script(_NEXT_DUE, _request(request, request.limit))
    return None if run_at is None else from_us(run_at)


async def held(server: Server, now: datetime, queues: Sequence[str]) -> list[Held]:
    """Counted in one step."""
    named, flat = await server.read_script(_HELD, to_us(now), *queues)
    lanes = read_lanes(named)
    counts: Counter[tuple[str, str, str | None]] = Counter()
    for number, jobs in zip(flat[::2], flat[1::2], strict=True):
        lane = lanes[number]
        counts[lane.tenant, lane.queue, lane.limit_key] += jobs
    return [
        Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=jobs)
        for (tenant, queue, limit_key), jobs in counts.items()
    ]


def _shares(shares: Sequence[Share], limit: int) -> bytes:
    """Each lane once, with the sum of its shares; and the shares in order, by their lane's place."""
    lanes: dict[str, int] = {}
    order: list[tuple[str, int]] = []
    for share in shares:
        jobs = min(share.jobs, limit)
        if jobs > 0:
            lane = pack_lane(share.tenant, share.queue, share.type, share.priority, share.limit_key)
            lanes[lane] = min(lanes.get(lane, 0) + jobs, limit)
            order.append((lane, jobs))
    places = {lane: place for place, lane in enumerate(lanes, start=1)}
    return _encode((list(lanes.items()), [(places[lane], jobs) for lane, jobs in order]))


def _request(request: ClaimRequest, limit: int) -> bytes:
    """For lua/shared/request.lua."""
    seconds = request.lease_seconds
    return _encode(
        (
            to_us(request.now),
            limit,
            request.worker,
            request.nonce,
            False if seconds is None else length_us(seconds),
            False if request.tenant is None else request.tenant,
            False if request.queues is None else list(request.queues),
            False if request.types is None else list(request.types),
            list(request.tags),
            to_us(request.horizon),
        )
    )
