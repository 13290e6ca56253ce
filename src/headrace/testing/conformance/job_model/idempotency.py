"""1. Idempotency Key: format, assignment, scope, behavior, expiration."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace.contracts.job_model import InvalidKey, InvalidLimit, JobRequest
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "1. Idempotency Key"


@suite.case(f"{PART}: Format", "any text of 1 to 256 characters; 257 and none are refused")
async def format_(env: Env) -> None:
    queue = await open_queue(env)
    for key in ("k", "ключ / 鍵 {}", "x" * 256):
        job_id = await queue.submit("t", idempotency_key=key)
        assert (await queue.get(job_id)).idempotency_key == key
    for bad in ("", "x" * 257):
        with raises(InvalidKey):
            await queue.submit("t", idempotency_key=bad)
    assert len(await queue.claim_batch("w", 10)) == 3


@suite.case(f"{PART}: Assignment", "the client provides it; without one, every submission is new")
async def assignment(env: Env) -> None:
    queue = await open_queue(env)
    first, second = await queue.submit("t"), await queue.submit("t")
    assert first != second
    assert (await queue.get(first)).idempotency_key is None


@suite.case(f"{PART}: Scope", "a key is unique per job type")
async def scope(env: Env) -> None:
    queue = await open_queue(env)
    mail = await queue.submit("mail", idempotency_key="k")
    report = await queue.submit("report", idempotency_key="k")
    assert mail != report
    assert await queue.submit("mail", idempotency_key="k") == mail
    assert await queue.submit("report", idempotency_key="k") == report
    assert await queue.submit("mail", idempotency_key="K") not in (mail, report)


@suite.case(f"{PART}: Behavior", "a duplicate returns the existing id and changes nothing")
async def behavior(env: Env) -> None:
    queue = await open_queue(env)
    first = await queue.submit("t", {"n": 1}, idempotency_key="k")
    before = await queue.get(first)
    env.clock.advance(60)
    assert await queue.submit("t", {"n": 2}, priority=0, idempotency_key="k") == first
    assert await queue.get(first) == before
    assert len(await queue.claim_batch("w", 10)) == 1


@suite.case(f"{PART}: Behavior", "a key is held in every state, terminal ones included")
async def held_in_every_state(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", idempotency_key="k")
    job = await claimed(queue)
    assert await queue.submit("t", idempotency_key="k") == job_id
    await queue.fail(job_id, token_of(job), "no")
    assert await queue.submit("t", idempotency_key="k") == job_id
    env.clock.advance(1)
    await run(queue, job_id)
    assert await queue.submit("t", idempotency_key="k") == job_id
    assert await queue.claim("w") is None


@suite.case(f"{PART}: Behavior", "many concurrent submissions of one key make one job")
async def concurrent(env: Env) -> None:
    queue = await open_queue(env)
    ids = await asyncio.gather(*(queue.submit("t", n, idempotency_key="k") for n in range(30)))
    assert len(set(ids)) == 1
    assert len(await queue.claim_batch("w", 10)) == 1


@suite.case(f"{PART}: Behavior", "a key repeated within a batch makes one job")
async def within_a_batch(env: Env) -> None:
    queue = await open_queue(env)
    requests = [JobRequest("t", n, idempotency_key="k") for n in range(3)]
    first, second, third = await queue.submit_batch([*requests[:2], JobRequest("t", 9)])
    assert first == second != third
    assert (await queue.get(first)).payload == 0


@suite.case(f"{PART}: Expiration", "the guarantee ends after 24 hours by default, not before")
async def expiration(env: Env) -> None:
    queue = await open_queue(env)
    first = await queue.submit("t", idempotency_key="k")
    env.clock.advance(86_400 - 0.001)
    assert await queue.submit("t", idempotency_key="k") == first
    env.clock.advance(0.001)
    second = await queue.submit("t", idempotency_key="k")
    assert second != first
    assert await queue.submit("t", idempotency_key="k") == second


@suite.case(f"{PART}: Expiration", "the window can be set")
async def configurable(env: Env) -> None:
    queue = await open_queue(env, idempotency_window=timedelta(minutes=1))
    first = await queue.submit("t", idempotency_key="k")
    env.clock.advance(59)
    assert await queue.submit("t", idempotency_key="k") == first
    env.clock.advance(1)
    assert await queue.submit("t", idempotency_key="k") != first
    with raises(InvalidLimit):
        await open_queue(env, idempotency_window=-1)
