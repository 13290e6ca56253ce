"""Jobs that come to wait for more: they are as urgent as what they wait for, and deeper by one.

Whoever is lifted takes along all that waits for it, however far down. Lifting goes from the top to the
bottom, each job compared with how it was read: who comes in below meanwhile has read the old place of a job,
and clashes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from headrace import graph, lifecycle
from headrace.manager.context import Context
from headrace.manager.records import Again, retried
from headrace.model import Job, State


async def lift_dependents(context: Context, job: Job) -> None:
    """Raise the priority of all that wait for the job."""
    above = [job]
    while above:
        above = [
            lifted
            for parent in above
            for child in await _children(context, parent)
            if (lifted := await _lift(context, child, parent.priority, 0)) is not None
        ]


async def lift(context: Context, join: Job, priority: int, depth: int) -> Job:
    """A blocked job that comes to wait for one more of this priority, at this depth; as it is then.

    Raises InvalidDependency, with nothing written, where the job or one below it would be too deep.
    """
    await _check_depths(context, join, depth)
    above = [await _lift(context, join, priority, depth)]
    while above:
        above = [
            await _lift(context, child, parent.priority, parent.depth + 1)
            for parent in above
            if parent is not None
            for child in await _children(context, parent)
            if child.state is State.BLOCKED
        ]
    return await context.read_one(join.id)


async def _check_depths(context: Context, join: Job, depth: int) -> None:
    """What waits for a job and for one that waits for it is looked at once for each: by its deepest way."""
    deepest = {join.id: depth}
    unread = [join]
    while unread:
        below: dict[str, Job] = {}
        for job in unread:
            graph.check_depth(job.id, deepest[job.id])
            if job.depth >= deepest[job.id]:
                continue  # it, and all below it, are that deep already
            for child in await _children(context, job):
                if child.state is State.BLOCKED and deepest.get(child.id, 0) <= deepest[job.id]:
                    deepest[child.id] = deepest[job.id] + 1
                    below[child.id] = child
        unread = list(below.values())


async def _children(context: Context, job: Job) -> Sequence[Job]:
    edges = await context.store.edges(parent_id=job.id)
    return list((await context.read([edge.child_id for edge in edges])).values())


async def _lift(context: Context, job: Job, priority: int, depth: int) -> Job | None:
    """The job with at least this priority and depth; None: it has them, or has ended, or is gone."""
    seen = job

    async def once() -> Job | None:
        nonlocal seen
        job = seen
        if job.is_terminal or (job.priority <= priority and job.depth >= depth):
            return None
        graph.check_depth(job.id, max(job.depth, depth))
        command = lifecycle.Update(
            priority=UNSET if job.priority <= priority else priority,
            depth=UNSET if job.depth >= depth else depth,
        )
        change = lifecycle.apply(job, command, context.now())
        (written,) = await context.store.update([change])
        if written:
            return change.after
        again = (await context.read([job.id])).get(job.id)
        if again is None:
            return None
        seen = again
        raise Again

    return await retried(
        once, f"job {job.id} kept changing while it was lifted; it was left as it is"
    )
