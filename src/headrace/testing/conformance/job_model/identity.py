"""1. Job Identity: the five properties of a job id."""

from __future__ import annotations

import inspect
import uuid

from headrace.contracts.job_model import (
    Dependency,
    JobCancelled,
    JobNotFound,
    JobRequest,
    Queue,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "1. Job Identity"


@suite.case(f"{PART}: Format", "an id is a UUID of version 4, RFC 4122")
async def format_(env: Env) -> None:
    queue = await open_queue(env)
    for _ in range(20):
        job_id = await queue.submit("t")
        parsed = uuid.UUID(job_id)
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)
        assert str(parsed) == job_id


@suite.case(f"{PART}: Format", "an id may be given as a UUID value wherever one is asked for")
async def as_value(env: Env) -> None:
    queue = await open_queue(env)
    first = uuid.UUID(await queue.submit("t"))
    second = await queue.submit("t", dependencies=[first])
    third = await queue.submit("t", dependencies=[Dependency(first)])
    for child in (second, third):
        (needed,) = await queue.dependencies(uuid.UUID(child))
        assert needed.job_id == str(first)
    job = await claimed(queue)
    token = token_of(job)
    assert await queue.get(first) == job
    assert (await queue.heartbeat(first, token)).id == str(first)
    await queue.checkpoint(first, token, 1)
    (spawned,) = await queue.spawn(first, token, [JobRequest("t")])
    assert (await queue.get(spawned)).parent_id == str(first)
    assert (await queue.complete(first, token)).id == str(first)
    again = await claimed(queue)
    assert (await queue.fail(uuid.UUID(again.id), token_of(again), "no")).id == again.id
    assert (await queue.cancel(uuid.UUID(spawned))).id == spawned
    with raises(JobNotFound):
        await queue.get(uuid.uuid4())
    with raises(JobCancelled):
        await queue.complete(uuid.UUID(spawned), token)


@suite.case(f"{PART}: Assignment", "the system assigns the id; no call lets a client name one")
async def assignment(env: Env) -> None:
    queue = await open_queue(env)
    assert "id" not in inspect.signature(Queue.submit).parameters
    assert "id" not in JobRequest.__struct_fields__
    for name in ("id", "job_id"):
        with raises(TypeError):
            await queue.submit("t", **{name: str(uuid.uuid4())})  # type: ignore[arg-type]
    assert await queue.claim("w") is None


@suite.case(f"{PART}: Immutability", "the id stays the same from submission to the end")
async def immutability(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    first = await claimed(queue)
    again = await queue.fail(job_id, token_of(first), "no")
    env.clock.advance(1)
    second = await claimed(queue, "w2")
    done = await queue.complete(job_id, token_of(second))
    ids = {job.id for job in (first, again, second, done, await queue.get(job_id))}
    assert ids == {job_id}


@suite.case(f"{PART}: Uniqueness", "ids are unique across all jobs, ended ones included")
async def uniqueness(env: Env) -> None:
    queue = await open_queue(env)
    ids = set(await queue.submit_batch([JobRequest("t")] * 500))
    while (job := await queue.claim_batch("w", 500)) != ():
        for one in job[:10]:
            await queue.complete(one.id, token_of(one))
    ids |= set(await queue.submit_batch([JobRequest("t")] * 500))
    assert len(ids) == 1000


@suite.case(f"{PART}: Persistence", "an id survives a restart wherever the store does")
async def persistence(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", {"n": 1})
    before = await queue.get(job_id)
    durable = queue.manager.capabilities.durable
    await queue.close()
    again = await open_queue(env)
    if durable:
        assert await again.get(job_id) == before
    else:
        with raises(JobNotFound):
            await again.get(job_id)


@suite.case(f"{PART}: Persistence", "an ended job is retained for its time, then removed")
async def retention(env: Env) -> None:
    queue = await open_queue(env)
    done = await queue.submit("t")
    await run(queue, done)
    failed = await queue.submit("t")
    await run(queue, failed, error="no", category="PERMANENT")
    env.clock.advance(86_400 * 30)
    await queue.maintain()
    await queue.get(done)
    env.clock.advance(1)
    await queue.maintain()
    with raises(JobNotFound):
        await queue.get(done)
    await queue.get(failed)
    env.clock.advance(86_400 * 60)
    await queue.maintain()
    with raises(JobNotFound):
        await queue.get(failed)
