"""The fuzz: so many calls of everything public, from one seed; what is not refused by name is a leak."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from headrace.app import Context
from headrace.contracts import backend_api, conformance, job_model, job_store, queue_semantics
from headrace.manager import JobManager
from tests.fuzz.calls import Call, Leak, attempt
from tests.fuzz.surfaces import (
    Surface,
    methods_of,
    of_application,
    of_manager,
    values_and_functions,
)
from tests.fuzz.values import Made, Maker
from tests.fuzz.world import World

REFRESH = 40
"""After so many calls there are new jobs to name."""
CONTRACTS: Sequence[tuple[str, Any]] = (
    ("backend_api.Queue", backend_api.Queue),
    ("queue_semantics.Queue", queue_semantics.Queue),
    ("job_model.Queue", job_model.Queue),
    ("job_store.JobStore", job_store.JobStore),
    ("job_store.JobManager", job_store.JobManager),
    ("conformance.Backend", conformance.Backend),
)


@dataclass
class Report:
    seed: int
    calls: int = 0
    by_place: Counter[str] = field(default_factory=Counter)
    leaks: list[Leak] = field(default_factory=list)

    @property
    def kinds(self) -> dict[tuple[str, str, str], list[Leak]]:
        found: dict[tuple[str, str, str], list[Leak]] = {}
        for leak in self.leaks:
            found.setdefault(leak.kind, []).append(leak)
        return found

    def __str__(self) -> str:
        verbs, kinds = len(self.by_place), len(self.kinds)
        lines = [
            f"seed {self.seed}: {self.calls} calls of {verbs} verbs, {len(self.leaks)} leaks of {kinds} kinds"
        ]
        for (place, error, where), leaks in sorted(
            self.kinds.items(), key=lambda item: -len(item[1])
        ):
            first = leaks[0]
            lines.append(f"{len(leaks):6} × {place}: {error} at {where}")
            lines.append(f"         call {first.number}: {first.call[:300]}")
        return "\n".join(lines)


async def fuzz(url: str, *, seed: int, calls: int, first: int = 0) -> Report:
    """`first`: with which number to begin, to repeat a part of a longer run."""
    report = Report(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of coroutines that a refused call never awaited
        world = await World.open(url)
        try:
            await _go_through(report, _own(world), world, calls * 3 // 5, first)
            await world.check()
            async with _contracts(url) as surfaces:
                await _go_through(report, surfaces, world, calls * 2 // 5, first)
            await world.check()
        finally:
            await world.app.close()
    return report


Surfaces = Callable[[], Iterator[Surface]]


def _own(world: World) -> Surfaces:
    def found() -> Iterator[Surface]:
        yield from values_and_functions()
        yield from of_manager(world.manager, "JobManager")
        yield from of_manager(world.manager.scoped("acme"), "JobManager(tenant)")
        tasks = [world.app.tasks["add"], world.app.tasks["report"]]
        context = Context(world.app, world.held, world.manager)
        yield from of_application(world.app, tasks, context)

    return found


@contextlib.asynccontextmanager
async def _contracts(url: str) -> AsyncIterator[Surfaces]:
    async with contextlib.AsyncExitStack() as stack:
        opened = [
            (name, await stack.enter_async_context(await kind.open(url)))
            for name, kind in CONTRACTS
        ]
        yield lambda: (one for name, target in opened for one in methods_of(target, name))


async def _go_through(
    report: Report, surfaces: Surfaces, world: World, calls: int, first: int
) -> None:
    found: list[Surface] = []
    for number in range(first, first + calls):
        dice = Random(f"{report.seed}:{number}")
        if not found or number % REFRESH == 0:
            await world.renew(dice)
            found = list(surfaces())
        surface = dice.choice(found)
        leak = await attempt(call_of(surface, dice, world.made), number)
        report.calls += 1
        report.by_place[surface.name] += 1
        if leak is not None:
            report.leaks.append(leak)
        if number % REFRESH == REFRESH - 1:
            await asyncio.sleep(0)


def call_of(surface: Surface, dice: Random, made: Made) -> Call:
    args, kwargs = Maker(dice, made).arguments(surface.function)
    return Call(surface.name, surface.function, args, kwargs, surface.own_errors)


__all__ = ["JobManager", "Report", "fuzz"]
