"""Why does nothing of this queue start? What waits in it, and every reason that holds it up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from headrace.allocation import Obstacle, Scope
from headrace.manager import explanation, presence
from headrace.manager.context import Context
from headrace.manager.explanation import PRESENT_SECONDS, Reason, Why
from headrace.manager.holders import HOLDERS, find_holders
from headrace.manager.limits import find_obstacles
from headrace.manager.precedence import COUNT_MAX, GROUPS_MAX, find_ahead
from headrace.model import CLAIMABLE, LEASED, State
from headrace.stores.base import ClaimRequest, Head, WorkerSeen

LANES_MAX = 20
"""So many lanes are asked for the limits that hold them up, the first to go first."""


class QueueExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in a queue, and why it does."""

    queue: str
    at: datetime
    ready: int
    delayed: int
    blocked: int
    running: int
    waited_seconds: float | None
    """How long the job has waited that is due the longest. None: nothing is due, or the queue is paused."""
    reasons: tuple[Reason, ...]
    """The first is the one to look at."""

    @property
    def told(self) -> str:
        """`412 ready, the first for 90 s, 3 running`."""
        since = (
            "" if self.waited_seconds is None else f", the first for {self.waited_seconds:.0f} s"
        )
        return f"{self.ready} ready{since}, {self.running} running"


async def explain_queue(context: Context, queue: str) -> QueueExplanation:
    now = context.now()
    tallies = await context.store.count(now, tenant=context.tenant, queues=(queue,))
    request = ClaimRequest(
        worker="-", now=now, limit=COUNT_MAX, nonce="", tenant=context.tenant, queues=(queue,)
    )
    lanes = sorted(
        await context.store.heads(request), key=lambda head: (head.priority, head.run_at)
    )
    oldest = min((head.run_at for head in lanes), default=None)
    explained = QueueExplanation(
        queue=queue,
        at=now,
        ready=sum(one.jobs - one.delayed for one in tallies if one.state in CLAIMABLE),
        delayed=sum(one.delayed for one in tallies),
        blocked=sum(one.jobs for one in tallies if one.state is State.BLOCKED),
        running=sum(one.jobs for one in tallies if one.state in LEASED),
        waited_seconds=None if oldest is None else (now - oldest).total_seconds(),
        reasons=(),
    )
    reasons = await explanation.pauses_of(context, queue, context.tenant)
    if not explained.ready:
        reasons += await _nothing_ready(context, explained, request)
    else:
        reasons += await _limits(context, queue, lanes)
        reasons += await _workers(context, explained, request, lanes, is_free=not reasons)
    return replace(explained, reasons=tuple(reasons))


async def _nothing_ready(
    context: Context, explained: QueueExplanation, request: ClaimRequest
) -> list[Reason]:
    if explained.delayed:
        due_at = await context.store.next_due(request)
        when = "" if due_at is None else f"; the next is due at {due_at.isoformat()}"
        facts = {"delayed": explained.delayed, "run_at": due_at}
        return [Reason(Why.NOT_DUE, f"{explained.delayed} jobs are not due yet{when}", facts)]
    if explained.blocked:
        message = f"{explained.blocked} jobs wait for others"
        return [Reason(Why.BLOCKED, message, {"blocked": explained.blocked})]
    return [Reason(Why.EMPTY, "nothing waits in it")]


async def _limits(context: Context, queue: str, lanes: Sequence[Head]) -> list[Reason]:
    """The limits that hold up any of its lanes, each once, with who has the slots."""
    found: dict[tuple[Scope, str, str | None], Obstacle] = {}
    for lane in lanes[:LANES_MAX]:
        for one in await find_obstacles(context, lane, context.now()):
            tenant = "" if one.scope is Scope.QUEUE else lane.tenant
            found.setdefault(
                (one.scope, tenant, lane.limit_key if one.scope is Scope.KEY else None), one
            )
    if not found:
        return []
    holders = await find_holders(context, queue, HOLDERS)
    reasons = []
    for (scope, tenant, key), one in found.items():
        whose = {
            Scope.QUEUE: "it",
            Scope.TENANT: f"tenant {tenant}",
            Scope.KEY: f"key {key} of tenant {tenant}",
        }[scope]
        facts = {"scope": scope, "limit": str(one.limit), "tenant": tenant or None, "key": key}
        if one.next_at is None:
            held = f" (held by {holders.told})" if holders.workers else ""
            message = f"{whose} is at the concurrency limit of {one.limit}{held}"
            reasons.append(
                Reason(Why.CONCURRENCY_LIMIT, message, facts | {"workers": dict(holders.workers)})
            )
        else:
            message = (
                f"{whose} is at the rate limit of {one.limit}: the next token comes at "
                f"{one.next_at.isoformat()}"
            )
            reasons.append(Reason(Why.RATE_LIMIT, message, facts | {"next_at": one.next_at}))
    return reasons


async def _workers(
    context: Context,
    explained: QueueExplanation,
    request: ClaimRequest,
    lanes: Sequence[Head],
    *,
    is_free: bool,
) -> list[Reason]:
    """Whether anybody asks for what waits, and has room for it. `is_free`: nothing else holds it up."""
    since = context.now() - timedelta(seconds=PRESENT_SECONDS)
    seen = await presence.workers(context.store, since)
    present = [
        worker
        for worker in seen
        if not presence.is_draining(worker)
        and (worker.queues is None or explained.queue in worker.queues)
        and (context.tenant is None or worker.tenant in (None, context.tenant))
    ]
    takers = await _takers(context, request, lanes, present)
    if not takers:
        named = [one.worker for one in present if context.tenant in (None, one.tenant)]
        message = (
            "workers ask for the queue, but for none of the types and tags that wait in it"
            if present
            else f"nobody has asked for it in the last {PRESENT_SECONDS:.0f} seconds"
        )
        facts = {"workers_on_queue": named, "others_on_queue": len(present) - len(named)}
        return [Reason(Why.NO_WORKER, message, facts)]
    if not is_free or not lanes:
        return []
    ahead = await find_ahead(context, lanes[0], takers)
    if ahead:
        told = "; ".join(one.told for one in ahead[:LANES_MAX])
        facts = {"before": [msgspec.to_builtins(one) for one in ahead]}
        return [Reason(Why.BEHIND, f"its workers take other work first: {told}", facts)]
    slots = explanation.slots_of(context, takers)
    if slots is not None and slots.busy >= slots.held:
        facts = {"busy": slots.busy, "slots": slots.held}
        return [Reason(Why.NO_ROOM, f"its workers are running {slots}", facts)]
    return [Reason(Why.READY, "workers ask for it and nothing holds it up")]


async def _takers(
    context: Context,
    request: ClaimRequest,
    lanes: Sequence[Head],
    present: Sequence[WorkerSeen],
) -> list[WorkerSeen]:
    """Those who ask for some of what waits. What tags are there is asked of the store."""
    types = {lane.type for lane in lanes}
    takers = []
    asked: dict[tuple[tuple[str, ...] | None, tuple[str, ...]], bool] = {}
    for worker in present:
        wanted = None if worker.types is None else tuple(worker.types)
        if lanes and wanted is not None and not types & set(wanted):
            continue
        key = wanted, tuple(worker.tags)
        if worker.tags and lanes and key not in asked and len(asked) < GROUPS_MAX:
            asked[key] = bool(
                await context.store.heads(
                    replace(request, limit=1, types=wanted, tags=tuple(worker.tags))
                )
            )
        if asked.get(key, True):
            takers.append(worker)
    return takers
