"""Past its lifetime or its execution timeout a holder writes nothing, whoever looks first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from headrace import errors
from headrace.manager import JobManager
from headrace.model import Category, Lease, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take

Write = Callable[[JobManager, str, str], Awaitable[object]]


async def _beat(manager: JobManager, job_id: str, token: str) -> None:
    beats = await manager.heartbeat([Lease(job_id, token, 1000.0)])
    if job_id in beats.refused:
        raise beats.refused[job_id]


WRITES: dict[str, Write] = {
    "complete": lambda manager, job_id, token: manager.complete(job_id, token, "late"),
    "fail": lambda manager, job_id, token: manager.fail(job_id, token, "late"),
    "snooze": lambda manager, job_id, token: manager.snooze(job_id, token, seconds=1),
    "release": lambda manager, job_id, token: manager.release(job_id, token),
    "stop": lambda manager, job_id, token: manager.stop(job_id, token),
    "heartbeat": _beat,
    "progress": lambda manager, job_id, token: manager.progress(job_id, token, 0.5),
    "checkpoint": lambda manager, job_id, token: manager.checkpoint(job_id, token, 7),
    "spawn": lambda manager, job_id, token: manager.spawn(job_id, token, [JobSpec(type="child")]),
}


@suite.case("lifetime", "every write of a holder that comes later is refused, and the job is dead")
async def lifetime(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=1000.0, lifetime_seconds=60.0))
    for name, write in WRITES.items():
        await submit(manager, name)
        _, token = await take(manager, name)
        env.clock.advance(59.999999)
        await _beat(manager, name, token)
        env.clock.advance(0.000001)
        with raises(errors.LeaseExpired):
            await write(manager, name, token)
        job = await manager.get(name)
        assert (job.state, job.progress, job.checkpoint) == (State.DEAD, None, None), name
        assert job.failure is not None
        assert job.failure.category is Category.TIMEOUT
        with raises(errors.JobTerminal):
            await write(manager, name, token)
    assert not (await manager.find(types=["child"])).jobs


@suite.case(
    "execution timeout", "every write of a holder that comes later is refused, and it failed"
)
async def execution(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=1000.0, timeout_seconds=60.0))
    for name, write in WRITES.items():
        await submit(manager, name)
        _, token = await take(manager, name)
        env.clock.advance(60)
        await _beat(manager, name, token)
        env.clock.advance(0.000001)
        with raises(errors.LeaseExpired):
            await write(manager, name, token)
        job = await manager.get(name)
        assert (job.state, job.failures, job.checkpoint) == (State.RETRYING, 1, None), name
        assert job.failure is not None
        assert job.failure.category is Category.TIMEOUT
        with raises(errors.StaleToken):
            await write(manager, name, token)
        await manager.cancel([name])
    assert not (await manager.find(types=["child"])).jobs


@suite.case("execution timeout", "is what a holder may still report, but not past the lifetime")
async def reported(env: Env) -> None:
    manager = await env.manager(
        Policy(lease_seconds=1000.0, timeout_seconds=60.0, lifetime_seconds=300.0)
    )
    await submit(manager, "j")
    _, token = await take(manager, "j")
    env.clock.advance(61)
    job = (await manager.fail("j", token, "too slow", category=Category.TIMEOUT)).job
    assert job.state is State.RETRYING
    env.clock.advance(200)
    _, token = await take(manager, "j")
    env.clock.advance(60)
    with raises(errors.LeaseExpired):
        await manager.fail("j", token, "too slow", category=Category.TIMEOUT)


@suite.case("execution timeout", "counts from the claim of each attempt")
async def each_attempt(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=1000.0, timeout_seconds=60.0))
    await submit(manager, "j")
    for _ in range(3):
        job, token = await take(manager, "j")
        assert job.assigned_at == env.clock.now()
        env.clock.advance(60)
        await manager.release("j", token)
    assert (await manager.get("j")).updated_at == env.clock.now()


@suite.case("execution timeout", "a lease that has lapsed by then is the reaper's: a loss")
async def lapsed_first(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=30.0, timeout_seconds=60.0))
    await submit(manager, "j")
    _, token = await take(manager, "j")
    env.clock.advance(61)
    with raises(errors.LeaseExpired):
        await manager.complete("j", token)
    assert (await manager.get("j")).state is State.RUNNING
    (job,) = (await manager.reap()).jobs
    assert (job.state, job.losses) == (State.LOST, 1)


@suite.case("execution timeout", "a cancelling job whose holder comes later is cancelled")
async def cancelling(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=None, timeout_seconds=60.0))
    await submit(manager, "j")
    _, token = await take(manager, "j")
    await manager.cancel(["j"])
    env.clock.advance(61)
    with raises(errors.LeaseExpired):
        await _beat(manager, "j", token)
    job = await manager.get("j")
    assert (job.state, job.finalized_at) == (State.CANCELLED, env.clock.now())
    assert job.run_at == env.clock.now() - timedelta(seconds=61)
