"""Admission: a queue that is full takes no more jobs.

The backlog is not counted for every submission: it is measured at most once a second, and what this
process adds meanwhile is counted in. So the limits are exact for one process and soft across several:
together they may pass a limit by what the others submit within that second.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from headrace.errors import QueueFull
from headrace.limits import QueueLimits, decode_limits
from headrace.manager.cache import BacklogEstimate, Size
from headrace.manager.context import Context
from headrace.model import Job
from headrace.stores.base import Clash, Inserted, Insertion

ADMISSION = "admission"
"""The kind of record that holds a queue's limits for submissions: its claims stay plain ones."""


class Places(NamedTuple):
    """What an insertion asks of one queue or, with a tenant, of that tenant's part of it."""

    queue: str
    tenant: str | None
    wanted: Size
    jobs_max: int | None
    bytes_max: int | None
    waiting: BacklogEstimate

    @property
    def are_free(self) -> bool:
        return self.would_hold(self.waiting.load.plus(self.wanted))

    def would_hold(self, load: Size) -> bool:
        return (self.jobs_max is None or load.jobs <= self.jobs_max) and (
            self.bytes_max is None or load.payload_bytes <= self.bytes_max
        )


async def insert(context: Context, insertion: Insertion) -> Inserted | Clash:
    """Insert if there is room for all of it, or raise QueueFull.

    Where one of the jobs is stored already it clashes, room or not: a repeat is no new job.
    """
    places = await _places(context, insertion.jobs) if insertion.jobs else []
    full = await _full(context, places)
    if full is not None and not await context.store.get([job.id for job in insertion.jobs]):
        raise _queue_full(full)
    for one in places:
        one.waiting.send(one.wanted)
    stored = False
    try:
        answer = await context.store.insert(insertion)
        stored = isinstance(answer, Inserted)
    finally:
        for one in places:
            one.waiting.arrive(one.wanted, stored=stored)
    return answer


async def _places(context: Context, jobs: Sequence[Job]) -> list[Places]:
    """Every limit that the jobs come under."""
    now = context.now()
    records = await context.cache.records(context.store, ADMISSION, now)
    if not records:
        return []  # as nearly everywhere
    limited = {job.queue for job in jobs} & records.keys()
    loads = _by_tenant([job for job in jobs if job.queue in limited]) if limited else {}
    found = []
    for queue in sorted(limited):
        rules = decode_limits(queue, records[queue].body_json)
        tenants = {tenant: load for (name, tenant), load in loads.items() if name == queue}
        total = Size(
            sum(load.jobs for load in tenants.values()),
            sum(load.payload_bytes for load in tenants.values()),
        )
        for tenant, load in [(None, total), *tenants.items()]:
            maxima = _maxima(rules, tenant)
            if maxima != (None, None):
                waiting = context.cache.backlog(queue, tenant, now)
                found.append(Places(queue, tenant, load, *maxima, waiting))
    return found


def _by_tenant(jobs: Sequence[Job]) -> dict[tuple[str, str], Size]:
    sizes: dict[tuple[str, str], list[int]] = {}
    for job in jobs:
        sizes.setdefault((job.queue, job.tenant), []).append(len(job.payload_json))
    return {scope: Size(len(own), sum(own)) for scope, own in sizes.items()}


def _maxima(rules: QueueLimits, tenant: str | None) -> tuple[int | None, int | None]:
    if tenant is None:
        return rules.waiting_jobs_max, rules.waiting_bytes_max
    return rules.tenant_waiting_jobs_max, rules.tenant_waiting_bytes_max


async def _full(context: Context, places: Sequence[Places]) -> Places | None:
    """The first that does not fit, by figures measured just now.

    Nothing is awaited after the last look, so nobody of this process comes in between.
    """
    unmeasured = list(places)
    while doubtful := [one for one in unmeasured if not _is_known_free(one, context.now())]:
        for one in doubtful:
            await one.waiting.measure(context.store, context.now())
            unmeasured.remove(one)
    return next((one for one in places if not one.are_free), None)


def _is_known_free(places: Places, now: datetime) -> bool:
    return places.waiting.is_fresh(now) and places.are_free


def _queue_full(places: Places) -> QueueFull:
    whose = "" if places.tenant is None else f" for tenant {places.tenant}"
    maxima = [
        text
        for text, maximum in (
            (f"{places.jobs_max} jobs", places.jobs_max),
            (f"{places.bytes_max} bytes", places.bytes_max),
        )
        if maximum is not None
    ]
    wanted = f"{places.wanted.jobs} more with {places.wanted.payload_bytes} bytes"
    ending = (
        "do not fit now; nothing was stored, submit again later"
        if places.would_hold(places.wanted)
        else "can never fit; nothing was stored, submit fewer at a time"
    )
    return QueueFull(
        f"queue {places.queue} may hold {' and '.join(maxima)} that wait{whose}, and {wanted} {ending}",
        queue=places.queue,
        tenant=places.tenant,
    )
