"""5. Backoff Strategies: each formula, over many values, as computed and as a job meets it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from headrace.contracts.job_model import (
    BackoffStrategy,
    InvalidInput,
    Job,
    Queue,
    RetryConfig,
    TemporaryError,
    TimeoutConfig,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    open_queue_like,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "5. Backoff Strategies"
GRID = [
    (initial, cap, multiplier)
    for initial in (0, 0.25, 1, 7)
    for cap in (1, 60, 3600)
    for multiplier in (1.0, 1.1, 2.0, 10.0)
]


def configs(strategy: BackoffStrategy) -> Iterator[RetryConfig]:
    for initial, cap, multiplier in GRID:
        yield RetryConfig(9, strategy, initial, cap, multiplier)


async def observed(env: Env, queue: Queue, config: RetryConfig | None, retries: int) -> list[float]:
    """The delays that a job really waits, retry by retry."""
    job_id = await queue.submit("t", retry=config)
    delays = []
    for _ in range(retries):
        job = await claimed(queue)
        after: Job = await queue.fail(job_id, token_of(job), "no")
        delays.append((after.run_at - env.clock.now()).total_seconds())
        env.clock.set(after.run_at)
    last = await claimed(queue)
    await queue.complete(job_id, token_of(last))
    return delays


@suite.case(f"{PART}: Constant", "delay(n) = initial_delay")
async def constant(env: Env) -> None:
    for config in configs(BackoffStrategy.CONSTANT):
        assert {config.delay(n) for n in range(1, 200)} == {config.initial_delay}
    queue = await open_queue(env)
    config = RetryConfig(6, BackoffStrategy.CONSTANT, 3)
    assert await observed(env, queue, config, 5) == [3, 3, 3, 3, 3]


@suite.case(f"{PART}: Linear", "delay(n) = initial_delay * n, capped at max_delay")
async def linear(env: Env) -> None:
    for initial, cap, multiplier in GRID:
        config = RetryConfig(9, BackoffStrategy.LINEAR, initial, cap, multiplier)
        for n in range(1, 200):
            assert config.delay(n) == min(initial * n, cap)
    queue = await open_queue(env)
    config = RetryConfig(6, BackoffStrategy.LINEAR, 3, 10)
    assert await observed(env, queue, config, 5) == [3, 6, 9, 10, 10]


@suite.case(
    f"{PART}: Exponential", "delay(n) = initial_delay * multiplier ^ (n - 1), capped at max_delay"
)
async def exponential(env: Env) -> None:
    for initial, cap, multiplier in GRID:
        config = RetryConfig(9, BackoffStrategy.EXPONENTIAL, initial, cap, multiplier)
        for n in range(1, 200):
            assert config.delay(n) == min(initial * multiplier ** (n - 1), cap)
    assert RetryConfig(max_delay=60, multiplier=1e9).delay(1000) == 60
    queue = await open_queue(env)
    config = RetryConfig(8, BackoffStrategy.EXPONENTIAL, 0.5, 10, 3.0)
    assert await observed(env, queue, config, 5) == [0.5, 1.5, 4.5, 10, 10]


@suite.case(f"{PART}: Exponential", "the default doubles from 1 s to 1 h")
async def exponential_default(env: Env) -> None:
    queue = await open_queue(env)
    delays = await observed(env, queue, RetryConfig(max_attempts=15), 14)
    assert delays == [min(2**n, 3600) for n in range(14)]


@suite.case(f"{PART}: Custom", "delay(n) = custom_function(n, initial_delay, max_delay)")
async def custom(env: Env) -> None:
    calls = []

    def fibonacci(n: int, initial_delay: float, max_delay: float) -> float:
        calls.append((n, initial_delay, max_delay))
        low, high = 1, 1
        for _ in range(n - 1):
            low, high = high, low + high
        return min(initial_delay * low, max_delay)

    queue = await open_queue(env)
    config = RetryConfig(9, BackoffStrategy.CUSTOM, 2, 20, custom_function=fibonacci)
    assert await observed(env, queue, config, 6) == [2, 2, 4, 6, 10, 16]
    assert calls == [(n, 2, 20) for n in range(1, 9)], "once for each retry, at submission"


@suite.case(f"{PART}: Custom", "a queue's own function serves every process that opens it so")
async def custom_of_the_queue(env: Env) -> None:
    config = RetryConfig(
        4,
        BackoffStrategy.CUSTOM,
        custom_function=lambda n, _first, _most: timedelta(seconds=5 * n),
    )
    queue = await open_queue(env, retry=config)
    assert await observed(env, queue, None, 3) == [5, 10, 15]


@suite.case(f"{PART}: Custom", "max_delay caps it, and a handler's retry_after overrides it")
async def custom_capped(env: Env) -> None:
    queue = await open_queue(env)
    config = RetryConfig(
        5, BackoffStrategy.CUSTOM, 1, 30, custom_function=lambda _n, _first, _most: 1000.0
    )
    assert await observed(env, queue, config, 2) == [30, 30]
    job_id = await queue.submit("t", retry=config)
    job = await claimed(queue)
    after = await queue.fail(job_id, token_of(job), TemporaryError("429", retry_after=3))
    assert (after.run_at - env.clock.now()).total_seconds() == 3


@suite.case(f"{PART}: Custom", "a job's own function holds in every process that runs the job")
async def custom_elsewhere(env: Env) -> None:
    queue = await open_queue(env)
    own = RetryConfig(5, BackoffStrategy.CUSTOM, custom_function=lambda n, _first, _most: 7 * n)
    of_queue = await open_queue_like(env, queue, retry=own)
    await queue.submit("own", retry=own)
    await of_queue.submit("of the queue")
    stranger = await open_queue_like(env, queue)  # knows neither
    for _ in range(2):
        job = await claimed(stranger)
        delays = []
        for _ in range(4):
            after = await stranger.fail(job.id, token_of(job), "no")
            delays.append((after.run_at - env.clock.now()).total_seconds())
            env.clock.advance(delays[-1])
            if len(delays) < 4:
                job = await claimed(stranger, types=[job.type])
        assert delays == [7, 14, 21, 28], job.type
        await stranger.cancel(job.id)


@suite.case(f"{PART}: Custom", "also when the execution takes too long")
async def custom_after_timeouts(env: Env) -> None:
    queue = await open_queue(env)
    own = RetryConfig(5, BackoffStrategy.CUSTOM, custom_function=lambda n, _first, _most: 7 * n)
    limits = TimeoutConfig(execution=10, visibility=60)
    job_id = await queue.submit("t", retry=own, timeout=limits)
    stranger = await open_queue_like(env, queue)
    await claimed(stranger)
    env.clock.advance(10)
    (late,) = await stranger.time_out()
    assert (late.id, (late.run_at - env.clock.now()).total_seconds()) == (job_id, 7)


@suite.case(f"{PART}: Custom", "a function that cannot go with the job is refused at submission")
async def custom_refused(env: Env) -> None:
    queue = await open_queue(env)

    def broken(n: int, _first: float, _most: float) -> float:
        return 1 / (n - 2)

    bad = [
        (None, lambda n, _first, _most: n),
        (100_000, lambda n, _first, _most: n),
        (3, broken),
        (3, lambda n, _first, _most: -n),
        (3, lambda _n, _first, _most: float("nan")),
        (3, lambda _n, _first, _most: "soon"),
    ]
    for most, function in bad:
        config = RetryConfig(most, BackoffStrategy.CUSTOM, custom_function=function)
        with raises(InvalidInput) as caught:
            await queue.submit("t", retry=config)
        assert "custom backoff" in str(caught.error)
        with raises(InvalidInput):
            await (await open_queue_like(env, queue, retry=config)).submit("t")
    assert await queue.claim("w") is None
    once = RetryConfig(1, BackoffStrategy.CUSTOM, custom_function=broken)
    await queue.submit("t", retry=once)  # it is never asked
