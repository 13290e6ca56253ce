"""Integration Patterns: the end of a stream, and what was assigned and not delivered by then."""

from __future__ import annotations

import asyncio

from headrace.contracts.backend_api import (
    Backend,
    Job,
    Queue,
)
from headrace.testing.conformance.backend_api.streaming import (
    CAPACITY,
    DeafManager,
    LateManager,
    fill,
    nothing,
    special,
    streaming,
    take,
    until,
)
from headrace.testing.conformance.backend_api.suite import S, drain, suite
from headrace.testing.conformance.kit import Env, raises


async def _given_back(queue: Queue, delivered: list[str], total: int) -> None:
    """All but the delivered jobs are eligible, none of them at the cost of a retry."""
    stats = await queue.get_job_stats([])
    assert (stats.running_jobs, stats.total_retries) == (len(delivered), 0)
    for job_id in delivered:
        assert (await queue.get_job(job_id)).status is S.RUNNING
    others = {f"j{n}" for n in range(total)} - set(delivered)
    assert await drain(queue) == others


@suite.case(CAPACITY, "aclose gives back what was assigned and not delivered")
async def given_back_by_aclose(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 5)
    stream = queue.stream_jobs("w", [], 4)
    (first,) = await take(stream, 1)
    assert (await queue.get_job_stats([])).running_jobs == 4
    await stream.aclose()
    await stream.aclose()
    with raises(StopAsyncIteration):
        await anext(stream)
    await _given_back(queue, [first.id], 5)


@suite.case(CAPACITY, "leaving the loop with break gives back what was not delivered")
async def given_back_by_break(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 5)
    async for job in queue.stream_jobs("w", [], 4):
        assert job.id == "j0"
        break

    async def one_left() -> bool:
        return (await queue.get_job_stats([])).running_jobs == 1

    await until(one_left)
    await _given_back(queue, ["j0"], 5)


@suite.case(CAPACITY, "an error in the loop gives back what was not delivered")
async def given_back_by_error(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 5)
    with raises(ZeroDivisionError):
        async with queue.stream_jobs("w", [], 4) as stream:
            async for _ in stream:
                raise ZeroDivisionError
    await _given_back(queue, ["j0"], 5)


@suite.case(
    CAPACITY, "cancelling the consumer in the middle of delivery gives back what was not delivered"
)
async def given_back_by_cancellation(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 8)
    for steps in range(8):
        delivered: list[str] = []

        async def consume(delivered: list[str] = delivered) -> None:
            async with queue.stream_jobs("w", [], 3) as stream:
                async for job in stream:
                    delivered.append(job.id)
                    await asyncio.sleep(0)

        consumer = asyncio.create_task(consume())
        for _ in range(steps):
            await asyncio.sleep(0)
        consumer.cancel()
        with raises(asyncio.CancelledError):
            await consumer
        stats = await queue.get_job_stats([])
        assert (stats.running_jobs, stats.total_retries) == (len(delivered), 0)
        for job_id in delivered:
            assert (await queue.get_job(job_id)).status is S.RUNNING
        await queue.reset_running_jobs()
    assert await drain(queue) == {f"j{n}" for n in range(8)}


@suite.case(CAPACITY, "a wait for a job that is given up loses no job and no capacity")
async def impatient(env: Env) -> None:
    async with streaming(env, 0, 2) as (queue, stream):
        for number in range(5):
            await nothing(stream)
            await queue.enqueue_job(Job(id=f"j{number}"))
            (job,) = await take(stream, 1)
            assert job.id == f"j{number}"
            await queue.complete_job(job.id, b"")
        assert (await queue.get_job_stats([])).completed_jobs == 5


@suite.case(CAPACITY, "an undelivered job that was lost meanwhile is not delivered")
async def lost_before_delivery(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 2)
    async with queue.stream_jobs("w", [], 2) as stream:
        await take(stream, 1)
        await queue.stop_job("j1", "not wanted any more")
        await nothing(stream)
        await queue.enqueue_job(Job(id="next"))
        assert [job.id for job in await take(stream, 1)] == ["next"]


@suite.case(CAPACITY, "a job that another worker holds by now is not given back")
async def give_back_is_fenced(env: Env) -> None:
    queue, manager = await special(env, DeafManager)
    outside = Backend(manager)
    await fill(queue, 2)
    stream = queue.stream_jobs("w", [], 2)
    await take(stream, 1)
    await outside.mark_worker_unresponsive("w")
    assert len(await outside.dequeue_jobs("other", [], 2)) == 2
    await stream.aclose()
    for job in await queue.get_jobs(["j0", "j1"]):
        assert (job.status, job.assignee_id) == (S.RUNNING, "other")


@suite.case(CAPACITY, "a job that is freed before the stream hears of its assignment takes no slot")
async def freed_before_heard(env: Env) -> None:
    queue, manager = await special(env, LateManager)
    await fill(queue, 1)
    manager.meanwhile = queue.reset_running_jobs
    async with queue.stream_jobs("w", [], 1) as stream:
        (job,) = await take(stream, 1)
        assert await queue.get_job(job.id) == job
        await queue.enqueue_job(Job(id="next"))
        await nothing(stream)
        await queue.complete_job(job.id, b"")
        assert [job.id for job in await take(stream, 1)] == ["next"]
