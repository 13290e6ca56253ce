"""Rescheduling: a job that waits for its time is given another."""

from __future__ import annotations

from datetime import timedelta

from headrace.errors import InvalidTime, InvalidTransition, JobNotFound, JobTerminal
from headrace.manager import JobManager
from headrace.model import EventKind, State
from headrace.policy import Policy
from headrace.retry import Constant
from headrace.spec import JobSpec
from headrace.stores.base import EventQuery
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import suite

PART = "rescheduling"
LATER = timedelta(hours=1)


async def _manager(env: Env) -> JobManager:
    return await env.manager(Policy(backoff=Constant(initial=60.0, jitter=False)))


async def _ids(manager: JobManager, *tags: str) -> list[str]:
    return [job.id for job in await manager.claim("w", limit=9, tags=tags)]


@suite.case(PART, "a delayed job and a waiting retry are due at once, in the order of their times")
async def brought_forward(env: Env) -> None:
    for tags in ((), ("x",), ("x", "y")):
        manager = await _manager(env)
        name = "-".join(tags)
        await manager.submit(JobSpec(id=f"{name}retry", type="t", tags=tags))
        (claimed,) = await manager.claim("w")
        await manager.fail(claimed.id, claimed.token, "no")
        later = env.clock.now() + LATER
        await manager.submit(JobSpec(id=f"{name}delayed", type="t", tags=tags, run_at=later))
        assert not await _ids(manager, *tags)
        delayed = (await manager.reschedule(f"{name}delayed")).job
        env.clock.advance(1)
        retry = (await manager.reschedule(f"{name}retry")).job
        assert (delayed.state, retry.state) == (State.PENDING, State.PENDING)
        assert (retry.failures, retry.run_at) == (1, env.clock.now())
        assert await _ids(manager, *tags) == [f"{name}delayed", f"{name}retry"]


@suite.case(PART, "a job is put off: claimable at the new time, not a microsecond before")
async def put_off(env: Env) -> None:
    manager = await _manager(env)
    await manager.submit(JobSpec(id="j", type="t"))
    when = env.clock.now() + LATER
    assert (await manager.reschedule("j", when)).job.run_at == when
    env.clock.set(when - timedelta(microseconds=1))
    assert not await _ids(manager)
    env.clock.set(when)
    assert await _ids(manager) == ["j"]


@suite.case(PART, "the log says so, and counts as the job's stand: folded it is the row")
async def told(env: Env) -> None:
    manager = await _manager(env)
    await manager.submit(JobSpec(id="j", type="t"))
    cursor = await manager.tail()
    when = env.clock.now() + LATER
    job = (await manager.reschedule("j", when)).job
    (event,) = await manager.store.events(EventQuery(after=cursor))
    assert (event.kind, event.before, event.after) == (
        EventKind.RESCHEDULED,
        State.PENDING,
        State.PENDING,
    )
    assert (event.run_at, event.version) == (when, job.version)
    assert await manager.get("j") == job
    counted = await manager.stats()
    assert [(tally.jobs, tally.delayed) for tally in counted.tallies] == [(1, 1)]


@suite.case(PART, "a job that runs, is blocked, has ended or is unknown is refused and stays")
async def refused(env: Env) -> None:
    manager = await _manager(env)
    await manager.submit(JobSpec(id="runs", type="t"))
    await manager.claim("w")
    await manager.submit(JobSpec(id="blocked", type="t", after=["runs"]))
    await manager.submit(JobSpec(id="ended", type="t"))
    await manager.cancel(["ended"])
    for job_id, error in (
        ("runs", InvalidTransition),
        ("blocked", InvalidTransition),
        ("ended", JobTerminal),
    ):
        before = await manager.get(job_id)
        with raises(error):
            await manager.reschedule(job_id)
        assert await manager.get(job_id) == before
    with raises(JobNotFound):
        await manager.reschedule("none")
    with raises(InvalidTime):
        await manager.reschedule("runs", env.clock.now().replace(tzinfo=None))
