"""The jobs around a job: what it waits for, what waits for it, what it spawned and was redriven as."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from headrace import validation
from headrace.manager import retention
from headrace.manager.context import Context
from headrace.model import Job, State

DEPTH = 3
DEPTH_MAX = 20
NODES = 200
NODES_MAX = 1000
SPAWNED = "spawned"
REDRIVEN = "redriven"


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a graph, without its contents."""

    id: str
    type: str
    queue: str
    state: State
    priority: int
    attempt: int
    progress: float | None
    depth: int
    """The longest chain of dependencies above it."""
    steps: int
    """How many links away from the job that was asked for."""
    created_at: datetime
    started_at: datetime | None
    finalized_at: datetime | None
    left_out: int = 0
    """How many neighbours it has that are no part of this graph, for want of room. Those of the outermost
    nodes are not looked at."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One job comes after another."""

    before: str
    after: str
    kind: str
    """That of the dependency, or `spawned`, or `redriven`."""
    outcome: State | None = None
    """Of a dependency: how the job that comes first ended; None while it has not."""


class JobGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs around one, as far as was asked for."""

    root: str
    nodes: tuple[Node, ...]
    """The nearest first."""
    links: tuple[Link, ...]
    """Those between nodes of the graph."""
    is_whole: bool
    """All that is linked to any of the nodes is among them. False: there may be more."""


async def graph(context: Context, job_id: str, *, depth: int, nodes_max: int) -> JobGraph:
    """Ring by ring around the job: the nearest are kept where there is no room for all."""
    validation.check_limit(depth, "depth", maximum=DEPTH_MAX)
    validation.check_limit(nodes_max, "nodes_max", maximum=NODES_MAX)
    root = await context.read_one(job_id)
    jobs: dict[str, tuple[Job, int]] = {root.id: (root, 0)}
    gone: set[str] = set()
    links: dict[tuple[str, str, str], Link] = {}
    around: dict[str, set[str]] = {}
    ring = [root]
    for steps in range(1, depth + 1):
        for job in ring:
            found = await _links_of(context, job)
            links |= {(one.before, one.after, one.kind): one for one in found}
            around[job.id] = {one.before for one in found} | {one.after for one in found}
        near = dict.fromkeys(other for job in ring for other in sorted(around[job.id]))
        room = nodes_max - len(jobs)
        fresh = [other for other in near if other not in jobs][: max(room, 0)]
        read = await context.read(fresh)
        gone.update(other for other in fresh if other not in read)
        ring = [read[other] for other in fresh if other in read]
        jobs |= {job.id: (job, steps) for job in ring}
        if not ring:
            break
    left_out = {job_id: len(others - jobs.keys() - gone) for job_id, others in around.items()}
    return JobGraph(
        root=root.id,
        nodes=tuple(_node(job, steps, left_out.get(job.id, 0)) for job, steps in jobs.values()),
        links=tuple(one for one in links.values() if one.before in jobs and one.after in jobs),
        is_whole=not ring and not any(left_out.values()),
    )


async def _links_of(context: Context, job: Job) -> list[Link]:
    """All that begin or end at this job."""
    store = context.store
    found = [
        Link(before=edge.parent_id, after=edge.child_id, kind=edge.kind, outcome=edge.outcome)
        for edge in (*await store.edges(child_id=job.id), *await store.edges(parent_id=job.id))
    ]
    if job.parent_id is not None:
        found.append(Link(before=job.parent_id, after=job.id, kind=SPAWNED))
    if job.started_at is not None:  # only a handler spawns
        found += _after(job, (one.id for one in await store.spawned(job.id)), SPAWNED)
    if job.previous_id is not None:
        found.append(Link(before=job.previous_id, after=job.id, kind=REDRIVEN))
    if job.state in retention.REDRIVABLE:
        heirs = await retention.latest_heirs(context, [job])
        found += _after(job, (one.id for one in heirs.values()), REDRIVEN)
    return found


def _after(job: Job, others: Iterable[str], kind: str) -> list[Link]:
    return [Link(before=job.id, after=other, kind=kind) for other in others]


def _node(job: Job, steps: int, left_out: int) -> Node:
    return Node(
        id=job.id,
        type=job.type,
        queue=job.queue,
        state=job.state,
        priority=job.priority,
        attempt=job.attempt,
        progress=job.progress,
        depth=job.depth,
        steps=steps,
        created_at=job.created_at,
        started_at=job.started_at,
        finalized_at=job.finalized_at,
        left_out=left_out,
    )
