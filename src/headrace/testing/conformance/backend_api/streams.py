"""Integration Patterns: the Queue above the Backend, its batches and its streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from headrace.contracts.backend_api import (
    Backend,
    InvalidArgumentError,
    InvalidStateError,
    Job,
    JobNotFoundError,
    JobStatus,
    JobStream,
    Queue,
    StorageError,
)
from headrace.manager import JobManager
from headrace.model import Event
from headrace.model import Job as StoredJob
from headrace.policy import BACKEND_API
from headrace.testing.conformance.backend_api.suite import S, drain, put, suite
from headrace.testing.conformance.kit import CaseFunction, Env, raises

SUBMISSION = "Integration Patterns 1. Job Submission"
ASSIGNMENT = "Integration Patterns 2. Job Assignment"
COMPLETION = "Integration Patterns 3. Job Completion"
CAPACITY = "Integration Patterns 4. Capacity Management"
WORKERS = "Integration Patterns 5. Worker Management"

PATIENCE_SECONDS = 20.0
"""How long a job that must come may take; the poll interval of a store without hints fits in."""
QUIET_SECONDS = 0.05
"""How long nothing must come where nothing may come."""


async def take(stream: JobStream, count: int) -> list[Job]:
    """The next `count` jobs."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [await anext(stream) for _ in range(count)]


async def nothing(stream: JobStream) -> None:
    """No job comes; asking in vain does not end the stream."""
    with raises(TimeoutError):
        await asyncio.wait_for(anext(stream), QUIET_SECONDS)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what follows a stream's end on its own, such as jobs given back after a `break`."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await condition():  # noqa: ASYNC110 - the end of the stream tells nobody
            await asyncio.sleep(0.005)


async def fill(queue: Queue, count: int, **fields: Any) -> list[str]:
    return await queue.enqueue_jobs([Job(id=f"j{n}", **fields) for n in range(count)])


@contextlib.asynccontextmanager
async def streaming(
    env: Env, jobs: int, max_assigned: int, **fields: Any
) -> AsyncIterator[tuple[Queue, JobStream]]:
    """A queue with jobs, and a stream of worker `w` on it."""
    queue: Queue = await env.open(Queue)
    await fill(queue, jobs, **fields)
    async with queue.stream_jobs("w", [], max_assigned) as stream:
        yield queue, stream


async def neighbours(env: Env) -> tuple[Queue, Backend, JobManager]:
    """A queue, and a backend on the same store that the queue knows nothing of."""
    manager = await env.manager(BACKEND_API)
    return env.closing(Queue(manager)), Backend(manager), manager


class DeafManager(JobManager):
    """Hears nothing of the event log: what a stream learns, it learns from its own queue."""

    async def events(self, **_: Any) -> tuple[Event, ...]:
        return ()


class LateManager(JobManager):
    """The answer of the first claim comes late: something else happens before it arrives."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def claim(self, *args: Any, **options: Any) -> tuple[StoredJob, ...]:
        jobs = await super().claim(*args, **options)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return jobs


_M = TypeVar("_M", bound=JobManager)


async def special(env: Env, kind: type[_M]) -> tuple[Queue, _M]:
    """A queue on a manager of this kind."""
    plain = await env.manager(BACKEND_API)
    manager = kind(plain.store, clock=plain.clock, policies=plain.policies)
    return env.closing(Queue(manager)), manager


# --- batches -------------------------------------------------------------------------------------


async def _cancelling(queue: Queue) -> None:
    for job_id in ("a", "b"):
        await put(queue, job_id, S.CANCELLING)


async def _running(queue: Queue) -> None:
    for job_id in ("a", "b"):
        await put(queue, job_id, S.RUNNING)


BATCHES: dict[str, tuple[Callable[[Queue], Awaitable[Any]], Any, JobStatus, str]] = {
    "complete_jobs": (_running, b"out", S.COMPLETED, ""),
    "fail_jobs": (_running, "said", S.FAILED_RETRY, "said"),
    "stop_jobs": (_running, "said", S.STOPPED, "said"),
    "stop_jobs_with_retry": (_cancelling, "said", S.STOPPED, "said"),
    "mark_jobs_unknown_stopped": (_running, "said", S.UNKNOWN_STOPPED, "said"),
    "acknowledge_cancellations": (_cancelling, True, S.STOPPED, "cancelled"),
}


def _batch(name: str) -> CaseFunction:
    stage, value, target, message = BATCHES[name]

    async def case(env: Env) -> None:
        queue: Queue = await env.open(Queue)
        await stage(queue)
        done = await put(queue, "done", S.COMPLETED)
        answer = await getattr(queue, name)({"a": value, "done": value, "b": value, "ghost": value})
        assert answer.freed == {"worker-of-a": 1, "worker-of-b": 1}
        assert {job_id: type(error) for job_id, error in answer.errors.items()} == {
            "done": InvalidStateError,
            "ghost": JobNotFoundError,
        }
        for job in await queue.get_jobs(["a", "b"]):
            assert (job.status, job.error_message) == (target, message)
        assert await queue.get_job("done") == done
        empty = await getattr(queue, name)({})
        assert (empty.freed, empty.errors) == ({}, {})

    return case


for _name in BATCHES:
    suite.case(COMPLETION, f"{_name} changes each job alone and sums the capacity freed")(
        _batch(_name)
    )


@suite.case(COMPLETION, "a bad value refuses its own job of a batch, not the others")
async def bad_value(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await _running(queue)
    answer = await queue.fail_jobs({"a": "", "b": "said"})
    assert {job_id: type(error) for job_id, error in answer.errors.items()} == {
        "a": InvalidArgumentError
    }
    assert (await queue.get_job("a")).status is S.RUNNING
    assert (await queue.get_job("b")).status is S.FAILED_RETRY


@suite.case(COMPLETION, "get_jobs answers in order, and an unknown ID is an error")
async def get_many(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 3)
    assert [job.id for job in await queue.get_jobs(["j2", "j0"])] == ["j2", "j0"]
    assert await queue.get_jobs([]) == []
    with raises(JobNotFoundError):
        await queue.get_jobs(["j2", "ghost"])


# --- subscribing ---------------------------------------------------------------------------------


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


# --- capacity ------------------------------------------------------------------------------------


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
                done.append(job.id)
                await queue.complete_job(job.id, b"")
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


# --- the end of a stream -------------------------------------------------------------------------


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


@suite.case(CAPACITY, "what is given back is no longer the worker's to finish for somebody else")
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
