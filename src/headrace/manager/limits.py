"""Limits: kept as records of the store, obeyed by every claim.

A queue with limits for claims has a gate, and plain claims pass it over. Whoever claims from it reads the
gate, looks at what waits and what is leased, decides, and claims in the same step that moves the gate on:
of two that decide at once, one is told that the gate has moved, and looks again. So no limit is passed,
however many claim; and a slot is a lease that holds, so no crash loses one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from headrace import limits, validation
from headrace.allocation import (
    Allocation,
    Demand,
    Obstacle,
    allocate,
    caught_up,
    give_back,
    next_token_at,
    obstacles,
    room,
)
from headrace.errors import InvalidInput, InvalidLimit, StoreError
from headrace.limits import Gate, QueueLimits
from headrace.manager.admission import ADMISSION
from headrace.manager.context import Context
from headrace.manager.records import change_record
from headrace.model import Job
from headrace.stores.base import GATE, ClaimRequest, Head, Held, Record, Share

logger = logging.getLogger("headrace.manager")

TRIES_MAX = 10
"""Each clash means that somebody else has claimed; who clashes so often comes back with nothing."""
GRACE_SECONDS = 1.0
"""A lease that lapsed less than this ago still counts: a heartbeat may be on its way that saves it.

Whoever reaps it frees the slot at once, since then no heartbeat can.
"""
PAUSE_SECONDS = 0.002
"""The longest pause after the first clash; each doubles the next."""

Lane = tuple[str, str, str, int, str | None]


class Claimed(NamedTuple):
    """What a claim took, and when a limit lets it take more."""

    jobs: Sequence[Job]
    next_at: datetime | None = None
    """When the next token comes that jobs may be waiting for. None: nothing waits for one."""


# --- setting -------------------------------------------------------------------------------------


async def set_limits(context: Context, queue: str, wanted: QueueLimits) -> None:
    _check_operator(context)
    if not isinstance(wanted, QueueLimits):
        raise InvalidInput(
            f"{validation.told(wanted)} is not a QueueLimits; {validation.UNCHANGED}"
        )
    if wanted.are_none:
        raise InvalidLimit(f"no limit was given: remove them instead; {validation.UNCHANGED}")
    await _put(context, GATE, queue, lambda body: _gate(queue, wanted.for_claims, body))
    await _put(context, ADMISSION, queue, lambda _: _admission(wanted.for_admission))


async def remove_limits(context: Context, queue: str) -> bool:
    """True if there were any."""
    _check_operator(context)
    gone = [await _put(context, kind, queue, lambda _: None) for kind in (GATE, ADMISSION)]
    return any(gone)


async def find_limits(context: Context, queue: str | None) -> dict[str, QueueLimits]:
    """Of all queues that have some, or of the one; in order of name.

    Who acts for one tenant is told only of queues on which it has jobs or a weight, unless one is named.
    """
    names = None if queue is None else [queue]
    found = {
        record.name: limits.decode_gate(record.name, record.body_json).limits
        for record in await context.store.records(GATE, names)
    }
    for record in await context.store.records(ADMISSION, names):
        admission = limits.decode_limits(record.name, record.body_json)
        found[record.name] = found.get(record.name, QueueLimits()).with_admission(admission)
    if queue is None and context.tenant is not None:
        tallies = await context.store.count(context.now(), tenant=context.tenant)
        own = {tally.queue for tally in tallies}
        found = {
            name: limit
            for name, limit in found.items()
            if name in own or context.tenant in limit.weights
        }
    return {name: _visible(context, found[name]) for name in sorted(found)}


def _check_operator(context: Context) -> None:
    if context.tenant is not None:
        raise InvalidInput(
            "the limits of a queue are for all its tenants: who acts for one of them cannot change them; "
            f"{validation.UNCHANGED}"
        )


def _visible(context: Context, found: QueueLimits) -> QueueLimits:
    """One tenant is not told the names of others."""
    if context.tenant is None:
        return found
    own = {tenant: weight for tenant, weight in found.weights.items() if context.concerns(tenant)}
    return replace(found, weights=own)


def _gate(queue: str, wanted: QueueLimits, body: bytes | None) -> bytes | None:
    if wanted.are_none:
        return None
    gate = Gate(wanted) if body is None else limits.decode_gate(queue, body).under(wanted)
    return limits.encode(gate)


def _admission(wanted: QueueLimits) -> bytes | None:
    return None if wanted.are_none else limits.encode(wanted)


async def _put(
    context: Context, kind: str, queue: str, decide: Callable[[bytes | None], bytes | None]
) -> bool:
    """Replace a record's body (None: there is none) by what `decide` makes of it. True if there was one."""

    def decided(record: Record) -> tuple[Record | None, bool]:
        present = bool(record.version)
        body = decide(record.body_json if present else None)
        return None if body is None else replace(record, body_json=body), present

    what = f"the limits of queue {queue}"
    was_there = await change_record(context.store, kind, queue, decided, what=what)
    context.cache.forget(kind)
    return was_there


# --- claiming ------------------------------------------------------------------------------------


async def claim(context: Context, request: ClaimRequest, *, limited_first: bool) -> Claimed:
    """Claim from queues with and without limits; `limited_first` says which go first."""
    gated = await context.cache.records(context.store, GATE, request.now)
    limited = [name for name in gated if request.queues is None or name in request.queues]
    if not limited:
        return Claimed(await context.store.claim(request))
    plain = None if request.queues is None else [q for q in request.queues if q not in limited]

    async def from_limited(left: int) -> Claimed:
        return await _claim_limited(context, replace(request, limit=left, queues=limited))

    async def from_plain(left: int) -> Claimed:
        asked = replace(request, limit=left, queues=plain)
        return Claimed(()) if plain == [] else Claimed(await context.store.claim(asked))

    jobs: list[Job] = []
    next_at = None
    ways = (from_limited, from_plain) if limited_first else (from_plain, from_limited)
    for way in ways:
        if len(jobs) < request.limit:
            try:
                claimed = await way(request.limit - len(jobs))
                jobs += claimed.jobs
                next_at = next_at or claimed.next_at  # only limits have one
            except StoreError:
                if not jobs:
                    raise
                # These are leased to the caller by now: an error would leave them unattended.
                logger.warning("a claim was cut short", exc_info=True)
    return Claimed(sorted(jobs, key=lambda job: (job.priority, job.run_at, job.seq)), next_at)


async def _claim_limited(context: Context, request: ClaimRequest) -> Claimed:
    for attempt in range(TRIES_MAX):
        claimed = await _try_to_claim(context, replace(request, now=context.now()))
        if claimed is not None:
            return claimed
        await asyncio.sleep(context.dice.random() * PAUSE_SECONDS * 2**attempt)
    return Claimed(())


async def _try_to_claim(context: Context, request: ClaimRequest) -> Claimed | None:
    """One look and one claim. None: somebody else was first, look again."""
    store, now = context.store, request.now
    # The gates before all else: what is read after them is at least as new, and they must not have
    # moved when the claim is made.
    records = {record.name: record for record in await store.records(GATE, request.queues)}
    gates = {name: limits.decode_gate(name, one.body_json) for name, one in records.items()}
    counted = [name for name, gate in gates.items() if gate.limits.counts_leases]
    held = _by_queue(await _held(context, counted, now) if counted else ())
    rooms = {name: room(gate, held.get(name, ()), now) for name, gate in gates.items()}
    tokens_at = [
        next_token_at(gate, held.get(name, ()), now)
        for name, gate in gates.items()
        if not rooms[name]
    ]
    names = [name for name in gates if rooms[name]]
    if not names:
        return Claimed((), _earliest(tokens_at))
    asked = replace(
        request, queues=names, limit=min(request.limit, sum(rooms[name] for name in names))
    )
    # One more than can be taken: whether any are left tells when to come back.
    heads = _by_queue(await store.heads(replace(asked, limit=asked.limit + 1)))
    names = [name for name in names if name in heads]
    demands = [Demand(gates[name], heads[name], held.get(name, ())) for name in names]
    allocated = dict(zip(names, allocate(demands, asked.limit, now), strict=True))
    taken = {name: one for name, one in allocated.items() if one.shares}
    next_at = _earliest([*tokens_at, *(one.next_at for one in allocated.values())])
    if not taken:
        return Claimed((), next_at)  # and nothing is written: idle workers leave the store in peace
    shares = [share for one in taken.values() for share in one.shares]
    jobs = await store.claim_shares(
        asked,
        [_share(lane, jobs) for lane, jobs in shares],
        [replace(records[name], body_json=limits.encode(one.gate)) for name, one in taken.items()],
    )
    if jobs is None:
        return None
    if len(jobs) < sum(wanted for _, wanted in shares):
        await _return_unused(context, taken, jobs)
    return Claimed(jobs, next_at)


def _earliest(moments: Sequence[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


async def _return_unused(
    context: Context, taken: Mapping[str, Allocation[Head]], claimed: Sequence[Job]
) -> None:
    """Give back what was charged for jobs that were gone by then; failing that, it stays charged."""
    came = Counter(_lane_of(job) for job in claimed)
    for queue, one in taken.items():
        left = [(lane, wanted - came[_lane_of(lane)]) for lane, wanted in one.shares]
        unused = [(lane, jobs) for lane, jobs in left if jobs > 0]
        try:
            if unused:
                await _give_back(context, queue, one.gate.limits, unused)
        except StoreError:
            logger.warning("tokens of queue %s were not given back", queue, exc_info=True)


async def _give_back(
    context: Context, queue: str, charged: QueueLimits, unused: Sequence[tuple[Head, int]]
) -> None:
    def decide(record: Record) -> tuple[Record, None]:
        gate = limits.decode_gate(queue, record.body_json) if record.version else None
        # Under other limits the buckets were filled anew: there is nothing to give back.
        if gate is None or gate.limits != charged:
            return record, None
        body = limits.encode(give_back(gate, unused, context.now()))
        return replace(record, body_json=body), None

    await change_record(context.store, GATE, queue, decide, what=f"the gate of queue {queue}")


async def catch_up(context: Context, now: datetime) -> None:
    """After the clock was set back: no bucket waits for the time that it had shown before.

    A gate that moves meanwhile is looked at again in the next round of maintenance.
    """
    for record in await context.store.records(GATE):
        gate = limits.decode_gate(record.name, record.body_json)
        if (after := caught_up(gate, now)) != gate:
            await context.store.put_record(replace(record, body_json=limits.encode(after)))


async def _held(context: Context, queues: Sequence[str], now: datetime) -> Sequence[Held]:
    return await context.store.held(now - timedelta(seconds=GRACE_SECONDS), queues)


async def find_obstacles(context: Context, job: Job | Head, now: datetime) -> list[Obstacle]:
    """Every limit that keeps a due job, or the first of a lane, from being claimed now."""
    gates = await context.store.records(GATE, [job.queue])
    if not gates:
        return []
    held = await _held(context, [job.queue], now)
    gate = limits.decode_gate(job.queue, gates[0].body_json)
    return obstacles(gate, held, job.tenant, job.limit_key, now)


_OfQueue = TypeVar("_OfQueue", Head, Held)


def _by_queue(found: Sequence[_OfQueue]) -> dict[str, list[_OfQueue]]:
    queues: dict[str, list[_OfQueue]] = {}
    for one in found:
        queues.setdefault(one.queue, []).append(one)
    return queues


def _share(lane: Head, jobs: int) -> Share:
    return Share(
        tenant=lane.tenant,
        queue=lane.queue,
        type=lane.type,
        priority=lane.priority,
        limit_key=lane.limit_key,
        jobs=jobs,
    )


def _lane_of(one: Head | Job) -> Lane:
    return one.tenant, one.queue, one.type, one.priority, one.limit_key
