"""Jobs that wait for others: none goes early, none goes twice, none is forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace import graph
from headrace.model import TERMINAL, DependencyKind, Edge, Event, Job, State
from headrace.testing.checker.histories import Breach, History, Run, Said

FELL = "dependency"
"""The code of a job that fell with one it needed."""


def dependencies_kept(history: History) -> Iterator[Breach]:
    """No child before its parents, each released once, and no orphan left waiting for what has ended."""
    into: dict[str, list[Edge]] = {}
    for edge in history.edges:
        into.setdefault(edge.child_id, []).append(edge)
    ends = _ends(history)
    spawned: dict[str, list[str]] = {}
    for job in history.jobs.values():
        if job.parent_id is not None:
            spawned.setdefault(job.parent_id, []).append(job.id)
    for job in history.jobs.values():
        yield from _released_once(history, job)
        edges = into.get(job.id, [])
        if edges:
            yield from _in_order(history, job, edges, ends)
            yield from _in_order_of_runs(history, job, edges)
            yield from _forgotten(history, job, edges)
            yield from _joined(job, edges, spawned)
        elif job.state is State.BLOCKED:
            yield Breach(job.id, "it waits for nothing")


def _ends(history: History) -> dict[str, tuple[int, State]]:
    """Where in the log each job ended, and how."""
    return {
        event.job_id: (place, event.after)
        for place, event in enumerate(history.events)
        if event.after in TERMINAL
    }


def _released_once(history: History, job: Job) -> Iterator[Breach]:
    count = sum(_releases(event) for _, event in history.of_job.get(job.id, ()))
    if count > 1:
        yield Breach(job.id, f"it was released {count} times")


def _releases(event: Event) -> bool:
    """Born free, or unblocked. A job that waited before may be updated or rescheduled."""
    return event.after is State.PENDING and event.before in (None, State.BLOCKED)


def _in_order(
    history: History, job: Job, edges: Sequence[Edge], ends: Mapping[str, tuple[int, State]]
) -> Iterator[Breach]:
    for place, event in history.of_job.get(job.id, ()):
        if _releases(event):
            join = graph.join_of(_known(edges, ends, place))
            if not isinstance(graph.judge(graph.seen_by(job.tags, join)), graph.Go):
                yield Breach(job.id, "it was released before what it waits for had ended well")
        elif event.before is State.BLOCKED and event.code == FELL:
            # One of them must have ended so; others may have ended otherwise since it was judged.
            needed = [
                outcome
                for kind, outcome in _known(edges, ends, place)
                if kind is not DependencyKind.AFTER_ANY and outcome is not None
            ]
            if event.after not in [graph.PROPAGATED.get(outcome) for outcome in needed]:
                yield Breach(job.id, f"it is {event.after}, and no job it needed ended so")


def _known(
    edges: Sequence[Edge], ends: Mapping[str, tuple[int, State]], place: int
) -> list[tuple[DependencyKind, State | None]]:
    """The parents as they were at a place in the log."""
    known = []
    for edge in edges:
        ended_at, outcome = ends.get(edge.parent_id, (place, None))
        known.append((edge.kind, outcome if ended_at < place else None))
    return known


def _joined(
    job: Job, edges: Sequence[Edge], spawned: Mapping[str, Sequence[str]]
) -> Iterator[Breach]:
    """Who waits for a job by FAN_IN waits for all that it has spawned, whoever came first."""
    parents = {edge.parent_id for edge in edges}
    for edge in edges:
        # One that was spawned by the job it joins does not wait for what waits for itself.
        if edge.kind is DependencyKind.FAN_IN and job.parent_id != edge.parent_id:
            for one in spawned.get(edge.parent_id, ()):
                if one not in parents and one != job.id:
                    yield Breach(
                        job.id, f"it joins {edge.parent_id}, and not {one}, which that has spawned"
                    )


def _in_order_of_runs(history: History, job: Job, edges: Sequence[Edge]) -> Iterator[Breach]:
    """The same by the handlers' own word: it began after what it needed had returned."""
    first = min((run.began for run in _runs(history, job.id)), default=None)
    if first is None:
        return
    for edge in edges:
        if edge.kind is DependencyKind.AFTER_ANY:
            continue
        returned = [
            run.ended
            for run in _runs(history, edge.parent_id)
            if run.said is Said.COMPLETED and run.ended is not None
        ]
        if not returned or min(returned) > first:
            yield Breach(job.id, f"it ran before {edge.parent_id} had returned")


def _runs(history: History, job_id: str) -> Iterator[Run]:
    job = history.jobs.get(job_id)
    for attempt in range(1, (job.attempt if job is not None else 0) + 1):
        yield from history.runs_of.get((job_id, attempt), ())


def _forgotten(history: History, job: Job, edges: Sequence[Edge]) -> Iterator[Breach]:
    parents = {edge.parent_id: history.jobs.get(edge.parent_id) for edge in edges}
    for edge in edges:
        parent = parents[edge.parent_id]
        outcome = parent.state if parent is not None and parent.is_terminal else None
        if parent is not None and edge.outcome is not outcome:
            yield Breach(
                job.id, f"{edge.parent_id} is {parent.state}, its edge says {edge.outcome}"
            )
    if job.state is not State.BLOCKED:
        return
    join = graph.join_of([(edge.kind, edge.outcome) for edge in edges])
    if not isinstance(graph.judge(graph.seen_by(job.tags, join)), graph.Wait):
        yield Breach(job.id, "it is blocked, though all it waits for has been decided")
