"""Defects of the graph under concurrent writes, and of what deadlines refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from headrace import lifecycle
from headrace.manager import changes, deadlines, placement, priority_inheritance
from headrace.manager.context import Context
from headrace.manager.graph_reads import GraphReads
from headrace.model import DependencyKind, Edge, Job, State
from headrace.stores.base import Commit, Fence, Kin
from headrace.stores.memory import insert, leases
from headrace.stores.memory.tables import Tables
from tests.planted.defect import Defect, patched


def forgetting(field: str) -> Defect:
    """The defect of not comparing one of the facts around a job."""

    def forgets(tables: Tables, job_id: str, kin: Kin) -> bool:
        return right_as_read(tables, job_id, replace(kin, **{field: None}))

    return patched(insert, "is_as_read", forgets)


right_as_read = insert.is_as_read


async def joins_not_relied_on(self: GraphReads, parent_id: str) -> Sequence[str]:
    edges = await self._context.store.edges(parent_id=parent_id)
    return [edge.child_id for edge in edges if edge.kind is DependencyKind.FAN_IN]


async def spawned_not_relied_on(self: GraphReads, parent_id: str) -> Sequence[Job]:
    return await self._context.store.spawned(parent_id)


def width_not_bounded(self: GraphReads, child_id: str, parents_max: int) -> None:
    return None


async def judged_once(context: Context, touched: Sequence[Edge]) -> int:
    joins = await context.store.joins([edge.child_id for edge in touched])
    jobs = await context.store.get([edge.child_id for edge in touched])
    found = [
        lifecycle.apply(job, command, context.now())
        for job in jobs.values()
        if (command := changes._verdict(joins[job.id])) is not None
    ]
    seen = [(edge.parent_id, edge.child_id) for edge in touched]
    return sum((await context.store.commit(Commit(changes=found, seen=seen))).applied)


def seen_in_any_case(self: Commit, applied: Sequence[bool]) -> Sequence[tuple[str, str]]:
    return self.seen


async def not_lifted(context: Context, join: Job, priority: int, depth: int) -> Job:
    return join


async def lifted_alone(context: Context, join: Job, priority: int, depth: int) -> Job:
    await priority_inheritance._lift(context, join, priority, depth)
    return await context.read_one(join.id)


async def depths_not_checked(context: Context, join: Job, depth: int) -> None:
    return None


async def depth_kept(context: Context, job: Job, priority: int, depth: int) -> Job | None:
    return await right_lift(context, job, priority, 0)


right_lift = priority_inheritance._lift


def only_blocked_parents_stand(self: GraphReads, job: Job) -> None:
    if job.state is State.BLOCKED:
        right_stands(self, job)


right_stands = GraphReads.stands


def lifetime_ignored(job: Job, now: datetime) -> bool:
    return right_holds(replace(job, expires_at=None), now)


def timeout_ignored(job: Job, now: datetime) -> bool:
    return right_holds(replace(job, timeout_seconds=None), now)


def timeout_from_the_first_start(job: Job) -> datetime | None:
    if job.started_at is None or job.timeout_seconds is None:
        return None
    return job.started_at + timedelta(seconds=job.timeout_seconds)


right_holds = lifecycle.lease_holds


def fence_knows_only_leases(tables: Tables, fence: Fence, now: datetime) -> bool:
    job = tables.jobs.get(fence.job_id)
    return (
        job is not None
        and job.token == fence.token
        and (job.lease_until is None or job.lease_until > now)
    )


async def not_enforced(context: Context, job_ids: Sequence[str]) -> Mapping[str, int]:
    return {}


TOPICS = frozenset(
    {
        ("manager", "deadlines"),
        ("manager", "dependency_races"),
        ("store", "dependencies"),
        ("store", "insertion"),
        ("store", "leases"),
    }
)
"""The modules of the kit that are about these."""

DEFECTS: dict[str, Defect] = {
    "an insertion does not compare what a parent has spawned": forgetting("spawned"),
    "an insertion does not compare who joins a parent": forgetting("joins"),
    "an insertion does not compare how many parents a job has": forgetting("parents_max"),
    "an insertion does not compare the version of a blocked parent": forgetting("version"),
    "a parent that may run is not compared": patched(
        GraphReads, "stands", only_blocked_parents_stand
    ),
    "a spawn does not rely on who joins its job": patched(GraphReads, "joins", joins_not_relied_on),
    "a join does not rely on what its parents spawned": patched(
        GraphReads, "spawned", spawned_not_relied_on
    ),
    "circles and widths are not guarded": patched(GraphReads, "bound", width_not_bounded),
    "a child that changed while it was judged is forgotten": patched(
        changes, "ripple", judged_once
    ),
    "edges of a child that was not judged count as seen": patched(
        Commit, "seen_given", seen_in_any_case
    ),
    "a late spawn does not lift its join": patched(placement, "lift", not_lifted),
    "what waits for a join is not lifted with it": patched(placement, "lift", lifted_alone),
    "a join is lifted, and found to be too deep afterwards": patched(
        priority_inheritance, "_check_depths", depths_not_checked
    ),
    "a late spawn does not count for depths": patched(priority_inheritance, "_lift", depth_kept),
    "a holder may write past the lifetime": patched(lifecycle, "lease_holds", lifetime_ignored),
    "a holder may write past the execution timeout": patched(
        lifecycle, "lease_holds", timeout_ignored
    ),
    "the execution timeout counts from the first attempt": patched(
        lifecycle, "times_out_at", timeout_from_the_first_start
    ),
    "the store's fence knows no deadlines": patched(leases, "holds", fence_knows_only_leases),
    "what a late holder was refused for is not carried out": patched(
        deadlines, "enforce", not_enforced
    ),
}
