"""4. Timeout Rules: the four timeouts, their defaults, and behaviors 1 to 4."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

from headrace.contracts.job_model import (
    FailureCategory,
    InvalidLimit,
    JobRequest,
    JobState,
    JobTerminal,
    LeaseExpired,
    Queue,
    RetryConfig,
    StaleToken,
    SubmissionTimeout,
    TimeoutConfig,
)
from headrace.manager import JobManager
from headrace.manager.submission import SUBMISSION_TIMEOUT_SECONDS
from headrace.stores.base import JobStore
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

TYPES = "4. Timeout Types"
BEHAVIOR = "4. Timeout Behavior"
DAY = 86_400


class SilentStore:
    """A store whose insertions are never acknowledged."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def insert(self, insertion: object) -> object:
        await asyncio.Event().wait()
        return insertion


@suite.case(TYPES, "defaults: execution 30 min, visibility 5 min, submission 30 s, lifetime 7 d")
async def defaults(env: Env) -> None:
    config = TimeoutConfig()
    assert (config.execution, config.visibility, config.lifetime) == (1800, 300, 7 * DAY)
    queue = await open_queue(env)
    assert queue.submission_timeout == SUBMISSION_TIMEOUT_SECONDS == 30
    job = await queue.get(await queue.submit("t"))
    assert job.timeout == config
    assert job.expires_at == env.clock.now() + timedelta(days=7)
    assert (await claimed(queue)).lease_until == env.clock.now() + timedelta(minutes=5)


@suite.case("4. Timeout Configuration", "a job's own execution, visibility and lifetime")
async def configuration(env: Env) -> None:
    queue = await open_queue(env)
    config = TimeoutConfig(timedelta(seconds=10), 60, timedelta(hours=1))
    job = await queue.get(await queue.submit("t", timeout=config))
    assert job.timeout == TimeoutConfig(execution=10, visibility=60, lifetime=3600)
    assert (await claimed(queue)).lease_until == env.clock.now() + timedelta(seconds=60)
    for name in ("execution", "visibility", "lifetime"):
        for bad in (0, -1, float("inf")):
            with raises(InvalidLimit):
                TimeoutConfig(**{name: bad})


@suite.case(f"{TYPES}: Submission Timeout", "a store that does not acknowledge is given up on")
async def submission(env: Env) -> None:
    behind = await open_queue(env)
    store = cast("JobStore", SilentStore(behind.manager.store))
    manager = JobManager(store, clock=env.clock, policies=behind.manager.policies)
    queue = Queue(manager, submission_timeout=0.01)
    with raises(SubmissionTimeout):
        await queue.submit("t")
    assert await behind.claim("w") is None


@suite.case(f"{BEHAVIOR}: 1. Execution timeout exceeded", "failed with TIMEOUT, then retried")
async def execution(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", timeout=TimeoutConfig(execution=10))
    job = await claimed(queue)
    env.clock.advance(9.999)
    assert await queue.time_out() == ()
    assert await state(queue, job_id) is JobState.RUNNING
    env.clock.advance(0.001)
    (late,) = await queue.time_out()
    assert (late.id, late.state) == (job_id, JobState.RETRYING)
    assert late.failure is not None
    assert late.failure.category is FailureCategory.TIMEOUT
    with raises(StaleToken):
        await queue.complete(job_id, token_of(job))
    env.clock.advance(1)
    assert (await claimed(queue)).attempt == 2


@suite.case(f"{BEHAVIOR}: 1. Execution timeout exceeded", "heartbeats do not put it off")
async def execution_despite_heartbeats(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    for _ in range(7):
        env.clock.advance(240)
        await queue.heartbeat(job_id, token_of(job))
    assert await state(queue, job_id) is JobState.RUNNING
    env.clock.advance(120)
    after = await queue.get(job_id)
    assert after.state is JobState.RETRYING
    assert after.failure is not None
    assert after.failure.category is FailureCategory.TIMEOUT


@suite.case(f"{BEHAVIOR}: 1. Execution timeout exceeded", "on the last attempt: DEAD_LETTER")
async def execution_last_attempt(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit(
        "t", timeout=TimeoutConfig(execution=10), retry=RetryConfig(max_attempts=1)
    )
    await claimed(queue)
    env.clock.advance(10)
    assert await state(queue, job_id) is JobState.DEAD_LETTER


@suite.case(f"{BEHAVIOR}: 2. Visibility timeout exceeded", "reclaimed and rescheduled at once")
async def visibility(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    first = await claimed(queue, "crashed")
    env.clock.advance(299.999)
    assert await queue.reclaim() == ()
    assert await queue.claim("w2") is None
    env.clock.advance(0.001)
    with raises(LeaseExpired):
        await queue.complete(job_id, token_of(first))
    (orphan,) = await queue.reclaim()
    assert (orphan.id, orphan.state) == (job_id, JobState.SCHEDULED)
    assert orphan.failure is not None
    assert orphan.failure.category is FailureCategory.SYSTEM
    second = await claimed(queue, "w2")
    assert (second.id, second.attempt) == (job_id, 2)
    with raises(StaleToken):
        await queue.complete(job_id, token_of(first))


@suite.case(
    f"{BEHAVIOR}: 2. Visibility timeout exceeded", "a claim or a read needs no reclaim call"
)
async def visibility_implicit(env: Env) -> None:
    queue = await open_queue(env)
    for look in (False, True):
        job_id = await queue.submit("t")
        job = await claimed(queue, "crashed")
        env.clock.advance(300)
        if look:
            assert await state(queue, job_id) is JobState.SCHEDULED
        job = await claimed(queue, "w2")
        assert (job.id, job.attempt) == (job_id, 2)
        await queue.complete(job_id, token_of(job))


@suite.case(f"{BEHAVIOR}: 2. Visibility timeout exceeded", "a heartbeat starts the window anew")
async def visibility_heartbeat(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", timeout=TimeoutConfig(visibility=60))
    job = await claimed(queue)
    for _ in range(5):
        env.clock.advance(59)
        beaten = await queue.heartbeat(job_id, token_of(job))
        assert beaten.lease_until == env.clock.now() + timedelta(seconds=60)
        assert await queue.claim("w2") is None
    with raises(StaleToken):
        await queue.heartbeat(job_id, "wrong")
    env.clock.advance(60)
    with raises(LeaseExpired):
        await queue.heartbeat(job_id, token_of(job))


@suite.case(
    f"{BEHAVIOR}: 2. Visibility timeout exceeded", "a job that kills its workers is not immortal"
)
async def visibility_bounded(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    for _ in range(3):
        await claimed(queue)
        env.clock.advance(300)
    assert await queue.claim("w") is None
    assert await state(queue, job_id) is JobState.DEAD_LETTER


@suite.case(f"{BEHAVIOR}: 3. Total lifetime exceeded", "DEAD_LETTER from every live state")
async def lifetime(env: Env) -> None:
    queue = await open_queue(env)
    short = TimeoutConfig(lifetime=120)
    parent = await queue.submit("other", delay=1)
    waiting = {
        JobState.PENDING: await queue.submit("w", timeout=short, dependencies=[parent]),
        JobState.SCHEDULED: await queue.submit("w", timeout=short),
        JobState.DELAYED: await queue.submit("w", timeout=short, delay=3600),
    }
    retry = RetryConfig(initial_delay=3600)
    waiting[JobState.RETRYING] = await queue.submit("r", timeout=short, retry=retry)
    job = await claimed(queue, types=["r"])
    await queue.fail(job.id, token_of(job), "no")
    waiting[JobState.RUNNING] = await queue.submit("x", timeout=short)
    running = await claimed(queue, types=["x"])
    for expected, job_id in waiting.items():
        assert await state(queue, job_id) is expected
    env.clock.advance(119.999)
    assert await queue.end_lifetimes() == ()
    env.clock.advance(0.001)
    dead = await queue.end_lifetimes()
    assert {one.id for one in dead} == set(waiting.values())
    for job_id in waiting.values():
        after = await queue.get(job_id)
        assert (after.state, after.completed_at) == (JobState.DEAD_LETTER, env.clock.now())
        assert after.failure is not None
        assert after.failure.category is FailureCategory.TIMEOUT
    with raises(JobTerminal):
        await queue.complete(running.id, token_of(running))


@suite.case(f"{BEHAVIOR}: 3. Total lifetime exceeded", "an ended job is left as it ended")
async def lifetime_of_ended(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    done = await queue.complete(job_id, token_of(job), 1)
    env.clock.advance(8 * DAY)
    await queue.maintain()
    assert await queue.get(job_id) == done


@suite.case(f"{BEHAVIOR}: 3. Total lifetime exceeded", "no worker gets a job past its lifetime")
async def lifetime_before_claim(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    env.clock.advance(7 * DAY)
    assert await queue.claim("w") is None
    assert await state(queue, job_id) is JobState.DEAD_LETTER


@suite.case(f"{BEHAVIOR}: 3. Total lifetime exceeded", "a report that comes later is refused")
async def report_after_lifetime(env: Env) -> None:
    queue = await open_queue(env, timeout=TimeoutConfig(600, 600, 120))
    for report in (queue.complete, queue.fail):
        job_id = await queue.submit("t")
        job = await claimed(queue)
        env.clock.advance(120)
        with raises(JobTerminal):
            await report(job_id, token_of(job), "late")
        assert await state(queue, job_id) is JobState.DEAD_LETTER


@suite.case(f"{BEHAVIOR}: 1. Execution timeout exceeded", "a report that comes later is refused")
async def report_after_timeout(env: Env) -> None:
    queue = await open_queue(env, timeout=TimeoutConfig(60, 600, DAY))
    for report in (queue.complete, queue.fail):
        in_time = await queue.submit("in time")
        late = await queue.submit("late")
        jobs = {job.id: job for job in await queue.claim_batch("w", 2)}
        env.clock.advance(59.999)
        await report(in_time, token_of(jobs[in_time]), "just so")
        env.clock.advance(0.001)
        with raises(StaleToken):
            await report(late, token_of(jobs[late]), "late")
        after = await queue.get(late)
        assert (after.state, after.attempt) == (JobState.RETRYING, 1)
        assert after.failure is not None
        assert after.failure.category is FailureCategory.TIMEOUT
        await queue.cancel(late)
        await queue.cancel(in_time) if report == queue.fail else None


Write = Callable[[Queue, str, str], Awaitable[object]]
WRITES: tuple[Write, ...] = (
    lambda queue, job_id, token: queue.heartbeat(job_id, token),
    lambda queue, job_id, token: queue.checkpoint(job_id, token, 7),
    lambda queue, job_id, token: queue.spawn(job_id, token, [JobRequest(type="child")]),
    lambda queue, job_id, token: queue.complete(job_id, token),
    lambda queue, job_id, token: queue.fail(job_id, token, "late"),
)


@suite.case(
    f"{BEHAVIOR}: 3. Total lifetime exceeded",
    "heartbeat, checkpoint and spawn are refused as complete and fail are",
)
async def writes_after_lifetime(env: Env) -> None:
    queue = await open_queue(env, timeout=TimeoutConfig(600, 600, 120))
    for write in WRITES:
        job_id = await queue.submit("t")
        job = await claimed(queue)
        env.clock.advance(120)
        with raises(JobTerminal):
            await write(queue, job_id, token_of(job))
        after = await queue.get(job_id)
        assert (after.state, after.checkpoint) == (JobState.DEAD_LETTER, None)
    assert await queue.claim("w", types=["child"]) is None


@suite.case(
    f"{BEHAVIOR}: 1. Execution timeout exceeded",
    "heartbeat, checkpoint and spawn are refused as complete and fail are",
)
async def writes_after_timeout(env: Env) -> None:
    queue = await open_queue(env, timeout=TimeoutConfig(60, 600, DAY))
    for write in WRITES:
        job_id = await queue.submit("t")
        job = await claimed(queue)
        env.clock.advance(60)
        with raises(StaleToken):
            await write(queue, job_id, token_of(job))
        after = await queue.get(job_id)
        assert (after.state, after.checkpoint) == (JobState.RETRYING, None)
        await queue.cancel(job_id)
    assert await queue.claim("w", types=["child"]) is None


@suite.case(f"{BEHAVIOR}: 4. Handler-specified timeout", "shorter is granted, longer is refused")
async def handler_specified(env: Env) -> None:
    queue = await open_queue(env)
    for asked in (0.5, 1799, 1800):
        job_id = await queue.submit("t", timeout=TimeoutConfig(execution=asked))
        assert (await queue.get(job_id)).timeout.execution == asked
    too_long: list[float | None] = [1800.001, 3600, None]
    for longer in too_long:
        with raises(InvalidLimit):
            await queue.submit("long", timeout=TimeoutConfig(execution=longer))
    assert await queue.claim("w", types=["long"]) is None


@suite.case(f"{BEHAVIOR}: 4. Handler-specified timeout", "the system default can be set per queue")
async def system_default(env: Env) -> None:
    queue = await open_queue(env, timeout=TimeoutConfig(60, 30, 600))
    job = await queue.get(await queue.submit("t"))
    assert job.timeout == TimeoutConfig(60, 30, 600)
    with raises(InvalidLimit):
        await queue.submit("t", timeout=TimeoutConfig(execution=61))
