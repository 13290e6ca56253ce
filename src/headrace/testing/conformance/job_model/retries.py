"""5. Retry Rules: the parameters, their defaults, and retry behavior 1 to 4."""

from __future__ import annotations

import random

from headrace.contracts.job_model import (
    BackoffStrategy,
    FailureCategory,
    InvalidInput,
    JobState,
    LeaseExpired,
    RetryConfig,
    StaleToken,
    TemporaryError,
    TimeoutConfig,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

CONFIGURATION = "5. Retry Configuration"
BEHAVIOR = "5. Retry Behavior"


@suite.case(CONFIGURATION, "defaults: 3 attempts, exponential, 1 s, at most 1 h, multiplier 2.0")
async def defaults(env: Env) -> None:
    config = RetryConfig()
    assert (config.max_attempts, config.backoff_strategy) == (3, BackoffStrategy.EXPONENTIAL)
    assert (config.initial_delay, config.max_delay, config.multiplier) == (1, 3600, 2.0)
    assert config.jitter is False
    queue = await open_queue(env)
    assert queue.policy.backoff == config.backoff
    job_id = await queue.submit("t")
    assert (await queue.get(job_id)).max_attempts == 3
    delays = []
    for _ in range(2):
        after = await run(queue, job_id, error="no")
        delays.append((after.run_at - env.clock.now()).total_seconds())
        env.clock.set(after.run_at)
    assert delays == [1, 2]


@suite.case(f"{CONFIGURATION}: Max Attempts", "executions in all, the first included")
async def max_attempts(env: Env) -> None:
    queue = await open_queue(env)
    for most in (1, 2, 5):
        job_id = await queue.submit("t", retry=RetryConfig(max_attempts=most))
        runs = 0
        while (job := await queue.claim("w")) is not None:
            runs += 1
            after = await queue.fail(job_id, token_of(job), "no")
            env.clock.advance(3600)
        assert (runs, after.state) == (most, JobState.DEAD_LETTER)
    for bad in (0, -1, 1.5, "3"):
        with raises(InvalidInput):
            RetryConfig(max_attempts=bad)  # type: ignore[arg-type]  # the point of the case


@suite.case(f"{CONFIGURATION}: Backoff Strategy", "one of four; anything else is refused")
async def strategies(env: Env) -> None:  # noqa: ARG001 - about the configuration alone
    assert [one.value for one in BackoffStrategy] == ["CONSTANT", "LINEAR", "EXPONENTIAL", "CUSTOM"]
    for bad in (
        {"backoff_strategy": "FIBONACCI"},
        {"backoff_strategy": BackoffStrategy.CUSTOM},
        {"custom_function": lambda n, _first, _most: n},
        {"initial_delay": -1},
        {"max_delay": float("nan")},
        {"multiplier": 0},
    ):
        with raises(InvalidInput):
            RetryConfig(**bad)


@suite.case(CONFIGURATION, "a queue's own configuration is what its jobs get")
async def per_queue(env: Env) -> None:
    config = RetryConfig(2, BackoffStrategy.CONSTANT, 7)
    queue = await open_queue(env, retry=config)
    job_id = await queue.submit("t")
    after = await run(queue, job_id, error="no")
    assert ((after.run_at - env.clock.now()).total_seconds(), after.max_attempts) == (7, 2)
    env.clock.advance(7)
    assert (await run(queue, job_id, error="no")).state is JobState.DEAD_LETTER


@suite.case(
    f"{BEHAVIOR}: 1. Attempt counter", "incremented when an execution starts, not when it ends"
)
async def attempt_counter(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    assert (await queue.get(job_id)).attempt == 0
    for attempt in (1, 2, 3):
        job = await claimed(queue)
        assert job.attempt == attempt
        assert (await queue.get(job_id)).attempt == attempt
        if attempt == 3:
            assert (await queue.complete(job_id, token_of(job))).attempt == 3
        else:
            assert (await queue.fail(job_id, token_of(job), "no")).attempt == attempt
            env.clock.advance(10)


@suite.case(f"{BEHAVIOR}: 1. Attempt counter", "an execution that its worker never ended counts")
async def attempt_counter_crash(env: Env) -> None:
    queue = await open_queue(env)
    await queue.submit("t")
    await claimed(queue, "crashed")
    env.clock.advance(300)
    assert (await claimed(queue)).attempt == 2


@suite.case(f"{BEHAVIOR}: 2. Retry on timeout", "a timeout is retried as a temporary failure is")
async def retry_on_timeout(env: Env) -> None:
    queue = await open_queue(env)
    by_worker = await queue.submit("t")
    after = await run(queue, by_worker, error="slow", category=FailureCategory.TIMEOUT)
    assert after.state is JobState.RETRYING
    assert (after.run_at - env.clock.now()).total_seconds() == 1
    by_clock = await queue.submit("u", timeout=TimeoutConfig(execution=5))
    await claimed(queue, types=["u"])
    env.clock.advance(5)
    (late,) = await queue.time_out()
    assert (late.id, late.state) == (by_clock, JobState.RETRYING)
    assert (late.run_at - env.clock.now()).total_seconds() == 1


@suite.case(f"{BEHAVIOR}: 3. Partial progress", "the next attempt reads what the last one left")
async def partial_progress(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    assert job.checkpoint is None
    for row in (100, 200):
        await queue.checkpoint(job_id, token_of(job), {"row": row})
    await queue.fail(job_id, token_of(job), "no")
    env.clock.advance(1)
    again = await claimed(queue)
    assert (again.attempt, again.checkpoint) == (2, {"row": 200})


@suite.case(f"{BEHAVIOR}: 3. Partial progress", "a checkpoint survives the death of its worker")
async def checkpoint_survives_a_crash(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue, "crashed")
    await queue.checkpoint(job_id, token_of(job), [1, 2])
    env.clock.advance(300)
    assert (await claimed(queue)).checkpoint == [1, 2]


@suite.case(f"{BEHAVIOR}: 3. Partial progress", "only the holder of the lease writes a checkpoint")
async def checkpoint_fenced(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    for token in ("none", "", None):
        with raises(StaleToken):
            await queue.checkpoint(job_id, token, 1)  # type: ignore[arg-type]  # the point
    job = await claimed(queue)
    with raises(StaleToken):
        await queue.checkpoint(job_id, "wrong", 1)
    env.clock.advance(300)
    with raises(LeaseExpired):
        await queue.checkpoint(job_id, token_of(job), 1)
    assert (await claimed(queue)).checkpoint is None


@suite.case(f"{BEHAVIOR}: 4. Backoff jitter", "optional, ±10 %, and different from job to job")
async def jitter(env: Env) -> None:
    queue = await open_queue(env, dice=random.Random(7))
    config = RetryConfig(initial_delay=100, jitter=True)
    delays = []
    for _ in range(40):
        job_id = await queue.submit("t", retry=config)
        after = await run(queue, job_id, error="no")
        delays.append((after.run_at - env.clock.now()).total_seconds())
    assert all(90 <= delay <= 110 for delay in delays)
    assert len(set(delays)) > 30
    assert min(delays) < 95
    assert max(delays) > 105


@suite.case(f"{BEHAVIOR}: 4. Backoff jitter", "without it the delay is exact")
async def no_jitter(env: Env) -> None:
    queue = await open_queue(env)
    for _ in range(10):
        job_id = await queue.submit("t", retry=RetryConfig(initial_delay=100))
        after = await run(queue, job_id, error="no")
        assert (after.run_at - env.clock.now()).total_seconds() == 100


@suite.case(BEHAVIOR, "a handler's retry_after stands in for the backoff")
async def retry_after(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    after = await run(queue, job_id, error=TemporaryError("429", retry_after=37.5))
    assert (after.run_at - env.clock.now()).total_seconds() == 37.5
    env.clock.advance(37.4)
    assert await state(queue, job_id) is JobState.RETRYING
