"""7. Idempotency Expectations: at least once, and the primitives to cope with it."""

from __future__ import annotations

import asyncio

from headrace.contracts.job_model import JobRequest, JobState
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env

SYSTEM = "7. System vs. Application Idempotency"
PRIMITIVES = "7. Idempotency Primitives"


@suite.case(SYSTEM, "delivery is guaranteed: every submitted job reaches a worker, once at a time")
async def delivered(env: Env) -> None:
    queue = await open_queue(env)
    ids = await queue.submit_batch([JobRequest("t")] * 40)
    answers = await asyncio.gather(*(queue.claim(f"w{n}") for n in range(50)))
    got = [job.id for job in answers if job is not None]
    assert sorted(got) == sorted(ids)


@suite.case(SYSTEM, "a job may be delivered more than once; one outcome is recorded")
async def delivered_again(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    first = await claimed(queue, "w1")
    env.clock.advance(300)
    second = await claimed(queue, "w2")
    outcomes = await asyncio.gather(
        queue.complete(job_id, token_of(first), "first"),
        queue.complete(job_id, token_of(second), "second"),
        return_exceptions=True,
    )
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [True, False]
    assert (await queue.get(job_id)).result == "second"


@suite.case(f"{PRIMITIVES}: Job ID", "stable over attempts: a deduplication table keeps one row")
async def job_id_primitive(env: Env) -> None:
    queue = await open_queue(env)
    await queue.submit("t")
    processed: dict[str, int] = {}
    for _ in range(3):
        job = await claimed(queue)
        processed.setdefault(job.id, job.attempt)
        env.clock.advance(300)
    assert list(processed.values()) == [1]


@suite.case(f"{PRIMITIVES}: Idempotency Key", "the worker sees the key the client gave")
async def key_primitive(env: Env) -> None:
    queue = await open_queue(env)
    await queue.submit("t", idempotency_key="order-7")
    assert (await claimed(queue)).idempotency_key == "order-7"


@suite.case(f"{PRIMITIVES}: Attempt Number", "tells a first run from a retry")
async def attempt_primitive(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    await run(queue, job_id, error="no")
    env.clock.advance(1)
    assert (await claimed(queue)).attempt == 2


@suite.case(f"{PRIMITIVES}: Previous Attempt ID", "each retry names the attempt before it")
async def previous_attempt_primitive(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    waiting = await queue.get(job_id)
    assert (waiting.attempt_id, waiting.previous_attempt_id) == (None, None)
    seen: list[str | None] = [None]
    for number in (1, 2, 3):
        job = await claimed(queue)
        assert job.attempt_id == f"{job_id}:{number}"
        assert job.previous_attempt_id == seen[-1]
        seen.append(job.attempt_id)
        if number == 1:
            await queue.fail(job_id, token_of(job), "no")
        env.clock.advance(300)
    assert len(set(seen)) == 4


@suite.case("7. Idempotency Patterns", "a handler's version check can ride in the payload")
async def version_check(env: Env) -> None:
    queue = await open_queue(env)
    entity = {"version": 4}
    job_id = await queue.submit("t", {"expected_version": 4})
    for _ in range(2):  # delivered twice, applied once
        job = await claimed(queue)
        if entity["version"] == job.payload["expected_version"]:
            entity["version"] += 1
        env.clock.advance(300)
    assert entity["version"] == 5
    assert await state(queue, job_id) is JobState.SCHEDULED
