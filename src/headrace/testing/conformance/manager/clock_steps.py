"""Clocks that are set: what was stamped ahead comes back, and nothing comes before its time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from headrace import lifecycle
from headrace.limits import QueueLimits, Rate
from headrace.manager import JobManager
from headrace.model import EventKind, Lease, State
from headrace.policy import Policy
from headrace.retry import Constant
from headrace.stores.base import Insertion
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.suite import submit, suite, take

STEP = 600.0
BACKOFF = 20.0
POLICY = Policy(backoff=Constant(initial=BACKOFF, jitter=False), lease_seconds=30.0, max_attempts=5)


async def _ahead(env: Env) -> JobManager:
    """The clock jumps ahead, and maintenance goes on."""
    manager = await env.manager(POLICY)
    await manager.maintain()
    env.clock.advance(STEP)
    await manager.maintain()
    return manager


async def _back(env: Env, manager: JobManager) -> None:
    env.clock.advance(-STEP)
    await manager.maintain()


async def _claimed_within(env: Env, manager: JobManager, seconds: float) -> Sequence[str]:
    """What a worker gets that asks every second, with maintenance beside it."""
    found: list[str] = []
    for _ in range(int(seconds)):
        found += [job.id for job in await manager.claim("w", limit=10)]
        env.clock.advance(1)
        await manager.maintain()
    return found


async def _is_in_order(manager: JobManager, job_id: str) -> bool:
    at = [event.at for event in await manager.events(job_id=job_id)]
    return at == sorted(at)


@suite.case("clock steps", "what was submitted while the clock was ahead is due when it is back")
async def submitted_ahead(env: Env) -> None:
    manager = await _ahead(env)
    await submit(manager, "j")
    await submit(manager, "parent", priority=0)
    await submit(manager, "child", after=["parent"])
    env.clock.advance(-STEP)
    assert await manager.claim("w", limit=10) == ()
    await manager.maintain()
    jobs = {job.id: job for job in await manager.claim("w", limit=10)}
    assert sorted(jobs) == ["j", "parent"]
    for job in jobs.values():
        assert job.run_at == env.clock.now()
        assert job.lease_until == env.clock.now() + timedelta(seconds=30)
        kinds = [event.kind for event in await manager.events(job_id=job.id)]
        assert kinds == [EventKind.ENQUEUED, EventKind.RETIMED, EventKind.LEASED]
        assert await _is_in_order(manager, job.id)
    await manager.complete("parent", jobs["parent"].token)
    assert [job.id for job in await manager.claim("w")] == ["child"]


@suite.case("clock steps", "a try that a backoff put off ahead of time comes after that backoff")
async def retried_ahead(env: Env) -> None:
    manager = await env.manager(POLICY)
    await submit(manager, "j")
    _, token = await take(manager, "j")
    await manager.maintain()
    env.clock.advance(STEP)
    await manager.heartbeat([Lease("j", token, 30.0)])
    await manager.maintain()
    if (await manager.get("j")).state is State.LOST:  # its lease had lapsed, by the clock as it was
        _, token = await take(manager, "j")
    await manager.fail("j", token, "no")
    env.clock.advance(-STEP)
    failed_at = env.clock.now()
    await manager.maintain()
    job = await manager.get("j")
    assert job.run_at == failed_at + timedelta(seconds=BACKOFF)
    assert await _claimed_within(env, manager, BACKOFF) == []
    assert await _claimed_within(env, manager, 2) == ["j"]
    assert await _is_in_order(manager, "j")


@suite.case("clock steps", "a try is brought back once, however often maintenance looks")
async def brought_back_once(env: Env) -> None:
    step, backoff = 12.0, 300.0
    manager = await env.manager(POLICY)
    others = JobManager(manager.store, clock=env.clock, policies=manager.policies)
    for job_id, spread in (("plain", False), ("spread", True)):
        own = Constant(initial=backoff, jitter=spread)
        await submit(manager, job_id, lease_seconds=3600.0, backoff=own)
        _, token = await take(manager, job_id)
        await manager.maintain()
        env.clock.advance(step)
        await manager.fail(job_id, token, "no")
        await manager.maintain()
        env.clock.advance(-step)
        least = backoff * (0.9 if spread else 1)
        earliest = env.clock.now() + timedelta(seconds=least)
        for _ in range(20):
            await manager.maintain()
            await others.maintain()
            env.clock.advance(1)
        run_at = (await manager.get(job_id)).run_at
        assert earliest <= run_at <= earliest + timedelta(seconds=backoff * 0.2 + step)
        kinds = [event.kind for event in await manager.events(job_id=job_id)]
        assert kinds.count(EventKind.RETIMED) <= 1


@suite.case("clock steps", "a try comes back whole, though nobody saw how far the clock got")
async def unseen_reach(env: Env) -> None:
    manager = await _ahead(env)
    env.clock.advance(40)
    await submit(manager, "j")
    _, token = await take(manager, "j")
    await manager.fail("j", token, "no")
    env.clock.advance(-40)
    await _back(env, manager)
    assert (await manager.get("j")).run_at == env.clock.now() + timedelta(seconds=BACKOFF)


@suite.case("clock steps", "a retry at a time that lies within the backoff stays, too")
async def asked_within_backoff(env: Env) -> None:
    manager = await _ahead(env)
    await submit(manager, "j")
    _, token = await take(manager, "j")
    asked = env.clock.now() + timedelta(seconds=BACKOFF / 2)
    await manager.fail("j", token, "no", retry_at=asked)
    await _back(env, manager)
    assert (await manager.get("j")).run_at == asked


@suite.case("clock steps", "a backoff that nobody here knows is taken for the queue's")
async def unknown_backoff(env: Env) -> None:
    manager = await _ahead(env)
    drafted = await submit(await env.manager(POLICY), "drafted", run_at=env.clock.now())
    await manager.cancel(["drafted"])
    row, event = lifecycle.submit(
        replace(drafted, id="j", state=State.PENDING, backoff_json=b'{"kind":"of a later version"}')
    )
    await manager.store.insert(Insertion(jobs=[row], events=[event], now=env.clock.now()))
    _, token = await take(manager, "j")
    await submit(manager, "other")
    await manager.fail("j", token, "no")
    await _back(env, manager)
    assert (await manager.get("j")).run_at == env.clock.now() + timedelta(seconds=BACKOFF)
    assert (await take(manager, "other"))[0].id == "other"


def _register(scope: str, **wanted: Any) -> None:
    @suite.case("clock steps", f"the rate of a {scope} goes on by the clock as it is")
    async def rate(env: Env) -> None:
        manager = await env.manager(POLICY)
        await manager.set_limits("q", QueueLimits(**wanted))
        for number in range(8):
            await submit(manager, f"j{number}", queue="q", limit_key="k")
        await manager.maintain()
        env.clock.advance(STEP)
        await manager.maintain()
        assert len(await manager.claim("w", limit=10)) == 2
        await _back(env, manager)
        assert len(await manager.claim("w", limit=10)) <= 2
        started = 0
        for _ in range(20):
            env.clock.advance(1)
            await manager.maintain()
            started += len(await manager.claim("w", limit=10))
        assert started in (3, 4)  # one every five seconds, and nothing on top


_register("queue", rate=Rate(2, 10, burst=2))
_register("key", key_rate=Rate(2, 10, burst=2))


@suite.case("clock steps", "a failure after the step back is retried by the clock as it is")
async def failed_after(env: Env) -> None:
    manager = await _ahead(env)
    await submit(manager, "j")
    _, token = await take(manager, "j")
    env.clock.advance(-STEP)
    failed = (await manager.fail("j", token, "no")).job
    assert failed.run_at == env.clock.now() + timedelta(seconds=BACKOFF)
    assert await _claimed_within(env, manager, BACKOFF) == []
    assert await _claimed_within(env, manager, 2) == ["j"]


@suite.case("clock steps", "what callers asked for stays: a time, a retry at a time, a snooze")
async def asked_for(env: Env) -> None:
    manager = await _ahead(env)
    now = env.clock.now()
    asked = {
        "later": now + timedelta(seconds=5),
        "between": now - timedelta(seconds=STEP / 2),
        "retried": now + timedelta(seconds=BACKOFF + 1),
        "snoozed": now + timedelta(seconds=5),
    }
    await submit(manager, "retried")
    await submit(manager, "snoozed")
    for job in await manager.claim("w", limit=10):
        assert job.token is not None
        if job.id == "retried":
            await manager.fail(job.id, job.token, "no", retry_at=asked[job.id])
        else:
            await manager.snooze(job.id, job.token, until=asked[job.id])
    await submit(manager, "later", run_at=asked["later"])
    await submit(manager, "between", run_at=asked["between"])
    await _back(env, manager)
    for job_id, run_at in asked.items():
        assert (await manager.get(job_id)).run_at == run_at, job_id
    assert await _claimed_within(env, manager, 30) == []


@suite.case(
    "clock steps", "a lease that was stamped ahead ends when one from now would, not sooner"
)
async def leased_ahead(env: Env) -> None:
    manager = await _ahead(env)
    await submit(manager, "claimed")
    await take(manager, "claimed")
    await submit(manager, "extended")
    _, token = await take(manager, "extended")
    await manager.heartbeat([Lease("extended", token, 30.0)])
    await _back(env, manager)
    for job_id in ("claimed", "extended"):
        job = await manager.get(job_id)
        assert job.state is State.RUNNING
        assert job.lease_until == env.clock.now() + timedelta(seconds=30), job_id
        last = (await manager.events(job_id=job_id))[-1]
        assert (last.kind, last.lease_until) == (EventKind.RETIMED, job.lease_until)
    await manager.complete("extended", token)  # its holder lives, and the lease is still its own
    assert await _claimed_within(env, manager, 29) == []
    assert await _claimed_within(env, manager, 4) == ["claimed"]
    assert await _is_in_order(manager, "claimed")


@suite.case("clock steps", "a lease longer than its job's is not cut by more than the step")
async def long_lease(env: Env) -> None:
    manager = await env.manager(POLICY)
    await submit(manager, "j")
    await manager.claim("w", lease_seconds=3600.0)
    (job,) = (await manager.find()).jobs
    assert job.lease_until is not None
    env.clock.advance(STEP)
    await manager.maintain()
    await _back(env, manager)
    left = (await manager.get("j")).lease_until
    assert left is not None
    assert left >= job.lease_until - timedelta(seconds=STEP)


@suite.case(
    "clock steps", "new work after a step back starts at once, and its leases lapse in time"
)
async def new_work(env: Env) -> None:
    manager = await _ahead(env)
    await submit(manager, "old")
    env.clock.advance(-STEP)
    await submit(manager, "new")
    job, _ = await take(manager, "new")
    assert job.lease_until == env.clock.now() + timedelta(seconds=30)
    env.clock.advance(30)
    assert [lost.id for lost in (await manager.reap()).jobs] == ["new"]


@suite.case("clock steps", "a clock that keeps its course, or errs by a second, moves nothing")
async def no_step(env: Env) -> None:
    manager = await env.manager(POLICY)
    await submit(manager, "due")
    await submit(manager, "later", run_at=env.clock.now() + timedelta(seconds=900))
    await manager.claim("w")
    before = (await manager.find()).jobs
    for seconds in (1, -1, 5, -2, 20, 0):
        env.clock.advance(seconds)
        assert await manager.restamp() == 0
    assert (await manager.find()).jobs == before


@suite.case("clock steps", "a tenant's maintenance leaves the clock to the operator's")
async def of_a_tenant(env: Env) -> None:
    manager = await _ahead(env)
    await submit(manager, "j", tenant="acme")
    env.clock.advance(-STEP)
    assert await manager.scoped("acme").restamp() == 0
    assert await manager.restamp() == 1
