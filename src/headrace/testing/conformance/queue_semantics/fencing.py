"""Fencing and Safety: no transition from InFlight without a valid lease token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from headrace.contracts.queue_semantics import Job, JobState, Queue, StaleLease
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    claimed,
    open_queue,
    suite,
    token_of,
)

PART = "Fencing and Safety"


def writes(queue: Queue) -> list[Callable[[str, str], Awaitable[Job]]]:
    return [queue.ack, queue.nack, queue.heartbeat]


async def refused_by_all(queue: Queue, job_id: str, token: str) -> None:
    """Every write under this token is StaleLease and leaves the job as it was."""
    before = await queue.get(job_id)
    for write in writes(queue):
        with raises(StaleLease) as caught:
            await write(job_id, token)
        assert isinstance(caught.error, StaleLease)
        assert caught.error.job_id == job_id
        assert await queue.get(job_id) == before


@suite.case(PART, "a wrong, empty or missing token is stale for ack, nack and heartbeat")
async def wrong_token(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    await queue.enqueue("other")
    job, other = await claimed(queue), await claimed(queue)
    for token in ("wrong", "", None, 7, token_of(other), token_of(job).upper() + "x"):
        await refused_by_all(queue, "j", token)  # type: ignore[arg-type]  # the point of the case
    assert (await queue.ack("j", token_of(job))).state is JobState.SUCCEEDED


@suite.case(PART, "a lapsed token is stale even before anybody claims the job again")
async def lapsed_token(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    env.clock.advance(5)
    await refused_by_all(queue, "j", token_of(job))


@suite.case(PART, "the token of an earlier claim is stale: no update of a newer claim is lost")
async def earlier_token(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    old = await claimed(queue, "w1")
    env.clock.advance(5)
    new = await claimed(queue, "w2")
    await refused_by_all(queue, "j", token_of(old))
    assert (await queue.ack("j", token_of(new))).state is JobState.SUCCEEDED
    await refused_by_all(queue, "j", token_of(old))


@suite.case(PART, "a token is spent by its own nack")
async def spent_token(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    await queue.nack("j", token_of(job), "no")
    await refused_by_all(queue, "j", token_of(job))


@suite.case(PART, "each claim generates a new unique token and a greater version")
async def unique_tokens(env: Env) -> None:
    queue = await open_queue(env, max_retries=50)
    await queue.enqueue("j")
    tokens, versions = [], []
    for turn in range(20):
        job = await claimed(queue)
        tokens.append(job.lease_token)
        versions.append(job.lease_version)
        if turn % 2:
            await queue.nack("j", token_of(job), "no")
        env.clock.advance(30)
    assert len(set(tokens)) == 20
    assert versions == list(range(1, 21))


@suite.case(PART, "of many concurrent acks and nacks under one token exactly one is accepted")
async def one_outcome_per_token(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    token = token_of(await claimed(queue))
    calls = [queue.ack("j", token) if turn % 2 else queue.nack("j", token) for turn in range(20)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    accepted = [answer for answer in answers if isinstance(answer, Job)]
    refused = [answer for answer in answers if isinstance(answer, StaleLease)]
    assert (len(accepted), len(refused)) == (1, 19)
    assert (await queue.get("j")).state is accepted[0].state
