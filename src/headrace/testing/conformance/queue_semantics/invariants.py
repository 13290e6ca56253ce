"""Core Invariants 1 to 4, each over many histories."""

from __future__ import annotations

import asyncio
import random

from headrace.contracts.queue_semantics import Job, JobState, Queue
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.queue_semantics.suite import (
    claimed,
    open_queue,
    suite,
    token_of,
)

LEGAL = {
    ("Ready", "InFlight"),
    ("InFlight", "Succeeded"),
    ("InFlight", "Ready"),
    ("InFlight", "Failed"),
}


def check_shape(job: Job) -> None:
    """What must hold of a job in its state, whatever happened before."""
    assert job.state in set(JobState)
    in_flight = job.state is JobState.IN_FLIGHT
    assert (job.lease_token is not None) is in_flight
    assert (job.lease_expires_at is not None) is in_flight
    assert (job.worker is not None) is in_flight
    assert (job.finished_at is not None) is (job.state in (JobState.SUCCEEDED, JobState.FAILED))


@suite.case("1. State Consistency", "a job is always in exactly one state, with the lease to match")
async def one_state_at_a_time(env: Env) -> None:
    dice = random.Random(1)
    queue = await open_queue(env, dice=random.Random(2))
    ids = [f"j{number}" for number in range(8)]
    for job_id in ids:
        await queue.enqueue(job_id)
    before = {job_id: await queue.get(job_id) for job_id in ids}
    for _ in range(120):
        await step(env, queue, before[dice.choice(ids)], dice)
        for job_id in ids:
            job = await queue.get(job_id)
            check_shape(job)
            move = (before[job_id].state.value, job.state.value)
            assert move[0] == move[1] or move in LEGAL, move
            before[job_id] = job


async def step(env: Env, queue: Queue, job: Job, dice: random.Random) -> None:
    """One thing that a producer, a worker or time might do next."""
    match dice.randrange(5):
        case 0 | 1:
            await queue.claim("w")
        case 2 if job.lease_token is not None:
            lapsed = job.lease_expires_at is not None and job.lease_expires_at <= env.clock.now()
            if not lapsed and dice.random() < 0.7:
                await queue.nack(job.id, job.lease_token, "no")
            elif not lapsed:
                await queue.ack(job.id, job.lease_token)
        case 3:
            await queue.recover()
        case _:
            env.clock.advance(dice.choice((0.1, 1, 6)))


@suite.case("1. State Consistency", "there are four states and no more")
async def four_states(env: Env) -> None:  # noqa: ARG001 - about the vocabulary alone
    assert [state.value for state in JobState] == ["Ready", "InFlight", "Failed", "Succeeded"]


@suite.case("2. Lease Safety", "many concurrent workers never hold the same job")
async def no_job_twice(env: Env) -> None:
    queue = await open_queue(env)
    for number in range(30):
        await queue.enqueue(f"j{number}")
    answers = await asyncio.gather(*(queue.claim(f"w{number}") for number in range(40)))
    got = [job for job in answers if job is not None]
    assert len(got) == 30
    assert len({job.id for job in got}) == 30
    assert len({job.lease_token for job in got}) == 30
    assert answers.count(None) == 10


@suite.case("2. Lease Safety", "a lapsed lease is given to one of many concurrent workers")
async def lapsed_lease_goes_to_one(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    await claimed(queue, "crashed")
    env.clock.advance(5)
    answers = await asyncio.gather(*(queue.claim(f"w{number}") for number in range(20)))
    (winner,) = [job for job in answers if job is not None]
    assert winner.lease_version == 2
    assert (await queue.get("j")).lease_token == winner.lease_token


@suite.case("3. Retry Bound", "nacked jobs are retried at most MaxRetries times")
async def bounded_by_nacks(env: Env) -> None:
    for max_retries in range(6):
        queue = await open_queue(env, max_retries=max_retries)
        name = f"q{max_retries}"
        await queue.enqueue(name, queue=name)
        for attempt in range(1, max_retries + 2):
            job = await claimed(queue, name=name)
            assert (job.lease_version, job.retry_count) == (attempt, attempt - 1)
            after = await queue.nack(job.id, token_of(job), "no")
            env.clock.advance(30)
        assert after.state is JobState.FAILED
        assert (after.retry_count, after.max_retries) == (max_retries, max_retries)
        assert await queue.claim("w", queue=name) is None


@suite.case("3. Retry Bound", "a job whose lease times out again and again ends Failed")
async def bounded_by_timeouts(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("poison")
    for attempt in range(1, 5):
        assert (await claimed(queue)).lease_version == attempt
        env.clock.advance(5)
    assert await queue.claim("w") is None
    job = await queue.get("poison")
    assert (job.state, job.lease_version, job.retry_count) == (JobState.FAILED, 4, 3)


@suite.case("3. Retry Bound", "nacks and timeouts draw on one budget")
async def bounded_by_both(env: Env) -> None:
    for pattern in range(16):
        queue = await open_queue(env)
        name = f"q{pattern}"
        await queue.enqueue(name, queue=name)
        for turn in range(4):
            job = await claimed(queue, name=name)
            if pattern >> turn & 1:
                await queue.nack(job.id, token_of(job), "no")
            env.clock.advance(30)
        assert await queue.claim("w", queue=name) is None
        assert (await queue.get(name)).state is JobState.FAILED


@suite.case("4. TTL Enforcement", "a job is reclaimable from LeaseTTL on, and not before")
async def reclaimable_at_ttl(env: Env) -> None:
    for ttl in (0.25, 5, 30, 3600):
        queue = await open_queue(env, lease_ttl=ttl)
        name = f"q{ttl}"
        await queue.enqueue(name, queue=name)
        first = await claimed(queue, name=name)
        env.clock.advance(ttl - 0.001)
        assert await queue.claim("w2", queue=name) is None
        env.clock.advance(0.001)
        assert first.lease_expires_at == env.clock.now()
        second = await claimed(queue, "w2", name=name)
        assert second.lease_version == 2
        await queue.ack(second.id, token_of(second))
