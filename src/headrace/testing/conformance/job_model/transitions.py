"""2. Transition Rules: each row of the table, by its own name."""

from __future__ import annotations

from headrace.contracts.job_model import JobState, PermanentError, RetryConfig, TemporaryError
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    states,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env

PART = "2. Transition Rules"


@suite.case(f"{PART}: PENDING → SCHEDULED", "immediate execution requested, no delay")
async def pending_scheduled(env: Env) -> None:
    queue = await open_queue(env)
    first = await queue.submit("t")
    waits = await queue.submit("t", dependencies=[first])
    assert await states(queue, first, waits) == ["SCHEDULED", "PENDING"]
    await run(queue, first)
    assert await state(queue, waits) is JobState.SCHEDULED


@suite.case(f"{PART}: PENDING → DELAYED", "delay specified; waiting for the trigger time")
async def pending_delayed(env: Env) -> None:
    queue = await open_queue(env)
    first = await queue.submit("t")
    waits = await queue.submit("t", dependencies=[first], delay=60)
    alone = await queue.submit("t", delay=60)
    assert await states(queue, waits, alone) == ["PENDING", "DELAYED"]
    await run(queue, first)
    assert await state(queue, waits) is JobState.DELAYED
    assert await queue.claim("w") is None


@suite.case(f"{PART}: DELAYED → SCHEDULED", "delay expired: by the passing of time alone")
async def delayed_scheduled(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", delay=60)
    env.clock.advance(59.999)
    assert await state(queue, job_id) is JobState.DELAYED
    env.clock.advance(0.001)
    assert await state(queue, job_id) is JobState.SCHEDULED


@suite.case(f"{PART}: SCHEDULED → RUNNING", "a worker accepts the job")
async def scheduled_running(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    assert await state(queue, job_id) is JobState.SCHEDULED
    await claimed(queue)
    assert await state(queue, job_id) is JobState.RUNNING


@suite.case(f"{PART}: RUNNING → COMPLETED", "the handler returns success")
async def running_completed(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    assert job.state is JobState.RUNNING
    assert (await queue.complete(job_id, token_of(job))).state is JobState.COMPLETED


@suite.case(f"{PART}: RUNNING → FAILED", "the handler returns a permanent failure")
async def running_failed(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    after = await queue.fail(job_id, token_of(job), PermanentError("no such user", code="GONE"))
    assert after.state is JobState.FAILED


@suite.case(f"{PART}: RUNNING → FAILED", "a permanent failure on the last attempt is FAILED, too")
async def running_failed_last(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", retry=RetryConfig(max_attempts=1))
    after = await run(queue, job_id, error=PermanentError("no", code="NO"))
    assert after.state is JobState.FAILED


@suite.case(f"{PART}: RUNNING → RETRYING", "a temporary failure while retries remain")
async def running_retrying(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    for _ in range(2):
        job = await claimed(queue)
        after = await queue.fail(job_id, token_of(job), TemporaryError("503"))
        assert (after.state, after.token) == (JobState.RETRYING, None)
        env.clock.set(after.run_at)


@suite.case(f"{PART}: RUNNING → DEAD_LETTER", "a temporary failure, no retries remaining")
async def running_dead_letter(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", retry=RetryConfig(max_attempts=1))
    job = await claimed(queue)
    after = await queue.fail(job_id, token_of(job), TemporaryError("503"))
    assert (after.state, after.completed_at) == (JobState.DEAD_LETTER, env.clock.now())


@suite.case(f"{PART}: RETRYING → SCHEDULED", "backoff expired: by the passing of time alone")
async def retrying_scheduled(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    await run(queue, job_id, error="no")
    env.clock.advance(0.999)
    assert await state(queue, job_id) is JobState.RETRYING
    assert await queue.claim("w") is None
    env.clock.advance(0.001)
    assert await state(queue, job_id) is JobState.SCHEDULED
    assert (await claimed(queue)).attempt == 2


@suite.case(
    f"{PART}: RETRYING → DEAD_LETTER", "the retry that spends the limit ends in DEAD_LETTER"
)
async def retrying_dead_letter(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    path = []
    for _ in range(3):
        path.append((await run(queue, job_id, error="no")).state.value)
        env.clock.advance(3600)
    assert path == ["RETRYING", "RETRYING", "DEAD_LETTER"]
    assert await queue.claim("w") is None


@suite.case(f"{PART}: RETRYING → DEAD_LETTER", "a job whose lifetime ends while it is RETRYING")
async def retrying_outlived(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    await queue.fail(job_id, token_of(job), TemporaryError("later", retry_after=86_400 * 30))
    env.clock.advance(86_400 * 6)
    assert await state(queue, job_id) is JobState.RETRYING
    env.clock.advance(86_400)
    assert await state(queue, job_id) is JobState.DEAD_LETTER
