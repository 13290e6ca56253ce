"""Non-Guarantees: what consumers must live with, shown to happen (or to be allowed to)."""

from __future__ import annotations

from headrace.contracts.queue_semantics import JobState, StaleLease
from headrace.model import Priority
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    FixedDice,
    claimed,
    open_queue,
    states,
    suite,
    token_of,
)


@suite.case("Exactly-Once Processing", "a lease timeout lets two workers process one job")
async def two_workers_process_one_job(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    slow = await claimed(queue, "slow")
    env.clock.advance(5)
    fast = await claimed(queue, "fast")
    assert (slow.id, slow.lease_version, fast.lease_version) == (fast.id, 1, 2)
    assert (await queue.ack(fast.id, token_of(fast))).state is JobState.SUCCEEDED
    with raises(StaleLease):
        await queue.ack(slow.id, token_of(slow))


@suite.case("Exactly-Once Processing", "a stable id lets consumers recognise a repeat")
async def repeats_carry_the_same_id(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("order-7", {"order": 7})
    seen = []
    for worker in ("w1", "w2", "w3"):
        job = await claimed(queue, worker)
        seen.append((job.id, job.payload))
        env.clock.advance(5)
    assert seen == [("order-7", {"order": 7})] * 3


@suite.case("Real-Time Ordering", "a retried job goes behind what was enqueued after it")
async def retry_loses_its_place(env: Env) -> None:
    queue = await open_queue(env, dice=FixedDice(0.5))
    await queue.enqueue("first")
    await queue.enqueue("second")
    job = await claimed(queue)
    assert job.id == "first"
    await queue.nack(job.id, token_of(job), "no")
    env.clock.advance(1)
    assert [(await claimed(queue)).id, (await claimed(queue)).id] == ["second", "first"]


@suite.case("Real-Time Ordering", "a high-priority job skips ahead")
async def high_priority_skips_ahead(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("old")
    env.clock.advance(60)
    await queue.enqueue("urgent", priority=Priority.CRITICAL)
    assert (await claimed(queue)).id == "urgent"


@suite.case("Real-Time Ordering", "concurrent workers may finish out of enqueue order")
async def finish_out_of_order(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("first")
    await queue.enqueue("second")
    first, second = await claimed(queue, "w1"), await claimed(queue, "w2")
    await queue.ack(second.id, token_of(second))
    assert await states(queue, "first", "second") == ["InFlight", "Succeeded"]
    assert (await queue.ack(first.id, token_of(first))).state is JobState.SUCCEEDED


@suite.case("Immediate Visibility", "a job that is not claimed at once is still there later")
async def claimable_later(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    env.clock.advance(86_400)
    assert (await claimed(queue)).id == "j"
