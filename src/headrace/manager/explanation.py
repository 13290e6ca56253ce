"""Why is this job not running? Every reason that applies, each with the facts behind it."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from headrace import graph, validation
from headrace.allocation import Obstacle, Scope
from headrace.manager import presence
from headrace.manager.context import Context
from headrace.manager.limits import find_obstacles
from headrace.manager.precedence import COUNT_MAX, find_ahead
from headrace.model import CLAIMABLE, DependencyKind, Job, State
from headrace.stores.base import ClaimRequest, Head, WorkerSeen

PRESENT_SECONDS = 60.0
"""A worker that asked within this counts as present."""
BLOCKERS_MAX = 20


class Why(enum.StrEnum):
    ENDED = "ended"
    RUNNING = "running"
    CANCELLING = "cancelling"
    LEASE_LAPSED = "lease_lapsed"
    BLOCKED = "blocked"
    NOT_DUE = "not_due"
    PAUSED = "paused"
    CONCURRENCY_LIMIT = "concurrency_limit"
    RATE_LIMIT = "rate_limit"
    NO_WORKER = "no_worker"
    BEHIND = "behind"
    NO_ROOM = "no_room"
    READY = "ready"
    EMPTY = "empty"
    """Of a queue: nothing waits in it."""


class Reason(msgspec.Struct, frozen=True):
    """One thing that keeps a job from running, with the facts behind it."""

    why: Why
    message: str
    facts: Mapping[str, Any] = {}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job that is due stands in the line of its queue."""

    ahead: int
    """So many due jobs of the queue go before it: those of higher priority, and those due earlier. Where
    tenants take turns or limits hold some up, others may."""
    at_least: bool = False
    """There are more: they are counted up to a thousand of a kind."""


class Explanation(msgspec.Struct, frozen=True):
    """Why a job is not running, or that it is."""

    job: Job
    reasons: tuple[Reason, ...]
    """The first is the one to look at."""
    place: Place | None = None
    """None: it is not in line, since it is not due or its queue is paused."""


async def explain(context: Context, job_id: str) -> Explanation:
    job = await context.read_one(validation.check_id(job_id))
    if job.is_terminal:
        ended = "" if job.finalized_at is None else f" at {job.finalized_at.isoformat()}"
        return Explanation(
            job, (Reason(Why.ENDED, f"the job is {job.state}{ended}: it will not run again"),)
        )
    if job.is_leased:
        return Explanation(job, (_leased(context, job),))
    reasons = []
    if job.state is State.BLOCKED:
        reasons.append(await _blocked(context, job))
    elif job.run_at > context.now():
        reasons.append(
            Reason(Why.NOT_DUE, f"it is due at {job.run_at.isoformat()}", {"run_at": job.run_at})
        )
    paused = await pauses_of(context, job.queue, job.tenant)
    reasons += paused
    reasons += await _limited(context, job)
    present = await _present(context, job)
    takers = [worker for worker in present if _takes(worker, job)]
    if not takers:
        reasons.append(_unattended(context, job, present))
    if not reasons:
        reasons += await _behind(context, job, takers)
        reasons += await _in_line(context, job, takers, is_next=not reasons)
    place = await _place(context, job) if job.is_due(context.now()) and not paused else None
    return Explanation(job, tuple(reasons), place)


async def _place(context: Context, job: Job) -> Place:
    """Lane by lane: those of higher priority that are due, and of its own that are due by its time."""
    request = ClaimRequest(
        worker="-",
        now=context.now(),
        limit=COUNT_MAX,
        nonce="",
        tenant=context.tenant,
        queues=(job.queue,),
    )
    due = await context.store.heads(request)
    by_then = await context.store.heads(msgspec.structs.replace(request, due_by=job.run_at))
    before = [one for one in due if one.priority < job.priority] + [
        one for one in by_then if one.priority == job.priority
    ]
    own = sum(1 for one in before if _is_lane_of(one, job))
    return Place(
        ahead=max(0, sum(one.jobs for one in before) - own),
        at_least=any(one.jobs >= COUNT_MAX for one in before),
    )


def _is_lane_of(head: Head, job: Job) -> bool:
    return (head.tenant, head.type, head.priority, head.limit_key) == (
        job.tenant,
        job.type,
        job.priority,
        job.limit_key,
    )


def _leased(context: Context, job: Job) -> Reason:
    facts = {"worker": job.assignee, "attempt": job.attempt, "lease_until": job.lease_until}
    if job.lease_until is not None and job.lease_until <= context.now():
        return Reason(
            Why.LEASE_LAPSED,
            f"worker {job.assignee} has it, but its lease lapsed at {job.lease_until.isoformat()}; "
            "the next reap makes it claimable",
            facts,
        )
    if job.state is State.CANCELLING:
        return Reason(Why.CANCELLING, f"worker {job.assignee} was asked to stop it", facts)
    return Reason(Why.RUNNING, f"worker {job.assignee} is running it, attempt {job.attempt}", facts)


async def _blocked(context: Context, job: Job) -> Reason:
    """Which jobs it waits for: of AFTER_ANY parents any one would do."""
    edges = await context.store.edges(child_id=job.id)
    waits = [edge for edge in edges if edge.outcome is None]
    if not waits:
        return Reason(
            Why.BLOCKED, "all it waited for has ended; the next sweep decides", {"open": 0}
        )
    named = [edge.parent_id for edge in waits[:BLOCKERS_MAX]]
    parents = await context.read(named)
    of_any = graph.GATHERS not in job.tags and all(
        edge.kind is DependencyKind.AFTER_ANY for edge in waits
    )
    more = f" and {len(waits) - len(named)} more" if len(waits) > len(named) else ""
    listed = ", ".join(
        f"{name} ({parents[name].state if name in parents else 'gone'})" for name in named
    )
    return Reason(
        Why.BLOCKED,
        f"it waits for {'any of ' if of_any else ''}{len(waits)} of {len(edges)} jobs: {listed}{more}",
        {"waits_for": named, "open": len(waits), "dependencies": len(edges)},
    )


async def pauses_of(context: Context, queue: str, tenant: str | None) -> list[Reason]:
    """That the queue is paused for this tenant (None: for whichever)."""
    return [
        Reason(
            Why.PAUSED,
            f"queue {queue} is paused since {pause.since.isoformat()}",
            {"since": pause.since},
        )
        for pause in await context.store.pauses()
        if pause.queue == queue and (tenant is None or pause.tenant in (None, tenant))
    ]


async def _limited(context: Context, job: Job) -> list[Reason]:
    """The limits of its queue that are reached. What others hold is counted, and not told."""
    now = context.now()
    if not job.is_due(now):
        return []
    return [_obstacle(job, one) for one in await find_obstacles(context, job, now)]


def _obstacle(job: Job, obstacle: Obstacle) -> Reason:
    match obstacle.scope:
        case Scope.QUEUE:
            whose = f"its queue {job.queue}"
        case Scope.TENANT:
            whose = f"its tenant {job.tenant} on queue {job.queue}"
        case Scope.KEY:
            whose = f"its key {job.limit_key} on queue {job.queue}"
    if obstacle.next_at is None:
        return Reason(
            Why.CONCURRENCY_LIMIT,
            f"{whose} is at its concurrency limit of {obstacle.limit}",
            {"scope": obstacle.scope, "limit": obstacle.limit},
        )
    return Reason(
        Why.RATE_LIMIT,
        f"{whose} is at its rate limit of {obstacle.limit}: the next token comes at "
        f"{obstacle.next_at.isoformat()}",
        {"scope": obstacle.scope, "limit": str(obstacle.limit), "next_at": obstacle.next_at},
    )


async def _present(context: Context, job: Job) -> list[WorkerSeen]:
    since = context.now() - timedelta(seconds=PRESENT_SECONDS)
    return [
        w for w in await presence.workers(context.store, since) if w.tenant in (None, job.tenant)
    ]


def _unattended(context: Context, job: Job, present: Sequence[WorkerSeen]) -> Reason:
    on_queue = [w for w in present if w.queues is None or job.queue in w.queues]
    named = [w.worker for w in on_queue if context.tenant in (None, w.tenant)]
    facts = {"workers_on_queue": named, "others_on_queue": len(on_queue) - len(named)}
    if on_queue:
        message = (
            f"workers ask for queue {job.queue}, but none for type {job.type} "
            f"with tags {list(job.tags)}"
        )
    else:
        message = (
            f"nobody has asked for queue {job.queue} in the last {PRESENT_SECONDS:.0f} seconds"
        )
    return Reason(Why.NO_WORKER, message, facts)


def _takes(worker: WorkerSeen, job: Job) -> bool:
    return (
        not presence.is_draining(worker)
        and (worker.queues is None or job.queue in worker.queues)
        and (worker.types is None or job.type in worker.types)
        and validation.is_subset(worker.tags, job.tags)
    )


async def _behind(context: Context, job: Job, takers: Sequence[WorkerSeen]) -> list[Reason]:
    """Other queues whose work is older or of higher priority, for every worker that takes the job."""
    ahead = await find_ahead(context, job, takers)
    if not ahead:
        return []
    more = f" and {len(ahead) - BLOCKERS_MAX} more" if len(ahead) > BLOCKERS_MAX else ""
    told = "; ".join(one.told for one in ahead[:BLOCKERS_MAX])
    kinds = [
        word
        for word, holds in (
            ("of higher priority", any(one.higher for one in ahead)),
            ("older", not all(one.higher for one in ahead)),
        )
        if holds
    ]
    facts = {"before": [msgspec.to_builtins(one) for one in ahead]}
    return [
        Reason(
            Why.BEHIND,
            f"its workers take what is {' or '.join(kinds)} first: {told}{more}",
            facts,
        )
    ]


async def _in_line(
    context: Context, job: Job, takers: Sequence[WorkerSeen], *, is_next: bool
) -> list[Reason]:
    tallies = await context.store.count(context.now(), tenant=context.tenant, queues=(job.queue,))
    ready = sum(tally.jobs - tally.delayed for tally in tallies if tally.state in CLAIMABLE)
    running = sum(tally.jobs for tally in tallies if tally.state is State.RUNNING)
    slots = slots_of(context, takers)
    facts = {"ready": ready, "running": running}
    if slots is not None:
        facts |= {"busy": slots.busy, "slots": slots.held}
    at_work = f"its workers are running {running if slots is None else slots}"
    if ready > 1:
        others = "is 1 other job" if ready - 1 == 1 else f"are {ready - 1} other jobs"
        return [
            Reason(
                Why.NO_ROOM,
                f"it is ready, and so {others} of queue {job.queue}; {at_work}",
                facts,
            )
        ]
    if not is_next:
        return []
    if slots is not None and slots.busy >= slots.held:
        return [Reason(Why.NO_ROOM, f"it is ready and next in line, but {at_work}", facts)]
    return [Reason(Why.READY, "it is ready and next in line", facts)]


def slots_of(context: Context, takers: Sequence[WorkerSeen]) -> presence.Slots | None:
    """None unless all of them said it. How busy the operator's workers are is not told to a tenant."""
    all_told = all(one.slots is not None and one.busy is not None for one in takers)
    all_own = all(context.tenant in (None, one.tenant) for one in takers)
    return presence.slots(takers) if all_told and all_own else None
