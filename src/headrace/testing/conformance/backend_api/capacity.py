"""Integration Patterns: the capacity of a subscription."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from headrace.contracts.backend_api import (
    InvalidStateError,
    Job,
    Queue,
)
from headrace.testing.conformance.backend_api.streaming import (
    CAPACITY,
    PATIENCE_SECONDS,
    DeafManager,
    fill,
    neighbours,
    nothing,
    special,
    streaming,
    take,
)
from headrace.testing.conformance.backend_api.suite import S, suite
from headrace.testing.conformance.kit import CaseFunction, Env, raises


@suite.case(CAPACITY, "never more than max_assigned jobs of a subscription are assigned")
async def never_more(env: Env) -> None:
    async with streaming(env, 10, 3) as (queue, stream):
        held = await take(stream, 3)
        await nothing(stream)
        assert (await queue.get_job_stats([])).running_jobs == 3
        for number in range(7):
            assert await queue.complete_job(held.pop(0).id, b"") == {"w": 1}
            held += await take(stream, 1)
            assert (await queue.get_job_stats([])).running_jobs == 3, number
        await nothing(stream)
        assert (await queue.get_job_stats([])).completed_jobs == 7


FREEING: dict[str, Callable[[Queue, str], Awaitable[Any]]] = {
    "complete_job": lambda queue, job_id: queue.complete_job(job_id, b""),
    "fail_job": lambda queue, job_id: queue.fail_job(job_id, "no"),
    "stop_job": lambda queue, job_id: queue.stop_job(job_id, ""),
    "mark_job_unknown_stopped": lambda queue, job_id: queue.mark_job_unknown_stopped(job_id, ""),
    "update_job_status to a final status": lambda queue, job_id: queue.update_job_status(
        job_id, S.STOPPED, None, ""
    ),
    "update_job_status to an eligible status": lambda queue, job_id: queue.update_job_status(
        job_id, S.UNKNOWN_RETRY, None, ""
    ),
    "complete_jobs": lambda queue, job_id: queue.complete_jobs({job_id: b""}),
    "mark_worker_unresponsive": lambda queue, _: queue.mark_worker_unresponsive("w"),
    "reset_running_jobs": lambda queue, _: queue.reset_running_jobs(),
}

FREEING_CANCELLED: dict[str, Callable[[Queue, str], Awaitable[Any]]] = {
    "acknowledge_cancellation, was executing": lambda queue, job_id: queue.acknowledge_cancellation(
        job_id, was_executing=True
    ),
    "acknowledge_cancellation, was not executing": lambda queue, job_id: (
        queue.acknowledge_cancellation(job_id, was_executing=False)
    ),
    "stop_job_with_retry": lambda queue, job_id: queue.stop_job_with_retry(job_id, "no"),
    "complete_job after cancel_jobs": lambda queue, job_id: queue.complete_job(job_id, b""),
}


def _refill(free: Callable[[Queue, str], Awaitable[Any]], *, cancel_first: bool) -> CaseFunction:
    async def case(env: Env) -> None:
        queue, _ = await special(env, DeafManager)
        await fill(queue, 1)
        async with queue.stream_jobs("w", [], 1) as stream:
            (first,) = await take(stream, 1)
            await queue.enqueue_job(Job(id="next", created_at=first.created_at))
            await queue.enqueue_job(Job(id="last", created_at=first.created_at))
            if cancel_first:
                await queue.cancel_jobs([], [first.id])
                await nothing(stream)
            await free(queue, first.id)
            (second,) = await take(stream, 1)
            assert second.id in ("next", first.id)
            await nothing(stream)
            assert (await queue.get_job_stats([])).running_jobs == 1

    return case


for _name, _free in FREEING.items():
    suite.case(CAPACITY, f"{_name} through the queue frees one slot at once")(
        _refill(_free, cancel_first=False)
    )
for _name, _free in FREEING_CANCELLED.items():
    suite.case(CAPACITY, f"{_name} through the queue frees one slot at once")(
        _refill(_free, cancel_first=True)
    )


@suite.case(CAPACITY, "no capacity is lost, in whatever order jobs end")
async def any_order(env: Env) -> None:
    async with streaming(env, 40, 4) as (queue, stream):
        held = await take(stream, 4)
        for number in range(36):
            job = held.pop((number * 7) % 4)
            free = list(FREEING.values())[number % 4]
            await free(queue, job.id)
            held += await take(stream, 1)
            assert (await queue.get_job_stats([])).running_jobs == 4
        await nothing(stream)


@suite.case(CAPACITY, "a cancellation alone frees nothing: the worker still holds the job")
async def cancel_frees_nothing(env: Env) -> None:
    async with streaming(env, 2, 1) as (queue, stream):
        await take(stream, 1)
        await queue.cancel_jobs([], ["j0"])
        await nothing(stream)
        await queue.acknowledge_cancellation("j0", was_executing=True)
        assert [job.id for job in await take(stream, 1)] == ["j1"]


@suite.case(CAPACITY, "a freed job credits its slot once, however many reports of it arrive")
async def credited_once(env: Env) -> None:
    async with streaming(env, 10, 2) as (queue, stream):
        first, second = await take(stream, 2)
        await queue.mark_job_unknown_stopped(first.id, "")
        await queue.complete_job(first.id, b"late")  # frees nothing: the worker lost it before
        with raises(InvalidStateError):
            await queue.complete_job(first.id, b"again")
        await queue.mark_worker_unresponsive("somebody else")
        assert len(await take(stream, 1)) == 1
        await nothing(stream)
        assert (await queue.get_job_stats([])).running_jobs == 2
        assert (await queue.get_job(second.id)).status is S.RUNNING


@suite.case(CAPACITY, "an old report does not free the job's next assignment")
async def stale_report(env: Env) -> None:
    async with streaming(env, 1, 1) as (queue, stream):
        for attempt in range(1, 6):
            (job,) = await take(stream, 1)
            assert (job.id, job.retry_count) == ("j0", attempt - 1)
            await queue.fail_job("j0", "again")
        await take(stream, 1)
        await queue.enqueue_job(Job(id="next"))
        await nothing(stream)


@suite.case(CAPACITY, "a job that was not assigned through the subscription does not credit it")
async def foreign_job(env: Env) -> None:
    async with streaming(env, 1, 1) as (queue, stream):
        await take(stream, 1)
        await fill_tagged(queue)
        (direct,) = await queue.dequeue_jobs("w", ["direct"], 1)
        assert await queue.complete_job(direct.id, b"") == {"w": 1}
        await nothing(stream)
        assert (await queue.get_job_stats([])).running_jobs == 1
        await queue.complete_job("j0", b"")
        await take(stream, 1)
        await nothing(stream)


async def fill_tagged(queue: Queue) -> None:
    await queue.enqueue_jobs([Job(id="direct", tags=["direct"]), Job(id="x"), Job(id="y")])


@suite.case(CAPACITY, "capacity that another user of the store frees is filled again")
async def freed_from_outside(env: Env) -> None:
    queue, outside, _ = await neighbours(env)
    await fill(queue, 2)
    async with queue.stream_jobs("w", [], 1) as stream:
        (first,) = await take(stream, 1)
        assert await outside.complete_job(first.id, b"") == {"w": 1}
        assert [job.id for job in await take(stream, 1)] == ["j1"]
        await nothing(stream)


@suite.case(CAPACITY, "two subscriptions of one worker have a capacity each")
async def two_subscriptions(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await queue.enqueue_jobs(
        [Job(id=f"{tag}{n}", tags=[tag]) for n in range(3) for tag in ("red", "blue")]
    )
    async with (
        queue.stream_jobs("w", ["red"], 1) as red,
        queue.stream_jobs("w", ["blue"], 2) as blue,
    ):
        assert [job.id for job in await take(red, 1)] == ["red0"]
        assert [job.id for job in await take(blue, 2)] == ["blue0", "blue1"]
        await nothing(red)
        await nothing(blue)
        assert await queue.complete_job("blue0", b"") == {"w": 1}
        await nothing(red)
        assert [job.id for job in await take(blue, 1)] == ["blue2"]
        await queue.complete_job("red0", b"")
        assert [job.id for job in await take(red, 1)] == ["red1"]
        await nothing(blue)


@suite.case(CAPACITY, "two subscriptions with the same tags never get the same job")
async def shared_work(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 40)
    done: list[str] = []

    async def work(worker: str) -> None:
        async with queue.stream_jobs(worker, [], 3) as stream:
            async for job in stream:
                assert job.assignee_id == worker
                assert await queue.complete_job(job.id, b"") == {worker: 1}
                done.append(job.id)
                if len(done) == 40:
                    done_all.set()

    done_all = asyncio.Event()
    workers = [asyncio.create_task(work(f"w{n}")) for n in range(4)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        await done_all.wait()
    for task in workers:
        task.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    assert sorted(done) == sorted(f"j{n}" for n in range(40))
    assert (await queue.get_job_stats([])).completed_jobs == 40
