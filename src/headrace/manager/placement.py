"""Where the jobs of a batch stand among their dependencies: state, priority, depth, edges, guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from headrace import graph, lifecycle, validation
from headrace.errors import DependencyCycle, DependencyNotFound
from headrace.manager.context import Context
from headrace.manager.graph_reads import GraphReads
from headrace.manager.priority_inheritance import lift
from headrace.model import Dependency, DependencyKind, Edge, Event, Job, State
from headrace.spec import stricter
from headrace.stores.base import Fence, Kin


class KeyRule(msgspec.Struct, frozen=True):
    """How long a job's idempotency key holds."""

    window_seconds: float | None
    """None: without end."""
    released_when_terminal: bool


NO_KEY = KeyRule(window_seconds=None, released_when_terminal=True)
"""Of a job that has none."""


class Draft(msgspec.Struct, frozen=True):
    """A checked job of a batch, with what it waits for."""

    job: Job
    dependencies: tuple[Dependency, ...]
    key_rule: KeyRule
    riders: tuple[Draft, ...] = ()
    """Jobs that wait for this one's end: stored with it, and left out if it is there already."""
    like: Job | None = None
    """What this one and others of the batch are, but for id and payload: the same object for each."""

    @property
    def whole(self) -> list[Draft]:
        """This draft and all that is stored with it, itself first."""
        if not self.riders:
            return [self]
        return [self, *(one for rider in self.riders for one in rider.whole)]


class Placement(msgspec.Struct, frozen=True):
    born: Sequence[tuple[Job, Event]]
    """In the order of the drafts."""
    edges: Sequence[Edge] = ()
    parents: Mapping[str, State | None] = {}
    """The stored parents and their outcome as read: the guard of the insertion."""
    kin: Mapping[str, Kin] = {}
    """What else of the graph the places were computed from: the other guard."""


async def place(
    context: Context, drafts: Sequence[Draft], twins: Mapping[str, str], spawner: Fence | None
) -> Placement:
    """Place every draft, parents first. `twins` maps a draft's id to the id it goes by."""
    if spawner is None and not any(draft.dependencies for draft in drafts):
        return Placement(_born_at_once(drafts))
    batch = {draft.job.id: draft.job for draft in drafts}
    needs = {draft.job.id: _by_twin(draft.dependencies, twins) for draft in drafts}
    reads = GraphReads(context)
    needs = await _with_spawned(context, reads, needs)
    if spawner is not None:
        needs = _with_mates(needs, batch.values(), spawner.job_id)
    stored = await _stored_parents(context, batch, needs)
    order = graph.order(
        {
            child: [need.job_id for need in wanted if need.job_id in batch]
            for child, wanted in needs.items()
        }
    )
    born: dict[str, tuple[Job, Event]] = {}
    edges: list[Edge] = []
    for job_id in order:
        known = [
            (need.kind, born[need.job_id][0] if need.job_id in born else stored[need.job_id])
            for need in needs[job_id]
        ]
        job, waits, into = _among(batch[job_id], known)
        born[job_id] = lifecycle.submit(job, needs[job_id], waits=waits)
        edges += into
    if spawner is not None:
        # What a spawned job brings along is not itself spawned: a join does not wait for a webhook.
        spawned = [job for job, _ in born.values() if job.parent_id is not None]
        edges += await _joined_by(context, reads, spawner, spawned, edges)
    for job in stored.values():
        reads.stands(job)
    parents = {job_id: _outcome(job) for job_id, job in stored.items()}
    return Placement([born[draft.job.id] for draft in drafts], edges, parents, reads.kin)


def _born_at_once(drafts: Sequence[Draft]) -> list[tuple[Job, Event]]:
    """Jobs that wait for nothing. Of those that are alike one is worked out, the others are made like it."""
    events: dict[int, Event] = {}
    born = []
    for draft in drafts:
        like = events.get(id(draft.like))
        if like is not None:
            born.append(lifecycle.submit_alike(draft.job, like))
            continue
        born.append(lifecycle.submit(draft.job))
        if draft.like is not None:
            events[id(draft.like)] = born[-1][1]
    return born


def _by_twin(
    dependencies: Sequence[Dependency], twins: Mapping[str, str]
) -> tuple[Dependency, ...]:
    renamed = (replace(need, job_id=twins.get(need.job_id, need.job_id)) for need in dependencies)
    merged: dict[str, Dependency] = {}
    for need in renamed:
        merged[need.job_id] = stricter(merged[need.job_id], need) if need.job_id in merged else need
    return tuple(merged.values())


async def _with_spawned(
    context: Context, reads: GraphReads, needs: Mapping[str, tuple[Dependency, ...]]
) -> dict[str, tuple[Dependency, ...]]:
    """A join waits for what its parents, and those in turn, have spawned so far and spawn from now on."""
    widened = {}
    for child, wanted in needs.items():
        more = {need.job_id: need for need in wanted}
        spawners = [
            need.job_id
            for need in wanted
            if need.kind is DependencyKind.FAN_IN and need.job_id not in needs
        ]
        for spawner in spawners:  # grows while it is walked
            for job in await reads.spawned(spawner):
                if job.id == child or job.id in needs or not context.sees(job):
                    continue
                if job.id not in more or more[job.id].kind is not DependencyKind.FAN_IN:
                    more[job.id] = Dependency(job.id, DependencyKind.FAN_IN)
                    spawners.append(job.id)
            graph.check_width(child, len(more))
        graph.check_width(child, len(more))
        widened[child] = tuple(more.values())
    return widened


def _with_mates(
    needs: Mapping[str, tuple[Dependency, ...]], batch: Iterable[Job], spawner_id: str
) -> dict[str, tuple[Dependency, ...]]:
    """A join that is spawned by what it waits for waits for what is spawned with it, too.

    But not for what waits for such a join itself.
    """
    behind = [
        child
        for child, wanted in needs.items()
        if any(need.job_id == spawner_id and need.kind is DependencyKind.FAN_IN for need in wanted)
    ]
    if not behind:
        return dict(needs)
    joins = set(behind)
    for job_id in behind:  # grows while it is walked
        for child, wanted in needs.items():
            if child not in behind and any(need.job_id == job_id for need in wanted):
                behind.append(child)
    mates = [job.id for job in batch if job.parent_id == spawner_id and job.id not in behind]
    widened = dict(needs)
    for join in joins:
        more = {need.job_id: need for need in needs[join]}
        more |= {mate: Dependency(mate, DependencyKind.FAN_IN) for mate in mates}
        graph.check_width(join, len(more))
        widened[join] = tuple(more.values())
    return widened


async def _stored_parents(
    context: Context, batch: Mapping[str, Job], needs: Mapping[str, Sequence[Dependency]]
) -> dict[str, Job]:
    """The parents that are not of the batch. They must exist, in the child's own tenant."""
    ids = {need.job_id for wanted in needs.values() for need in wanted if need.job_id not in batch}
    stored = dict(await context.read(sorted(ids)))
    for child, wanted in needs.items():
        for need in wanted:
            parent = batch.get(need.job_id) or stored.get(need.job_id)
            if parent is None or parent.tenant != batch[child].tenant:
                raise DependencyNotFound(
                    f"job {child} depends on {need.job_id}, which was not found; {validation.UNCHANGED}"
                )
    return stored


def _among(job: Job, parents: Sequence[tuple[DependencyKind, Job]]) -> tuple[Job, bool, list[Edge]]:
    """The job with its depth and priority, whether it must wait, and its edges."""
    depth = max((parent.depth + 1 for _, parent in parents), default=0)
    graph.check_depth(job.id, depth)
    # A dependent job is as urgent as the most urgent job it waits for.
    priority = min([job.priority, *(parent.priority for _, parent in parents)])
    join = graph.join_of([(kind, _outcome(it)) for kind, it in parents])
    goes = isinstance(graph.judge(graph.seen_by(job.tags, join)), graph.Go)
    # A job that may go needs no second look. One that must fall is stored blocked with an outcome not
    # seen yet, so that it falls by the same path, and after a crash by the same sweep, as any other.
    edges = [
        Edge(it.id, job.id, kind, _outcome(it), seen=goes and it.is_terminal)
        for kind, it in parents
    ]
    return replace(job, depth=depth, priority=priority), not goes, edges


async def _joined_by(
    context: Context,
    reads: GraphReads,
    spawner: Fence,
    spawned: Sequence[Job],
    edges: Sequence[Edge],
) -> list[Edge]:
    """Whoever waits for the spawner by FAN_IN waits for what it spawns, too."""
    joins = await reads.joins(spawner.job_id)
    if not joins or not spawned:
        return []
    new = {edge.child_id for edge in edges}
    above = await reads.ancestors({edge.parent_id for edge in edges} - new)
    for join in joins:
        if join in above:
            raise DependencyCycle(
                f"a job spawned by {spawner.job_id} would wait for {join}, which waits for all that "
                f"{spawner.job_id} spawns; {validation.UNCHANGED}"
            )
        graph.check_width(join, len(await reads.parents(join)) + len(spawned))
        reads.bound(join, graph.DEPENDENCIES_MAX - len(spawned))
    urgent = min(job.priority for job in spawned)
    deepest = max(job.depth for job in spawned)
    for waiting in (await context.read(joins)).values():
        if waiting.state is State.BLOCKED:
            reads.stands(await lift(context, waiting, urgent, deepest + 1))
    return [Edge(job.id, join, DependencyKind.FAN_IN) for join in joins for job in spawned]


def _outcome(job: Job) -> State | None:
    return job.state if job.is_terminal else None
