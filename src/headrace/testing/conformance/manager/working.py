"""Claims and outcomes: budgets, retries, fencing, and capacity that is freed."""

from __future__ import annotations

import asyncio
from datetime import timedelta, timezone

from headrace import errors
from headrace.errors import PermanentError, TemporaryError
from headrace.manager import Completed, Failed, JobManager, Released
from headrace.model import Category, Failure, Job, Lease, State
from headrace.policy import CancelMode, Policy
from headrace.retry import Constant, Exponential
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take, unchanged

EXACT = Policy(backoff=Exponential(initial=1.0, multiplier=2.0, jitter=False))


@suite.case("held", "says which leases hold, without extending any, and of which to stop")
async def held(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=10.0))
    for job_id in ("goes on", "stops", "lapses"):
        await submit(manager, job_id, lease_seconds=5.0 if job_id == "lapses" else 10.0)
    claimed = {job.id: job for job in await manager.claim("w", limit=3)}
    leases = [job.lease for job in claimed.values() if job.lease is not None]
    await manager.cancel(["stops"])
    env.clock.advance(7)
    made_up = Lease("goes on", "made up")
    states = await manager.held([made_up, *leases, Lease("nowhere", "x")])
    assert states == {"goes on": State.RUNNING, "stops": State.CANCELLING}
    assert await manager.held([made_up]) == {}
    assert (await manager.get("goes on")).lease_until == claimed["goes on"].lease_until


@suite.case("complete", "keeps the result, frees the worker, and stays for ever")
async def complete(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    job, token = await take(manager, "j", "w1")
    env.clock.advance(2)
    changed = await manager.complete("j", token, {"n": 1})
    assert changed.freed == {"w1": 1}
    assert (changed.job.state, changed.job.result) == (State.COMPLETED, {"n": 1})
    assert changed.job.finalized_at == env.clock.now()
    assert (changed.job.assignee, changed.job.assigned_at) == ("w1", job.assigned_at)
    assert await manager.get("j") == changed.job
    with raises(errors.JobTerminal):
        await manager.complete("j", token)
    with raises(errors.JobTerminal):
        await manager.fail("j", token, "no")


@suite.case("fail", "temporary failures are retried with backoff until the budget is spent: dead")
async def budget(env: Env) -> None:
    manager = await env.manager(EXACT)
    await submit(manager, "j")
    for number, delay in ((1, 1.0), (2, 2.0)):
        job, token = await take(manager, "j")
        assert job.attempt == number
        changed = await manager.fail("j", token, f"no {number}")
        assert changed.freed == {"w": 1}
        assert (changed.job.state, changed.job.failures) == (State.RETRYING, number)
        assert changed.job.run_at == env.clock.now() + timedelta(seconds=delay)
        assert changed.job.failure == Failure(f"no {number}", Category.TEMPORARY)
        assert not await manager.claim("w")
        env.clock.advance(delay)
    _, token = await take(manager, "j")
    last = (await manager.fail("j", token, "no 3")).job
    assert (last.state, last.failures, last.finalized_at) == (State.DEAD, 3, env.clock.now())
    env.clock.advance(1e6)
    assert not await manager.claim("w")


@suite.case(
    "fail", "a permanent error ends the job at once, with its code, even on the last attempt"
)
async def permanent(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    await submit(manager, "j")
    _, token = await take(manager, "j")
    job = (await manager.fail("j", token, PermanentError("bad row", code="E7"))).job
    assert (job.state, job.failure) == (State.FAILED, Failure("bad row", Category.PERMANENT, "E7"))


@suite.case("fail", "retry_after and retry_at override the backoff, retry_at exactly")
async def overrides(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "a")
    _, token = await take(manager, "a")
    job = (await manager.fail("a", token, TemporaryError("busy", retry_after=77.5))).job
    assert job.run_at == env.clock.now() + timedelta(seconds=77.5)
    await submit(manager, "b")
    _, token = await take(manager, "b")
    when = env.clock.now() + timedelta(days=3, microseconds=123_457)
    job = (await manager.fail("b", token, "no", retry_at=when, retry_after=5)).job
    assert job.run_at == when
    assert (await manager.get("b")).run_at == when
    await submit(manager, "c")
    _, token = await take(manager, "c")
    east = when.astimezone(timezone(timedelta(hours=5)))
    job = (await manager.fail("c", token, "no", retry_at=east)).job
    assert (job.run_at, job.run_at.utcoffset()) == (when, timedelta(0))


@suite.case("fail", "a retry past the budget is refused even with a retry_at")
async def past_budget(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    await submit(manager, "j")
    _, token = await take(manager, "j")
    job = (await manager.fail("j", token, "no", retry_at=env.clock.now())).job
    assert job.state is State.DEAD


@suite.case("fail", "a job's own backoff and budget come before its queue's")
async def own_backoff(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", backoff=Constant(initial=9.0, jitter=False), max_attempts=None)
    for _ in range(6):
        _, token = await take(manager, "j")
        job = (await manager.fail("j", token, "no")).job
        assert (job.state, job.run_at) == (State.RETRYING, env.clock.now() + timedelta(seconds=9))
        env.clock.advance(9)


@suite.case("fail", "what is retried is the policy's choice, by category")
async def retry_on(env: Env) -> None:
    manager = await env.manager(Policy(retry_on=frozenset({Category.TEMPORARY})))
    wanted = {
        Category.TEMPORARY: State.RETRYING,
        Category.TIMEOUT: State.FAILED,
        Category.SYSTEM: State.FAILED,
        Category.PERMANENT: State.FAILED,
    }
    for category, state in wanted.items():
        await submit(manager, category.value)
        _, token = await take(manager, category.value)
        job = (await manager.fail(category.value, token, "no", category=category)).job
        assert job.state is state
        assert job.failure is not None
        assert job.failure.category is category
    with raises(errors.InvalidInput):
        await manager.fail("temporary", "t", "no", category=Category.CANCELLED)


@suite.case("snooze and release", "cost nothing: the attempt counts, the budget does not")
async def free_of_charge(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    await submit(manager, "j")
    for number in range(5):
        job, token = await take(manager, "j")
        assert job.attempt == number * 2 + 1
        snoozed = await manager.snooze("j", token, seconds=10)
        assert snoozed.freed == {"w": 1}
        assert not await manager.claim("w")
        env.clock.advance(10)
        _, token = await take(manager, "j")
        released = (await manager.release("j", token)).job
        assert (released.state, released.failures, released.losses) == (State.RETRYING, 0, 0)
    _, token = await take(manager, "j")
    assert (await manager.complete("j", token)).job.state is State.COMPLETED


@suite.case("release", "puts the job back to the front of its line")
async def front(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(3)])
    (job,) = await manager.claim("w")
    await manager.release(job.id, job.token)
    assert [one.id for one in await manager.claim("w", limit=3)] == ["j0", "j1", "j2"]


@suite.case("stop", "ends a running job as cancelled, with the worker's words")
async def stop(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    _, token = await take(manager, "j")
    changed = await manager.stop("j", token, "asked to")
    assert (changed.job.state, changed.freed) == (State.CANCELLED, {"w": 1})
    assert changed.job.failure == Failure("asked to", Category.CANCELLED)


@suite.case("fencing", "guard order: not found, cancelled, terminal, token, lease")
async def guard_order(env: Env) -> None:
    manager = await env.manager()
    for name in ("cancelled", "completed", "running"):
        await submit(manager, name, lease_seconds=10)
    tokens = {job.id: job.token for job in await manager.claim("w", limit=3)}
    await manager.cancel(["cancelled"], mode=CancelMode.IMMEDIATE)
    await manager.complete("completed", tokens["completed"])
    env.clock.advance(10)
    for write in (_complete, _fail, _snooze, _release, _stop, _progress, _checkpoint, _spawn):
        with raises(errors.JobNotFound):
            await write(manager, "nobody", "x")
        with raises(errors.JobCancelled):
            await write(manager, "cancelled", "x")
        with raises(errors.JobTerminal):
            await write(manager, "completed", "x")
        with raises(errors.StaleToken):
            await write(manager, "running", "x")
        with raises(errors.LeaseExpired):
            await write(manager, "running", tokens["running"] or "")
    assert (await manager.get("running")).state is State.RUNNING


async def _complete(manager: JobManager, job_id: str, token: str) -> None:
    await manager.complete(job_id, token)


async def _fail(manager: JobManager, job_id: str, token: str) -> None:
    await manager.fail(job_id, token, "no")


async def _snooze(manager: JobManager, job_id: str, token: str) -> None:
    await manager.snooze(job_id, token, seconds=1)


async def _release(manager: JobManager, job_id: str, token: str) -> None:
    await manager.release(job_id, token)


async def _stop(manager: JobManager, job_id: str, token: str) -> None:
    await manager.stop(job_id, token)


async def _progress(manager: JobManager, job_id: str, token: str) -> None:
    await manager.progress(job_id, token, 0.5)


async def _checkpoint(manager: JobManager, job_id: str, token: str) -> None:
    await manager.checkpoint(job_id, token, 1)


async def _spawn(manager: JobManager, job_id: str, token: str) -> None:
    await manager.spawn(job_id, token, [JobSpec(type="t")])


@suite.case("fencing", "a zombie's token is refused on every write once another holds the job")
async def zombie(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", lease_seconds=10)
    _, old = await take(manager, "j", "zombie")
    env.clock.advance(10)
    await manager.reap()
    job, new = await take(manager, "j", "heir")
    assert (job.attempt, job.losses) == (2, 1)
    assert new != old
    before = await unchanged(manager)
    for write in (_complete, _fail, _snooze, _release, _stop, _progress, _checkpoint, _spawn):
        with raises(errors.StaleToken):
            await write(manager, "j", old)
    beats = await manager.heartbeat([Lease("j", old, 10.0)])
    assert isinstance(beats.refused["j"], errors.StaleToken)
    assert await manager.get("j") == job
    assert await unchanged(manager) == before
    await manager.complete("j", new)


@suite.case("fencing", "tokens of one job never repeat and grow with the attempt")
async def tokens(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    seen: list[str] = []
    for number in range(1, 6):
        _, token = await take(manager, "j")
        assert token.startswith(f"{number}.")
        seen.append(token)
        await manager.release("j", token)
    assert len(set(seen)) == 5


@suite.case("heartbeat", "many leases in one call: extended, cancelled and lost told apart")
async def heartbeats(env: Env) -> None:
    manager = await env.manager()
    names = ("good", "cancelling", "cancelled", "ended", "gone")
    for name in names[:4]:
        await submit(manager, name, lease_seconds=10)
    jobs = {job.id: job for job in await manager.claim("w", limit=9)}
    await manager.cancel(["cancelling"])
    await manager.cancel(["cancelled"], mode=CancelMode.IMMEDIATE)
    await manager.complete("ended", jobs["ended"].token)
    env.clock.advance(9)
    leases = [job.lease for job in jobs.values() if job.lease] + [Lease("gone", "x", 10.0)]
    beats = await manager.heartbeat(leases)
    assert set(beats.extended) == {"good", "cancelling"}
    assert beats.extended["cancelling"].state is State.CANCELLING
    assert beats.extended["good"].lease_until == env.clock.now() + timedelta(seconds=10)
    kinds = {name: type(error) for name, error in beats.refused.items()}
    assert kinds == {
        "cancelled": errors.JobCancelled,
        "ended": errors.JobTerminal,
        "gone": errors.JobNotFound,
    }
    env.clock.advance(10)
    late = await manager.heartbeat([lease for lease in leases if lease.job_id == "good"])
    assert isinstance(late.refused["good"], errors.LeaseExpired)


@suite.case("heartbeat", "keeps a job that runs longer than its lease with one worker")
async def long_job(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", lease_seconds=10)
    job, token = await take(manager, "j")
    assert job.lease is not None
    for _ in range(20):
        env.clock.advance(9)
        await manager.heartbeat([job.lease])
        assert not (await manager.reap()).jobs
        assert not await manager.claim("other")
    await manager.complete("j", token)


@suite.case("progress and checkpoint", "are read back, survive the attempt and write no event")
async def notes(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    _, token = await take(manager, "j")
    cursor = await manager.tail()
    await manager.progress("j", token, 0.5, "half way")
    await manager.checkpoint("j", token, {"row": 7})
    job = await manager.get("j")
    assert (job.progress, job.progress_note, job.checkpoint) == (0.5, "half way", {"row": 7})
    assert await manager.tail() == cursor
    await manager.fail("j", token, "no", retry_after=0)
    again, _ = await take(manager, "j")
    assert again.checkpoint == {"row": 7}


@suite.case(
    "settle", "many outcomes in one call: each answered in order, the refused ones alone refused"
)
async def settle(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", id=name) for name in ("a", "b", "c", "d")])
    jobs = {job.id: job for job in await manager.claim("w", limit=4)}
    settled = await manager.settle(
        [
            Completed(job_id="a", token=jobs["a"].token, result=1, known=jobs["a"]),
            Completed(job_id="b", token="stale"),  # noqa: S106 - a lease token, and a wrong one
            Failed(job_id="c", token=jobs["c"].token, failure=Failure("no", Category.PERMANENT)),
            Released(job_id="d", token=jobs["d"].token, known=jobs["d"]),
            Completed(job_id="nobody", token="x"),  # noqa: S106 - as above
            Completed(job_id="a", token=jobs["a"].token),
            Completed(job_id="d", token="x", result=object()),  # noqa: S106 - as above
        ]
    )
    kinds = [out.state if isinstance(out, Job) else type(out) for out in settled.outcomes]
    assert kinds == [
        State.COMPLETED,
        errors.StaleToken,
        State.FAILED,
        State.RETRYING,
        errors.JobNotFound,
        errors.JobTerminal,
        errors.InvalidPayload,
    ]
    assert settled.freed == {"w": 3}


@suite.case(
    "settle", "a job known from the claim is refused by what is stored, not by what was known"
)
async def settle_known(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", lease_seconds=10)
    job, token = await take(manager, "j")
    env.clock.advance(8)
    assert job.lease is not None
    await manager.heartbeat([job.lease])
    env.clock.advance(8)  # past the lease as it was known, within the lease as it is
    settled = await manager.settle([Completed(job_id="j", token=token, known=job)])
    (done,) = settled.outcomes
    assert isinstance(done, Job)
    assert done.state is State.COMPLETED


@suite.case("claim", "from many workers at once: every job to exactly one, and completed once")
async def many_workers(env: Env) -> None:
    manager = await env.manager()
    await manager.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(200)])
    done: list[str] = []

    async def work(name: str) -> None:
        while jobs := await manager.claim(name, limit=7):
            for job in jobs:
                await manager.complete(job.id, job.token)
                done.append(job.id)

    await asyncio.gather(*(work(f"w{n}") for n in range(12)))
    assert sorted(done) == sorted(f"j{n}" for n in range(200))
    assert (await manager.stats()).states[State.COMPLETED] == 200


@suite.case(
    "budget", "failures and losses together: a job that keeps killing its worker ends dead, SYSTEM"
)
async def poison(env: Env) -> None:
    manager = await env.manager(EXACT)
    await submit(manager, "j", lease_seconds=10)
    _, token = await take(manager, "j")
    await manager.fail("j", token, "no")
    for state in (State.LOST, State.DEAD):
        env.clock.advance(100)
        await take(manager, "j")
        env.clock.advance(100)
        (job,) = (await manager.reap()).jobs
        assert job.state is state
        assert job.failure is not None
        assert job.failure.category is Category.SYSTEM
    assert (job.failures, job.losses, job.attempt) == (1, 2, 3)


@suite.case(
    "heartbeat", "of two leases of one job only the present one holds, and the other is named"
)
async def two_leases(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", lease_seconds=10)
    old, _ = await take(manager, "j")
    env.clock.advance(10)
    await manager.reap()
    new, token = await take(manager, "j")
    assert old.lease is not None
    assert new.lease is not None
    for leases in ([old.lease, new.lease], [new.lease, old.lease]):
        beats = await manager.heartbeat(leases)
        assert set(beats.extended) == {"j"}
        assert isinstance(beats.refused["j"], errors.StaleToken)
        assert beats.lost == (old.lease,)
    await manager.complete("j", token)


@suite.case("fail", "a message that no store could keep is recorded in words that all can")
async def odd_message(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    _, token = await take(manager, "j")
    job = (await manager.fail("j", token, "file \udcff\0 gone" + "x" * 200_000, retry_after=0)).job
    assert job == await manager.get("j")
    assert job.failure is not None
    assert job.failure.message.startswith("file ?\ufffd gone")
    assert len(job.failure.message) == 100_000


@suite.case("progress and checkpoint", "a checkpoint of None replaces what was there")
async def checkpoint_none(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    _, token = await take(manager, "j")
    await manager.checkpoint("j", token, {"at": 1})
    await manager.progress("j", token, 0.5, "line 1\nline 2")
    assert (await manager.get("j")).checkpoint == {"at": 1}
    await manager.checkpoint("j", token, None)
    assert (await manager.get("j")).checkpoint is None
