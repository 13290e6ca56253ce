"""Integration Patterns: subscribing, delivery, and what wakes or ends a stream."""

from __future__ import annotations

import asyncio

from headrace.contracts.backend_api import (
    InvalidArgumentError,
    Job,
    Queue,
    StorageError,
)
from headrace.contracts.backend_api.streams import Subscription, Subscriptions
from headrace.model import Job as StoredJob
from headrace.testing.conformance.backend_api.streaming import (
    ASSIGNMENT,
    PATIENCE_SECONDS,
    QUIET_SECONDS,
    SUBMISSION,
    WORKERS,
    LateManager,
    fill,
    neighbours,
    nothing,
    special,
    streaming,
    take,
    until,
)
from headrace.testing.conformance.backend_api.suite import S, drain, put, suite
from headrace.testing.conformance.kit import Env, raises


@suite.case(ASSIGNMENT, "a subscription needs a worker, a capacity and real tags")
async def bad_subscription(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    for worker, tags, max_assigned in (("", [], 1), ("w", [], 0), ("w", [], -1), ("w", [""], 1)):
        with raises(InvalidArgumentError):
            queue.stream_jobs(worker, tags, max_assigned)


@suite.case(ASSIGNMENT, "jobs are delivered one at a time, assigned to the worker, oldest first")
async def delivery(env: Env) -> None:
    async with streaming(env, 3, 5, payload=b"p") as (queue, stream):
        jobs = await take(stream, 3)
        assert [job.id for job in jobs] == ["j0", "j1", "j2"]
        for job in jobs:
            assert (job.status, job.assignee_id, job.payload) == (S.RUNNING, "w", b"p")
            assert await queue.get_job(job.id) == job
        await nothing(stream)


@suite.case(ASSIGNMENT, "only jobs with all tags of the subscription are delivered")
async def tagged_delivery(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await queue.enqueue_jobs(
        [Job(id="x", tags=["x"]), Job(id="xy", tags=["x", "y"]), Job(id="none")]
    )
    async with queue.stream_jobs("w", ["y", "x"], 5) as stream:
        assert [job.id for job in await take(stream, 1)] == ["xy"]
        await nothing(stream)
    assert await drain(queue) == {"x", "none"}


@suite.case(ASSIGNMENT, "a stream that nobody asks for a job assigns none")
async def lazy(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 2)
    stream = queue.stream_jobs("w", [], 2)
    await asyncio.sleep(QUIET_SECONDS)
    assert (await queue.get_job_stats([])).running_jobs == 0
    await stream.aclose()
    with raises(StopAsyncIteration):
        await anext(stream)
    assert (await queue.get_job_stats([])).pending_jobs == 2


@suite.case(SUBMISSION, "a waiting stream is woken by enqueue_job and enqueue_jobs")
async def woken_by_submission(env: Env) -> None:
    async with streaming(env, 0, 5) as (queue, stream):
        waiting = asyncio.create_task(take(stream, 1))
        await asyncio.sleep(QUIET_SECONDS)
        await queue.enqueue_job(Job(id="a"))
        assert [job.id for job in await waiting] == ["a"]
        waiting = asyncio.create_task(take(stream, 2))
        await asyncio.sleep(QUIET_SECONDS)
        await queue.enqueue_jobs([Job(id="b"), Job(id="c")])
        assert [job.id for job in await waiting] == ["b", "c"]


@suite.case(SUBMISSION, "a waiting stream is woken by what another user of the store submits")
async def woken_from_outside(env: Env) -> None:
    queue, outside, _ = await neighbours(env)
    async with queue.stream_jobs("w", [], 1) as stream:
        waiting = asyncio.create_task(take(stream, 1))
        await asyncio.sleep(QUIET_SECONDS)
        await outside.enqueue_job(Job(id="a"))
        assert [job.id for job in await waiting] == ["a"]


@suite.case(SUBMISSION, "a job that becomes eligible again wakes a waiting stream")
async def woken_by_retry(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await put(queue, "a", S.RUNNING)
    async with queue.stream_jobs("w", [], 1) as stream:
        await nothing(stream)
        await queue.fail_job("a", "no")
        (job,) = await take(stream, 1)
        assert (job.id, job.assignee_id, job.retry_count) == ("a", "w", 1)


@suite.case(WORKERS, "mark_worker_unresponsive lets the jobs go to another worker's stream")
async def unresponsive(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 2)
    gone = await queue.dequeue_jobs("gone", [], 2)
    async with queue.stream_jobs("w", [], 5) as stream:
        await nothing(stream)
        await queue.mark_worker_unresponsive("gone")
        jobs = await take(stream, 2)
        assert {job.id for job in jobs} == {job.id for job in gone}
        assert {job.assignee_id for job in jobs} == {"w"}


@suite.case(WORKERS, "closing the queue ends its streams and gives back what was not delivered")
async def closing(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 3)
    stream = queue.stream_jobs("w", [], 3)
    await take(stream, 1)
    idle = queue.stream_jobs("w", ["absent"], 3)
    waiting = asyncio.create_task(take(idle, 1))
    await asyncio.sleep(0)
    await queue.close()
    with raises(StopAsyncIteration):
        await anext(stream)
    with raises(StopAsyncIteration):
        await waiting


@suite.case(WORKERS, "a store that fails ends the stream with an error")
async def failing_store(env: Env) -> None:
    queue, _, manager = await neighbours(env)
    stream = queue.stream_jobs("w", [], 1)
    await nothing(stream)
    await manager.close()
    with raises(StorageError):
        await asyncio.wait_for(anext(stream), PATIENCE_SECONDS)
    with raises(StopAsyncIteration):
        await anext(stream)


@suite.case(WORKERS, "a stream that is cancelled during its claim gives back what the claim brings")
async def cancelled_claim(env: Env) -> None:
    for cancellations in (1, 2):
        queue, manager = await special(env, LateManager)
        await fill(queue, 3)
        assigned, answer = asyncio.Event(), asyncio.Event()

        async def meanwhile(
            assigned: asyncio.Event = assigned, answer: asyncio.Event = answer
        ) -> None:
            assigned.set()
            await answer.wait()

        async def claim(room: int, manager: LateManager = manager) -> tuple[StoredJob, ...]:
            return await manager.claim("w", limit=room)

        manager.meanwhile = meanwhile
        running = Subscriptions(manager).start(Subscription(manager, claim, 3))
        await asyncio.wait_for(assigned.wait(), PATIENCE_SECONDS)
        assert (await queue.get_job_stats([])).running_jobs == 3
        for _ in range(cancellations):
            running.cancel()
            await asyncio.sleep(0)
        answer.set()
        await all_given_back(queue, running)


@suite.case(WORKERS, "a stream that is cancelled as its claim is answered gives back as well")
async def cancelled_at_the_answer(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 3)
    running: list[asyncio.Task[None]] = []

    async def claim(room: int) -> tuple[StoredJob, ...]:
        jobs = await queue.manager.claim("w", limit=room)
        # After the claim's last step, and before the stream hears of it.
        asyncio.get_running_loop().call_soon(running[0].cancel)
        return jobs

    running.append(Subscriptions(queue.manager).start(Subscription(queue.manager, claim, 3)))
    await all_given_back(queue, running[0])


async def all_given_back(queue: Queue, running: asyncio.Task[None]) -> None:
    """The stream's task is cancelled, and its three jobs can be assigned again; then they are removed."""
    await asyncio.wait([running], timeout=PATIENCE_SECONDS)
    assert running.cancelled()

    async def given_back() -> bool:
        return (await queue.get_job_stats([])).running_jobs == 0

    await until(given_back)
    jobs = [job.id for job in await queue.dequeue_jobs("x", [], 10)]
    assert len(jobs) == 3
    for job_id in jobs:
        await queue.stop_job(job_id)
    await queue.delete_jobs([], jobs)
