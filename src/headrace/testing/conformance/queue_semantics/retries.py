"""Retry and Backoff Semantics: the cap, the formula, the defaults, and retry visibility."""

from __future__ import annotations

from datetime import timedelta

from headrace.contracts import presets
from headrace.contracts.queue_semantics import JobState
from headrace.errors import InvalidInput
from headrace.retry import FullJitter
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    FixedDice,
    claimed,
    open_queue,
    suite,
    token_of,
)


@suite.case("Retry Cap", "the default is 3 retries: 4 attempts in all")
async def four_attempts(env: Env) -> None:
    queue = await open_queue(env)
    job = await queue.enqueue("j")
    assert job.max_retries == 3
    attempts = 0
    while (leased := await queue.claim("w")) is not None:
        attempts += 1
        last = await queue.nack("j", token_of(leased), "no")
        env.clock.advance(30)
    assert (attempts, last.state) == (4, JobState.FAILED)


@suite.case("Retry Cap", "MaxRetries can be set, and must be 0 or more")
async def configurable(env: Env) -> None:
    queue = await open_queue(env, max_retries=7)
    assert (await queue.enqueue("j")).max_retries == 7
    for bad in (-1, 1.5, True, "3"):
        with raises(InvalidInput):
            await open_queue(env, max_retries=bad)


@suite.case("Retry Cap", "a Failed job stays until somebody steps in, and says why it failed")
async def failed_jobs_stay(env: Env) -> None:
    queue = await open_queue(env, max_retries=0)
    await queue.enqueue("j", {"keep": "me"})
    job = await claimed(queue)
    await queue.nack("j", token_of(job), ValueError("bad row"))
    env.clock.advance(86_400 * 365)
    await queue.recover()
    kept = await queue.get("j")
    assert (kept.state, kept.error, kept.payload) == (
        JobState.FAILED,
        "bad row",
        {"keep": "me"},
    )


@suite.case("Default values", "base delay 500 ms, maximum delay 30 s, full jitter")
async def default_values(env: Env) -> None:
    queue = await open_queue(env)
    assert queue.policy == presets.QUEUE_SEMANTICS
    assert queue.policy.backoff == FullJitter(initial=0.5, cap=30.0)
    assert (queue.policy.lease_seconds, queue.policy.max_attempts) == (5.0, 4)
    assert queue.policy.timeout_seconds == 300.0


@suite.case("Backoff Calculation", "delay = random(0, min(base * 2^attempt, max)), exactly")
async def formula(env: Env) -> None:
    for draw in (0.0, 0.25, 0.5, 0.999):
        queue = await open_queue(env, max_retries=9, dice=FixedDice(draw))
        name = f"q{draw}"
        await queue.enqueue(name, queue=name)
        for attempt in range(9):
            job = await claimed(queue, name=name)
            after = await queue.nack(name, token_of(job), "no")
            expected = draw * min(0.5 * 2**attempt, 30.0)
            assert after.retry_at == env.clock.now() + timedelta(seconds=expected)
            env.clock.set(after.retry_at)


@suite.case("Backoff Calculation", "base and maximum can be set, in seconds or as a timedelta")
async def formula_configured(env: Env) -> None:
    queue = await open_queue(
        env, base_delay=timedelta(seconds=2), max_delay=5, max_retries=5, dice=FixedDice(0.5)
    )
    await queue.enqueue("j")
    delays = []
    for _ in range(4):
        job = await claimed(queue)
        after = await queue.nack("j", token_of(job), "no")
        assert after.retry_at is not None
        delays.append((after.retry_at - env.clock.now()).total_seconds())
        env.clock.set(after.retry_at)
    assert delays == [1.0, 2.0, 2.5, 2.5]
    with raises(InvalidInput):
        await open_queue(env, base_delay=-1)


@suite.case("Backoff Calculation", "jitter spreads jobs that failed together over the whole range")
async def jitter_spreads(env: Env) -> None:
    queue = await open_queue(env)
    for number in range(60):
        await queue.enqueue(f"j{number}")
    delays = []
    for _ in range(60):
        job = await claimed(queue)
        after = await queue.nack(job.id, token_of(job), "no")
        assert after.retry_at is not None
        delays.append((after.retry_at - env.clock.now()).total_seconds())
    assert all(0 <= delay <= 0.5 for delay in delays)
    assert len(set(delays)) > 50
    assert min(delays) < 0.125
    assert max(delays) > 0.375


@suite.case("Retry Visibility: 1", "retry count is incremented")
async def visibility_1(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    assert job.retry_count == 0
    assert (await queue.nack("j", token_of(job), "no")).retry_count == 1
    assert (await queue.get("j")).retry_count == 1


@suite.case("Retry Visibility: 2", "retry_at is now + the calculated delay")
async def visibility_2(env: Env) -> None:
    queue = await open_queue(env, dice=FixedDice(0.5))
    await queue.enqueue("j")
    env.clock.advance(1000)
    job = await claimed(queue)
    env.clock.advance(3)
    after = await queue.nack("j", token_of(job), "no")
    assert after.retry_at == env.clock.now() + timedelta(seconds=0.25)
    assert (await queue.get("j")).retry_at == after.retry_at


@suite.case("Retry Visibility: 3", "the job returns to Ready, its lease gone")
async def visibility_3(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    after = await queue.nack("j", token_of(job), "no")
    assert (after.state, after.lease_token, after.lease_expires_at, after.worker) == (
        JobState.READY,
        None,
        None,
        None,
    )


@suite.case("Retry Visibility: 4", "the job is not claimable until retry_at has come")
async def visibility_4(env: Env) -> None:
    queue = await open_queue(env, dice=FixedDice(0.5), base_delay=20)
    await queue.enqueue("j")
    job = await claimed(queue)
    await queue.nack("j", token_of(job), "no")
    for _ in range(10):
        assert await queue.claim("w") is None
        env.clock.advance(0.999999)
    env.clock.advance(0.00001)
    assert (await claimed(queue)).lease_version == 2
