"""Limits when several claim at once: none is passed, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, cast

from headrace.limits import QueueLimits, Rate
from headrace.manager import JobManager
from headrace.model import LEASED, Event
from headrace.stores.base import JobStore
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.limits import LEASE, claim, fill, limited
from headrace.testing.conformance.manager.suite import submit, suite

JOBS = 60


class Slow:
    """A store that lets others go first before each verb, as one behind a network does."""

    def __init__(self, behind: JobStore) -> None:
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._behind, name)

        async def later(*arguments: Any, **named: Any) -> Any:
            await asyncio.sleep(0)
            return await verb(*arguments, **named)

        return later


class Meddled:
    """A store where something happens between a claim's last look and the claim itself."""

    def __init__(self, behind: JobStore, meddle: Callable[[], Awaitable[Any]]) -> None:
        self._behind = behind
        self._meddle: Callable[[], Awaitable[Any]] | None = meddle

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._behind, verb)

    async def claim_shares(self, *arguments: Any) -> Any:
        meddle, self._meddle = self._meddle, None
        if meddle is not None:
            await meddle()
        return await self._behind.claim_shares(*arguments)


def second(manager: JobManager, store: Any) -> JobManager:
    """Another manager on the same store, as another process would have it."""
    return JobManager(cast("JobStore", store), clock=manager.clock, policies=manager.policies)


def slow(manager: JobManager) -> JobManager:
    return second(manager, Slow(manager.store))


async def every_event(manager: JobManager) -> list[Event]:
    found: list[Event] = []
    while page := await manager.events(after=found[-1].cursor if found else ""):
        found += page
    return found


def most_at_once(events: list[Event], group: Callable[[Event], object]) -> dict[object, int]:
    """From the log alone: how many leases each group had at the worst moment."""
    now: Counter[object] = Counter()
    most: dict[object, int] = {}
    for event in events:
        leased_before = event.before in LEASED
        now[group(event)] += (event.after in LEASED) - leased_before
        most[group(event)] = max(most.get(group(event), 0), now[group(event)])
    return most


async def drain(managers: list[JobManager], jobs: int, tasks: int = 3) -> None:
    """Several tasks of each manager claim, hold and complete until all is done."""
    done = 0

    async def work(manager: JobManager, number: int) -> None:
        nonlocal done
        while done < jobs:
            for job in await manager.claim(f"w{number}", limit=2):
                await asyncio.sleep(0)
                await manager.complete(job.id, job.token)
                done += 1

    workers = [(manager, number) for number in range(tasks) for manager in managers]
    await asyncio.gather(*(work(*worker) for worker in workers))


@suite.case(
    "limits under contention", "the log shows never more leases at a time than the queue allows"
)
async def hammered(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=3))
    await fill(manager, JOBS // 2, tenant="a")
    await fill(manager, JOBS // 2, tenant="b", type="u")
    await drain([slow(manager), slow(manager)], JOBS)
    assert 1 < most_at_once(await every_event(manager), lambda event: event.queue)["q"] <= 3


@suite.case(
    "limits under contention", "the same for each key, and the keys do not wait for each other"
)
async def hammered_keys(env: Env) -> None:
    manager = await limited(env, QueueLimits(key_concurrency=1, concurrency=4))
    for key in range(6):
        await fill(manager, JOBS // 6, limit_key=f"k{key}")
    keys = {job.id: job.limit_key for job in (await manager.find(limit=1000)).jobs}
    await drain([slow(manager), slow(manager)], JOBS)
    events = await every_event(manager)
    by_key = most_at_once(events, lambda event: keys[event.job_id])
    assert by_key == {f"k{key}": 1 for key in range(6)}
    assert 1 < most_at_once(events, lambda _: None)[None] <= 4


@suite.case("limits under contention", "no token is spent twice")
async def hammered_rate(env: Env) -> None:
    manager = await limited(env, QueueLimits(rate=Rate(7, 3600.0)))
    managers = [slow(manager), slow(manager)] * 4
    await fill(manager, 30)
    answers = await asyncio.gather(*(one.claim(f"w{n}", limit=3) for n, one in enumerate(managers)))
    again = await claim(manager)
    assert len(again) + sum(map(len, answers)) == 7


@suite.case(
    "limits under contention", "who finds the gate moved looks again, and takes what is left"
)
async def clash(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=3))
    await fill(manager, 5)
    late = second(manager, Meddled(manager.store, lambda: claim(manager, 2)))
    assert len(await late.claim("late", limit=3)) == 1
    assert not await claim(manager)


@suite.case("limits under contention", "limits removed or set between look and claim are obeyed")
async def moved(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1))
    await fill(manager, 5)
    tighter = QueueLimits(concurrency=2)
    late = second(manager, Meddled(manager.store, lambda: manager.set_limits("q", tighter)))
    assert len(await late.claim("late", limit=5)) == 2
    env.clock.advance(100)
    open_ = second(manager, Meddled(manager.store, lambda: manager.remove_limits("q")))
    taken = len(await open_.claim("late", limit=5))
    env.clock.advance(2)
    assert taken + len(await open_.claim("late", limit=5)) == 3


@suite.case("limits under contention", "tokens charged for jobs that were gone are given back")
async def given_back(env: Env) -> None:
    manager = await limited(env, QueueLimits(rate=Rate(3, 3600.0), key_rate=Rate(2, 3600.0)), LEASE)
    await submit(manager, "a", queue="q", limit_key="k")
    await submit(manager, "b", queue="q", limit_key="k")
    late = second(manager, Meddled(manager.store, lambda: manager.cancel(["a"])))
    assert [job.id for job in await late.claim("late", limit=5)] == ["b"]
    await fill(manager, 5, limit_key="k")
    assert len(await claim(manager)) == 1
    await fill(manager, 5, limit_key="l")
    assert [job.limit_key for job in await claim(manager)] == ["l"]
