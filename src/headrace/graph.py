"""Dependencies between jobs: what a graph may look like, and when a blocked job may go. Pure.

A child waits until every parent it needs has completed and, if it has AFTER_ANY parents, until one
of those has ended in whatever way; a child that gathers waits until all of them have. A needed parent
that ends badly takes the child with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from headrace.errors import DependencyCycle, InvalidDependency
from headrace.model import DependencyKind, State

DEPENDENCIES_MAX = 1000
DEPTH_MAX = 100

GATHERS = "headrace:gathers"
"""A job with this tag waits for all of its AFTER_ANY parents to end, not only for the first."""

PROPAGATED: Mapping[State, State] = {
    State.FAILED: State.FAILED,
    State.DEAD: State.DEAD,
    State.CANCELLED: State.CANCELLED,
    State.ABANDONED: State.CANCELLED,
}
"""What becomes of a child whose needed parent ended so. When several broke, the first in this order
decides: the same on every store."""


class Join(msgspec.Struct, frozen=True):
    """How far the parents of one child are: four facts, each cheap for a store to probe."""

    needs_open: bool
    """A parent that must complete has not ended yet."""
    needs_broken: State | None
    """How a parent that must complete ended instead, if one did."""
    any_open: bool
    """There is an AFTER_ANY parent that has not ended."""
    any_ended: bool
    """There is an AFTER_ANY parent that has ended."""


class Wait(msgspec.Struct, frozen=True):
    """Not yet."""


class Go(msgspec.Struct, frozen=True):
    """The child may run."""


class Fall(msgspec.Struct, frozen=True):
    """The child ends with the parent that broke."""

    target: State


Verdict = Wait | Go | Fall


def judge(join: Join) -> Verdict:
    """What a blocked child does now. A broken parent decides at once; the rest need not end first."""
    if join.needs_broken is not None:
        return Fall(PROPAGATED[join.needs_broken])
    if join.needs_open or (join.any_open and not join.any_ended):
        return Wait()
    return Go()


def seen_by(tags: Sequence[str], join: Join) -> Join:
    """The facts as they count for a child with these tags: to one that gathers, none ended until all did."""
    if GATHERS not in tags:
        return join
    return replace(join, any_ended=join.any_ended and not join.any_open)


def join_of(parents: Sequence[tuple[DependencyKind, State | None]]) -> Join:
    """The facts, from a list of (kind, outcome or None while open). What a store's probes must equal."""
    needs = [outcome for kind, outcome in parents if kind is not DependencyKind.AFTER_ANY]
    any_of = [outcome for kind, outcome in parents if kind is DependencyKind.AFTER_ANY]
    return Join(
        needs_open=None in needs,
        needs_broken=next((state for state in PROPAGATED if state in needs), None),
        any_open=None in any_of,
        any_ended=any(outcome is not None for outcome in any_of),
    )


def order(children: Mapping[str, Sequence[str]]) -> list[str]:
    """The jobs of a batch, parents first. `children` maps a job to its parents within the batch.

    Raises DependencyCycle, naming one circle. Linear in jobs and dependencies, without recursion.
    """
    waiting = {child: len(parents) for child, parents in children.items()}
    released_by: dict[str, list[str]] = {}
    for child, parents in children.items():
        for parent in parents:
            released_by.setdefault(parent, []).append(child)
    ready = [child for child, count in waiting.items() if count == 0]
    ordered: list[str] = []
    for job in ready:  # grows while it is walked
        ordered.append(job)
        for child in released_by.get(job, ()):
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if len(ordered) < len(children):
        raise DependencyCycle(
            f"dependencies form a circle: {' -> '.join(_circle(children, set(ordered)))}; "
            "nothing was stored"
        )
    return ordered


def check_width(job: str, count: int) -> None:
    if count > DEPENDENCIES_MAX:
        raise InvalidDependency(
            f"job {job} has {count} dependencies, the limit is {DEPENDENCIES_MAX}; nothing was stored"
        )


def check_depth(job: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise InvalidDependency(
            f"job {job} is {depth} dependencies deep, the limit is {DEPTH_MAX}; nothing was stored"
        )


def _circle(children: Mapping[str, Sequence[str]], done: set[str]) -> list[str]:
    """Walk up from any job left over: every one of them has a parent left over, so it must repeat."""
    job = next(job for job in children if job not in done)
    path: list[str] = []
    while job not in path:
        path.append(job)
        job = next(parent for parent in children[job] if parent not in done)
    return [*path[path.index(job) :], job]
