"""What mends the world after crashes: lapsed leases, vanished workers, lifetimes, unfinished releases.

Every step can run anywhere, at any time, on several hosts at once: each only ever does what is due,
and two that meet do it once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from headrace import lifecycle
from headrace.lifecycle import Command
from headrace.manager.changes import (
    Changed,
    change_together,
    freed_by,
    ripple,
    ripple_or_leave,
)
from headrace.manager.context import Context
from headrace.manager.records import Again, retried
from headrace.manager.selection import every
from headrace.model import LEASED, Category, Change, Failure, Job
from headrace.stores.base import Commit, Query

BATCH_JOBS = 1000


async def reap(context: Context, limit: int) -> Changed:
    """Take back leases that have lapsed: lost (or dead), or abandoned if they were cancelling.

    By the store's clock as it is now: if it was set back, leases that begin now lie in the past of whoever
    has not heard of it.
    """
    await context.synchronise(at_once=True)
    failure = Failure("the lease lapsed without a heartbeat", Category.SYSTEM, "lease_expired")

    async def due(count: int) -> Sequence[Job]:
        return await context.store.lapsed(context.now(), count, tenant=context.tenant)

    return await _drain(context, due, lifecycle.Expire(failure=failure), limit, leases_as_read=True)


async def end_lifetimes(context: Context, limit: int) -> Changed:
    """Jobs that outlived their lifetime are dead, whatever they were doing."""
    await context.synchronise(at_once=True)

    async def due(count: int) -> Sequence[Job]:
        return await context.store.outlived(context.now(), count, tenant=context.tenant)

    return await _drain(context, due, lifecycle.Outlive(), limit)


async def sweep(context: Context, limit: int) -> int:
    """Judge the children that a crash left unjudged after their parent had ended. How many changed."""
    left = await context.store.unseen(limit)
    if context.tenant is not None:
        own = await context.read(list(dict.fromkeys(edge.child_id for edge in left)))
        left = [edge for edge in left if edge.child_id in own]
    return await ripple(context, left)


async def expire_worker(context: Context, worker: str) -> Changed:
    """The worker is gone: everything it holds, in one step."""
    failure = Failure(f"worker {worker} is unresponsive", Category.SYSTEM, "worker_unresponsive")
    return await _expire_all(context, Query(assignee=worker, states=tuple(LEASED)), failure)


async def reset_running(context: Context) -> Changed:
    """Everything that any worker holds, in one step: for a restart after which no worker is left."""
    failure = Failure("running jobs were reset", Category.SYSTEM, "reset")
    return await _expire_all(context, Query(states=tuple(LEASED)), failure)


async def _expire_all(context: Context, query: Query, failure: Failure) -> Changed:
    async def once() -> Changed:
        jobs = await every(context, query)
        if not jobs:
            return Changed((), {})
        changed = await change_together(context, jobs, lambda _: lifecycle.Expire(failure=failure))
        if changed is None:
            raise Again
        return changed

    return await retried(once, "the jobs kept changing; nothing was changed")


async def _drain(
    context: Context,
    due: Callable[[int], Awaitable[Sequence[Job]]],
    command: Command,
    limit: int,
    *,
    leases_as_read: bool = False,
) -> Changed:
    """Apply the command to what is due, batch by batch; what moved on in between is left alone."""
    done: list[Change] = []
    while len(done) < limit:
        jobs = await due(min(BATCH_JOBS, limit - len(done)))
        changes = [lifecycle.apply(job, command, context.now()) for job in jobs]
        if not changes:
            break
        committed = await context.store.commit(
            Commit(changes=changes, leases_as_read=leases_as_read)
        )
        await ripple_or_leave(context, committed.touched)
        applied = [change for change, ok in zip(changes, committed.applied, strict=True) if ok]
        if not applied:
            break
        done += applied
    return Changed(tuple(change.after for change in done), freed_by(done))
