"""System Guarantees: delivery, durability, ordering, visibility."""

from __future__ import annotations

from headrace.contracts.queue_semantics import DuplicateJob, JobNotFound, JobState
from headrace.model import Priority
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    claimed,
    open_queue,
    states,
    suite,
    token_of,
)


@suite.case("At-Least-Once Delivery", "every enqueued job is processed at least once")
async def every_job_is_processed(env: Env) -> None:
    queue = await open_queue(env)
    for number in range(20):
        await queue.enqueue(f"j{number}", {"n": number})
    seen = []
    while (job := await queue.claim("w1")) is not None:
        seen.append((job.id, job.payload["n"]))
        await queue.ack(job.id, token_of(job))
    assert seen == [(f"j{number}", number) for number in range(20)]


@suite.case("At-Least-Once Delivery", "a job may be processed more than once after a failure")
async def may_be_processed_twice(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j", {"n": 1})
    first = await claimed(queue, "w1")
    env.clock.advance(5)
    second = await claimed(queue, "w2")
    assert (second.id, second.payload) == (first.id, first.payload)


@suite.case("At-Least-Once Delivery", "no job is silently lost by nacks, timeouts or acks")
async def nothing_is_lost(env: Env) -> None:
    queue = await open_queue(env, max_retries=1)
    ids = [f"j{number}" for number in range(12)]
    for job_id in ids:
        await queue.enqueue(job_id)
    ended = dict.fromkeys(ids, JobState.READY)
    for turn in range(40):
        env.clock.advance(6)
        job = await queue.claim("w1")
        if job is None:
            break
        if turn % 3 == 0:
            ended[job.id] = (await queue.ack(job.id, token_of(job))).state
        elif turn % 3 == 1:
            ended[job.id] = (await queue.nack(job.id, token_of(job), "no")).state
        # every third claim is left to time out
    env.clock.advance(6)
    await queue.recover()
    for job_id in ids:
        job = await queue.get(job_id)
        assert job.state in (JobState.SUCCEEDED, JobState.FAILED)
        if job.state is JobState.SUCCEEDED:
            assert ended[job_id] is JobState.SUCCEEDED


@suite.case("Durability", "a job is stored when enqueue returns")
async def stored_when_enqueue_returns(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j", {"to": "x"}, "mail", Priority.HIGH)
    job = await queue.get("j")
    assert (job.id, job.payload, job.queue, job.priority) == ("j", {"to": "x"}, "mail", 1)
    assert job.enqueued_at == env.clock.now()


@suite.case(
    "Durability", "jobs of a durable store survive a restart, those of an ephemeral one do not"
)
async def survives_a_restart(env: Env) -> None:
    queue = await open_queue(env)
    ids = ["ready", "in-flight", "succeeded"]
    for job_id in ids:
        await queue.enqueue(job_id, queue=job_id)
    held = await claimed(queue, name="in-flight")
    done = await claimed(queue, name="succeeded")
    await queue.ack(done.id, token_of(done))
    durable = queue.manager.capabilities.durable
    await queue.close()

    again = await open_queue(env)
    if not durable:
        for job_id in ids:
            with raises(JobNotFound):
                await again.get(job_id)
        return
    assert await states(again, *ids) == ["Ready", "InFlight", "Succeeded"]
    assert (await again.ack(held.id, token_of(held))).state is JobState.SUCCEEDED


@suite.case("Durability", "an enqueue that fails stores nothing")
async def failed_enqueue_stores_nothing(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j", {"n": 1})
    with raises(DuplicateJob):
        await queue.enqueue("j", {"n": 2})
    assert (await queue.get("j")).payload == {"n": 1}
    only = await claimed(queue)
    assert only.payload == {"n": 1}
    assert await queue.claim("w2") is None


@suite.case("Ordering", "jobs within a queue are processed first in, first out")
async def first_in_first_out(env: Env) -> None:
    queue = await open_queue(env)
    for job_id in ("c", "a", "b"):
        await queue.enqueue(job_id)
        env.clock.advance(0.5)
    for job_id in ("z", "y"):  # at one and the same moment
        await queue.enqueue(job_id)
    assert [(await claimed(queue)).id for _ in range(5)] == ["c", "a", "b", "z", "y"]


@suite.case("Ordering", "one queue's jobs do not wait for another queue's")
async def queues_are_independent(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("a1", queue="a")
    env.clock.advance(1)
    await queue.enqueue("b1", queue="b")
    assert (await claimed(queue, name="b")).id == "b1"
    assert await queue.claim("w", queue="b") is None
    assert (await claimed(queue, name="a")).id == "a1"


@suite.case("Ordering", "priority alters the order within a queue")
async def priority_alters_order(env: Env) -> None:
    queue = await open_queue(env)
    for job_id, priority in (("bulk", 4), ("normal", 2), ("critical", 0), ("high", 1), ("low", 3)):
        await queue.enqueue(job_id, priority=priority)
    order = [(await claimed(queue)).id for _ in range(5)]
    assert order == ["critical", "high", "normal", "low", "bulk"]


@suite.case("Visibility", "a job is invisible to other workers while leased")
async def invisible_while_leased(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    await claimed(queue, "w1")
    assert await queue.claim("w2") is None
    env.clock.advance(4.999)
    assert await queue.claim("w2") is None


@suite.case("Visibility", "a failed job becomes visible again after its retry_at")
async def visible_after_retry_at(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    failed = await queue.nack(job.id, token_of(job), "no")
    assert failed.retry_at is not None
    env.clock.set(failed.retry_at)
    assert (await claimed(queue, "w2")).id == "j"


@suite.case("Visibility", "a successful job is never processed again")
async def successful_never_again(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    await queue.ack(job.id, token_of(job))
    for _ in range(5):
        env.clock.advance(1000)
        assert await queue.claim("w2") is None
    assert (await queue.get("j")).state is JobState.SUCCEEDED
