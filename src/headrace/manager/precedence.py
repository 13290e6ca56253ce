"""Whose work goes before a ready job: other queues of the workers that would take it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from headrace.manager.context import Context
from headrace.manager.limits import find_limits
from headrace.model import Job, Priority
from headrace.stores.base import ClaimRequest, Head, WorkerSeen

COUNT_MAX = 1000
"""Jobs of a lane are counted up to this: past it the number says no more."""
GROUPS_MAX = 20
"""Workers ask for the same things, by and large: so many different requests are looked at."""


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """The due work of another queue from which workers take before they come to the job."""

    queue: str
    priority: int
    higher: bool
    """Of a higher priority than the job: all of it goes first. Else it is older, as far as it is."""
    jobs: int
    at_least: bool
    run_at: datetime
    """Since when the first of it is due."""
    limited: bool
    """It goes first only as far as its queue's limits allow."""

    @property
    def told(self) -> str:
        jobs = f"{self.jobs}{' or more' if self.at_least else ''} due"
        level = f"{Priority(self.priority).name.lower()} priority"
        which = level if self.higher else f"since {self.run_at.isoformat()}"
        limits = ", as its limits allow" if self.limited else ""
        return f"queue {self.queue} ({which}, {jobs}{limits})"


async def find_ahead(
    context: Context, job: Job | Head, takers: Sequence[WorkerSeen]
) -> tuple[Ahead, ...]:
    """What every one of these workers takes before the job, the first to go first.

    Nothing if one of them has nothing else to do first.
    """
    asking = {(w.tenant, _names(w.queues), _names(w.types), tuple(w.tags)): w for w in takers}
    found: dict[tuple[str, int], Ahead] = {}
    limited: frozenset[str] | None = None
    for worker in list(asking.values())[:GROUPS_MAX]:
        heads = await context.store.heads(_request(context, worker))
        before = [head for head in heads if head.queue != job.queue and _goes_first(head, job)]
        if not before:
            return ()
        if limited is None:
            limited = frozenset(await find_limits(context, None))
        for head in before:
            key = (head.queue, head.priority)
            found[key] = _with(found.get(key), head, job, limited=head.queue in limited)
    return tuple(sorted(found.values(), key=lambda one: (one.priority, one.run_at, one.queue)))


def _names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _request(context: Context, worker: WorkerSeen) -> ClaimRequest:
    """As the worker would ask; nobody is told of tenants that he does not see."""
    return ClaimRequest(
        worker=worker.worker,
        now=context.now(),
        limit=COUNT_MAX,
        nonce="",
        tenant=context.tenant or worker.tenant,
        queues=worker.queues,
        types=worker.types,
        tags=worker.tags,
    )


def _goes_first(head: Head, job: Job | Head) -> bool:
    return (head.priority, head.run_at) < (job.priority, job.run_at)


def _with(before: Ahead | None, head: Head, job: Job | Head, *, limited: bool) -> Ahead:
    """A lane more: counted on, or (a worker that asks otherwise saw it, too) once."""
    jobs = head.jobs if before is None else before.jobs + head.jobs
    return Ahead(
        queue=head.queue,
        priority=head.priority,
        higher=head.priority < job.priority,
        jobs=jobs,
        at_least=head.jobs >= COUNT_MAX or (before is not None and before.at_least),
        run_at=head.run_at if before is None else min(before.run_at, head.run_at),
        limited=limited,
    )
