"""What is submitted in a storm: batches of every shape, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from headrace import Dependency, DependencyKind, Job, JobSpec, State
from headrace.stores.base import KeyScope
from tests.faults.app import scope_of

SUBMITTERS = 2
"""Clients that share the plan: batches with ids by turns, batches with keys each of them."""


class Batch(msgspec.Struct, frozen=True):
    """Jobs that are submitted in one call."""

    number: int
    specs: Sequence[JobSpec]

    def is_for(self, client: int) -> bool:
        """Batches with keys are submitted by every client."""
        return self.specs[0].key is not None or self.number % SUBMITTERS == client

    @property
    def keys(self) -> list[KeyScope | None]:
        return [None if one.key is None else scope_of(one.type, one.key) for one in self.specs]


def plan(jobs: int, seed: int) -> list[Batch]:
    """As many jobs as asked for, in batches."""
    batches: list[Batch] = []
    left = jobs
    for number, specs in enumerate(_shapes(random.Random(seed))):
        batches.append(Batch(number, specs[:left]))
        left -= len(batches[-1].specs)
        if left == 0:
            return batches
    raise AssertionError("shapes never end")


_BAD_ENDS = {
    "fail_always": {State.DEAD},
    "fail_for_good": {State.FAILED},
    "wait_to_be_cancelled": {State.COMPLETED, State.CANCELLED, State.ABANDONED},
}


def misfits(jobs: Iterable[Job]) -> Iterator[str]:
    """Jobs that did not end as they were meant to: no kill and no stop may change how a job ends."""
    for job in jobs:
        fell = job.failure is not None and job.failure.code == "dependency"
        if not fell and job.state not in _BAD_ENDS.get(job.type, {State.COMPLETED}):
            yield f"job {job.id} ({job.type}) is {job.state}: {job.failure}"


def _shapes(dice: random.Random) -> Iterator[list[JobSpec]]:
    shapes: Sequence[tuple[Callable[[random.Random, str], list[JobSpec]], int]] = (
        (_loose, 8),
        (_keyed, 3),
        (_chain, 2),
        (_fan_out_and_in, 2),
        (_after_any, 1),
        (_falling, 1),
        (_spawning, 1),
    )
    makers = [make for make, _ in shapes]
    weights = [weight for _, weight in shapes]
    sure = [_sampler, *makers]  # a small storm has some of everything, too
    number = 0
    earlier: dict[int, list[str]] = {}
    while True:
        make = sure.pop() if sure else dice.choices(makers, weights)[0]
        specs = make(dice, f"b{number}")
        client = number % SUBMITTERS
        known = earlier.get(client, [])
        if make is _chain and known:
            # Its first waits for jobs of an earlier batch, which may have ended by then or not.
            after = dice.sample(known, k=min(2, len(known)))
            specs = [msgspec.structs.replace(specs[0], after=after), *specs[1:]]
        ids = [one.id for one in specs if one.id is not None and one.type.startswith("work")]
        earlier[client] = ids or known
        yield specs
        number += 1


def _loose(dice: random.Random, prefix: str) -> list[JobSpec]:
    return [_any_job(dice, f"{prefix}-{n}") for n in range(dice.randint(10, 40))]


def _sampler(dice: random.Random, prefix: str) -> list[JobSpec]:
    """Several of each kind that stands alone."""
    kinds = [kind for kind, _ in _KINDS] * 4
    return [_of_kind(kind, dice, f"{prefix}-{n}") for n, kind in enumerate(kinds)]


_KINDS = (
    ("wait_to_be_cancelled", 1),
    ("work_in_child", 3),
    ("fail_at_first", 10),
    ("fail_always", 3),
    ("snooze_once", 5),
    ("work", 78),
)
"""Jobs that stand alone, and how many in a hundred."""


def _any_job(dice: random.Random, id: str) -> JobSpec:
    (kind,) = dice.choices([kind for kind, _ in _KINDS], [share for _, share in _KINDS])
    return _of_kind(kind, dice, id)


def _of_kind(kind: str, dice: random.Random, id: str) -> JobSpec:
    match kind:
        case "work":
            return _work(dice, id)
        case "work_in_child":
            return JobSpec(type=kind, id=id, payload={"seconds": 0.1})
        case "fail_at_first":
            return JobSpec(type=kind, id=id, payload={"times": dice.randint(1, 3)})
        case "fail_always":
            return JobSpec(type=kind, id=id, payload={}, max_attempts=3)
        case _:
            return JobSpec(type=kind, id=id, payload={})


def _work(dice: random.Random, id: str | None, **more: Any) -> JobSpec:
    type_ = dice.choice(["work", "work", "work_in_thread"])
    seconds = round(dice.choice([0.0, dice.uniform(0, 0.3), dice.uniform(0.3, 1.2)]), 3)
    return JobSpec(type=type_, id=id, payload={"seconds": seconds}, **more)


def _keyed(dice: random.Random, prefix: str) -> list[JobSpec]:
    return [_work(dice, None, key=f"{prefix}/{n}") for n in range(dice.randint(2, 20))]


def _chain(dice: random.Random, prefix: str) -> list[JobSpec]:
    length = dice.randint(2, 6)
    return [
        _work(dice, f"{prefix}-{n}", after=[f"{prefix}-{n - 1}"] if n else [])
        for n in range(length)
    ]


def _fan_out_and_in(dice: random.Random, prefix: str) -> list[JobSpec]:
    width = dice.randint(2, 10)
    root = _work(dice, f"{prefix}-root")
    middle = [f"{prefix}-{n}" for n in range(width)]
    return [
        root,
        *(_work(dice, one, after=[f"{prefix}-root"]) for one in middle),
        _work(dice, f"{prefix}-join", after=middle),
    ]


def _after_any(dice: random.Random, prefix: str) -> list[JobSpec]:
    parents = [
        JobSpec(type="fail_for_good", id=f"{prefix}-bad", payload={}),
        _work(dice, f"{prefix}-good"),
    ]
    after = [Dependency(f"{prefix}-{name}", DependencyKind.AFTER_ANY) for name in ("bad", "good")]
    return [*parents, _work(dice, f"{prefix}-any", after=after)]


def _falling(dice: random.Random, prefix: str) -> list[JobSpec]:
    """What depends on a job that ends badly ends with it, two levels down."""
    bad = dice.choice(["fail_for_good", "fail_always"])
    budget: Any = 3 if bad == "fail_always" else None
    return [
        JobSpec(type=bad, id=f"{prefix}-bad", payload={}, max_attempts=budget),
        _work(dice, f"{prefix}-child", after=[f"{prefix}-bad"]),
        _work(dice, f"{prefix}-grandchild", after=[f"{prefix}-child"]),
    ]


def _spawning(dice: random.Random, prefix: str) -> list[JobSpec]:
    """A job that spawns others, and one that waits for it and for all that it spawns."""
    join = [Dependency(f"{prefix}-spawner", DependencyKind.FAN_IN)]
    return [
        JobSpec(type="spawn", id=f"{prefix}-spawner", payload={"count": dice.randint(1, 4)}),
        _work(dice, f"{prefix}-join", after=join),
    ]
