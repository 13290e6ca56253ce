"""Lapsed leases, vanished workers, lifetimes."""

from __future__ import annotations

import asyncio

from headrace.model import Category, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.suite import states, submit, suite, take


@suite.case("reap", "takes back lapsed leases and nothing else, at the very moment")
async def reap(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "short", lease_seconds=10)
    await submit(manager, "long", lease_seconds=20)
    await manager.claim("w1", limit=9)
    env.clock.advance(9.999)
    assert not (await manager.reap()).jobs
    env.clock.advance(0.001)
    changed = await manager.reap()
    assert (changed.job.id, changed.job.state, changed.freed) == ("short", State.LOST, {"w1": 1})
    assert changed.job.run_at < env.clock.now()
    assert (changed.job.token, changed.job.lease_until, changed.job.assignee) == (None, None, "w1")
    assert (await manager.get("long")).state is State.RUNNING
    again, _ = await take(manager, "short", "w2")
    assert again.attempt == 2


@suite.case("reap", "many reapers at once take each lease back once")
async def many_reapers(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", lease_seconds=1) for _ in range(50)])
    await manager.claim("w", limit=50)
    env.clock.advance(5)
    answers = await asyncio.gather(*(manager.reap() for _ in range(8)))
    assert sum(len(answer.jobs) for answer in answers) == 50
    assert sum(answer.freed.get("w", 0) for answer in answers) == 50
    assert sum(event.kind == "lost" for event in await manager.events()) == 50


@suite.case("reap", "up to its limit")
async def reap_limit(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", lease_seconds=1) for _ in range(5)])
    await manager.claim("w", limit=5)
    env.clock.advance(5)
    assert [len((await manager.reap(limit=2)).jobs) for _ in range(4)] == [2, 2, 1, 0]


@suite.case(
    "expire_worker", "everything of that worker, in one step; a worker without jobs is fine"
)
async def expire_worker(env: Env) -> None:
    manager = await env.manager()
    for name in ("a", "b", "c"):
        await submit(manager, name)
    await manager.claim("gone", limit=2)
    await manager.claim("alive", limit=1)
    await manager.cancel(["b"])
    changed = await manager.expire_worker("gone")
    assert changed.freed == {"gone": 2}
    assert await states(manager, ["a", "b", "c"]) == [State.LOST, State.ABANDONED, State.RUNNING]
    assert (await manager.get("a")).assignee == "gone"
    assert (await manager.expire_worker("gone")).jobs == ()
    assert (await manager.expire_worker("never seen")).jobs == ()


@suite.case("reset_running", "every leased job, of every worker")
async def reset(env: Env) -> None:
    manager = await env.manager()
    for name in ("a", "b", "c"):
        await submit(manager, name)
    await manager.claim("w1", limit=1)
    await manager.claim("w2", limit=1)
    await manager.cancel(["b"])
    changed = await manager.reset_running()
    assert changed.freed == {"w1": 1, "w2": 1}
    assert await states(manager, ["a", "b", "c"]) == [State.LOST, State.ABANDONED, State.PENDING]
    assert not (await manager.reset_running()).jobs


@suite.case("end_lifetimes", "whatever a job is doing, past its lifetime it is dead")
async def lifetimes(env: Env) -> None:
    manager = await env.manager(Policy(lifetime_seconds=100.0, lease_seconds=None))
    for name in ("running", "cancelling", "retrying", "done"):
        await submit(manager, name)
    tokens = {job.id: job.token for job in await manager.claim("w", limit=9)}
    await manager.cancel(["cancelling"])
    await manager.fail("retrying", tokens["retrying"], "no", retry_after=5000)
    await manager.complete("done", tokens["done"])
    await submit(manager, "pending")
    await submit(manager, "blocked", after=["pending"])
    await submit(manager, "endless", lifetime_seconds=None)
    env.clock.advance(99.999)
    assert not (await manager.end_lifetimes()).jobs
    env.clock.advance(0.001)
    changed = await manager.end_lifetimes()
    names = ["running", "cancelling", "retrying", "pending", "blocked"]
    assert {job.id for job in changed.jobs} <= set(names)
    assert await states(manager, names) == [State.DEAD] * 5
    assert await states(manager, ["done", "endless"]) == [State.COMPLETED, State.PENDING]
    assert changed.freed == {"w": 2}
    failure = (await manager.get("running")).failure
    assert failure is not None
    assert (failure.category, failure.code) == (Category.TIMEOUT, "lifetime")


@suite.case("maintain", "one round does it all, and is safe from many at once")
async def maintain(env: Env) -> None:
    manager = await env.manager(
        Policy(lifetime_seconds=1000.0, lease_seconds=10.0, keep_completed_seconds=50.0)
    )
    await submit(manager, "old")
    _, token = await take(manager, "old")
    await manager.complete("old", token)
    env.clock.advance(60)
    await submit(manager, "lost")
    await take(manager, "lost")
    env.clock.advance(20)
    rounds = await asyncio.gather(*(manager.maintain() for _ in range(4)))
    assert sum(len(one.reaped.jobs) for one in rounds) == 1
    assert sum(one.deleted.get(State.COMPLETED, 0) for one in rounds) >= 1
    assert (await manager.stats()).total == 1
    env.clock.advance(2000)
    assert (await manager.maintain()).outlived.job.id == "lost"
