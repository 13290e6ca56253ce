"""8. Failure Categories: classification, and the handler's typed errors."""

from __future__ import annotations

from datetime import timedelta

from headrace.contracts.job_model import (
    Failure,
    FailureCategory,
    InvalidInput,
    JobState,
    PermanentError,
    RetryConfig,
    StaleToken,
    TemporaryError,
    TimeoutConfig,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "8. Failure Classification"
CONTRACT = "8. Failure Response Contract"
C = FailureCategory


@suite.case(PART, "there are five categories, and a failure has exactly one")
async def five(env: Env) -> None:
    assert [one.value for one in C] == ["TEMPORARY", "PERMANENT", "TIMEOUT", "CANCELLED", "SYSTEM"]
    queue = await open_queue(env)
    for category in C:
        job_id = await queue.submit(category.value)
        assert (await queue.get(job_id)).failure is None
        after = await run(queue, job_id, error="why", category=category)
        assert after.failure == Failure(category, "why")
        assert (await queue.get(job_id)).failure == after.failure
    job_id = await queue.submit("t")
    job = await claimed(queue, types=["t"])
    with raises(InvalidInput):
        await queue.fail(job_id, token_of(job), "why", "ODD")
    assert await queue.get(job_id) == job


@suite.case(f"{PART}: TEMPORARY", "retried")
async def temporary(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    assert (await run(queue, job_id, error="503", category=C.TEMPORARY)).state is JobState.RETRYING


@suite.case(f"{PART}: PERMANENT", "not retried")
async def permanent(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    assert (await run(queue, job_id, error="400", category=C.PERMANENT)).state is JobState.FAILED


@suite.case(f"{PART}: TIMEOUT", "retried by default; not when configured so")
async def timeout(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    after = await run(queue, job_id, error=TimeoutError("slow"))
    assert (after.state, after.failure and after.failure.category) == (
        JobState.RETRYING,
        C.TIMEOUT,
    )
    strict = await open_queue(env, retry_on=[C.TEMPORARY, C.SYSTEM])
    job_id = await strict.submit("u", timeout=TimeoutConfig(execution=1))
    await claimed(strict, types=["u"])
    env.clock.advance(1)
    failed = await strict.get(job_id)
    assert (failed.state, failed.failure and failed.failure.category) == (
        JobState.FAILED,
        C.TIMEOUT,
    )


@suite.case(f"{PART}: CANCELLED", "not retried")
async def cancelled(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    after = await run(queue, job_id, error=C.CANCELLED)
    assert (after.state, after.failure and after.failure.category) == (
        JobState.CANCELLED,
        C.CANCELLED,
    )


@suite.case(f"{PART}: SYSTEM", "retried by default; not when configured so; a crash is SYSTEM")
async def system(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    assert (await run(queue, job_id, error="no memory", category="SYSTEM")).state is (
        JobState.RETRYING
    )
    strict = await open_queue(env, retry_on=["TEMPORARY", "TIMEOUT"])
    job_id = await strict.submit("u")
    job = await claimed(strict, types=["u"])
    assert (await strict.fail(job_id, token_of(job), "no", C.SYSTEM)).state is JobState.FAILED
    orphan = await strict.submit("v")
    await claimed(strict, types=["v"])
    env.clock.advance(300)
    lost = await strict.get(orphan)
    assert (lost.state, lost.failure and lost.failure.category) == (JobState.SCHEDULED, C.SYSTEM)


@suite.case(PART, "what is fixed stays fixed: TEMPORARY is retried, PERMANENT and CANCELLED never")
async def fixed(env: Env) -> None:
    for bad in ([], [C.TIMEOUT], [C.TEMPORARY, C.PERMANENT], [C.TEMPORARY, C.CANCELLED]):
        with raises(InvalidInput):
            await open_queue(env, retry_on=bad)


@suite.case("8. Temporary Failures (Retriable)", "an error without a type is retried")
async def untyped(env: Env) -> None:
    queue = await open_queue(env)
    for error in (ConnectionResetError("peer"), OSError("deadlock"), "rate limit exceeded"):
        job_id = await queue.submit("t")
        after = await run(queue, job_id, error=error)
        assert after.state is JobState.RETRYING
        assert after.failure is not None
        assert (after.failure.category, after.failure.message) == (C.TEMPORARY, str(error))


@suite.case("8. Permanent Failures (Not Retriable)", "no attempt is made again")
async def not_retriable(env: Env) -> None:
    queue = await open_queue(env)
    for code in ("INVALID_PAYLOAD", "NOT_FOUND", "PERMISSION_DENIED", "HTTP_400"):
        job_id = await queue.submit("t", retry=RetryConfig(max_attempts=10))
        after = await run(queue, job_id, error=PermanentError("no", code=code))
        assert (after.state, after.attempt) == (JobState.FAILED, 1)
    env.clock.advance(86_400)
    assert await queue.claim("w") is None


@suite.case(f"{CONTRACT}: TemporaryError", "message, optional cause, optional retry_after")
async def temporary_error(env: Env) -> None:
    cause = ConnectionError("reset")
    error = TemporaryError("try later", cause, 12.5)
    assert (error.message, error.cause, error.retry_after) == ("try later", cause, 12.5)
    assert error.__cause__ is cause
    plain = TemporaryError("try later")
    assert (plain.cause, plain.retry_after) == (None, None)
    queue = await open_queue(env)
    for given, expected in ((error, 12.5), (plain, 1)):
        job_id = await queue.submit("t")
        after = await run(queue, job_id, error=given)
        assert after.failure == Failure(C.TEMPORARY, "try later")
        assert (after.run_at - env.clock.now()).total_seconds() == expected


@suite.case(f"{CONTRACT}: TemporaryError", "retry_after may be a timedelta; the limit still holds")
async def retry_after(env: Env) -> None:
    queue = await open_queue(env)
    later = TemporaryError("later", retry_after=timedelta(minutes=2))
    job_id = await queue.submit("t", retry=RetryConfig(max_attempts=2))
    after = await run(queue, job_id, error=later)
    assert (after.run_at - env.clock.now()).total_seconds() == 120
    env.clock.advance(120)
    assert (await run(queue, job_id, error=later)).state is JobState.DEAD_LETTER


@suite.case(f"{CONTRACT}: PermanentError", "message, optional cause, code; the code is recorded")
async def permanent_error(env: Env) -> None:
    cause = KeyError("user")
    error = PermanentError("no such user", cause, "USER_GONE")
    assert (error.message, error.cause, error.code) == ("no such user", cause, "USER_GONE")
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    after = await run(queue, job_id, error=error)
    assert after.failure == Failure(C.PERMANENT, "no such user", "USER_GONE")


@suite.case(CONTRACT, "a failure needs the lease token; a refused one records nothing")
async def fenced(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    for category in C:
        with raises(StaleToken):
            await queue.fail(job_id, "wrong", "no", category)
    assert await queue.get(job_id) == job
