"""Error Conditions 1 to 6, Observable State Changes, guidelines and Testing Requirements."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from headrace.contracts.backend_api import (
    Backend,
    BackendError,
    DuplicateJobError,
    InvalidArgumentError,
    InvalidStateError,
    Job,
    JobNotFoundError,
    Queue,
    StorageError,
)
from headrace.errors import HeadraceError
from headrace.testing.conformance.backend_api.suite import S, put, suite, worker_of
from headrace.testing.conformance.kit import CaseFunction, Env, raises

CALLS: dict[str, Callable[[Backend], Awaitable[Any]]] = {
    "EnqueueJob": lambda backend: backend.enqueue_job(Job(id="new")),
    "EnqueueJobs": lambda backend: backend.enqueue_jobs([Job(id="new")]),
    "DequeueJobs": lambda backend: backend.dequeue_jobs("w", [], 1),
    "CompleteJob": lambda backend: backend.complete_job("running", b""),
    "FailJob": lambda backend: backend.fail_job("running", "no"),
    "StopJob": lambda backend: backend.stop_job("running", "no"),
    "StopJobWithRetry": lambda backend: backend.stop_job_with_retry("cancelling", "no"),
    "MarkJobUnknownStopped": lambda backend: backend.mark_job_unknown_stopped("running", "no"),
    "UpdateJobStatus": lambda backend: backend.update_job_status("running", S.COMPLETED, None, ""),
    "CancelJobs": lambda backend: backend.cancel_jobs([], ["pending"]),
    "AcknowledgeCancellation": lambda backend: backend.acknowledge_cancellation(
        "cancelling", was_executing=True
    ),
    "MarkWorkerUnresponsive": lambda backend: backend.mark_worker_unresponsive(
        worker_of("running")
    ),
    "GetJob": lambda backend: backend.get_job("running"),
    "GetJobStats": lambda backend: backend.get_job_stats([]),
    "CleanupExpiredJobs": lambda backend: backend.cleanup_expired_jobs(60),
    "ResetRunningJobs": lambda backend: backend.reset_running_jobs(),
    "DeleteJobs": lambda backend: backend.delete_jobs([], ["completed"]),
}
"""Every method that talks to the store, with arguments that work."""

JOBS = (S.INITIAL_PENDING, S.RUNNING, S.CANCELLING, S.COMPLETED)
NAMES = ("pending", "running", "cancelling", "completed")


async def _stage(env: Env) -> tuple[Backend, list[Job]]:
    backend: Backend = await env.open(Backend)
    jobs = [await put(backend, name, status) for name, status in zip(NAMES, JOBS, strict=True)]
    env.clock.advance(3600)
    return backend, jobs


def _storage_fails(name: str) -> CaseFunction:
    async def case(env: Env) -> None:
        backend, _ = await _stage(env)
        await backend.close()  # the one failure that every store can be brought to
        with raises(StorageError):
            await CALLS[name](backend)

    return case


def _cancelled(name: str) -> CaseFunction:
    async def case(env: Env) -> None:
        backend, before = await _stage(env)
        task = asyncio.ensure_future(CALLS[name](backend))
        task.cancel()
        with raises(asyncio.CancelledError):
            await task
        assert [await backend.get_job(job_id) for job_id in NAMES] == before
        assert (await backend.get_job_stats([])).total_jobs == len(before)

    return case


for _name in CALLS:
    suite.case(f"{_name}: Error Conditions", "a storage operation that fails is an error")(
        _storage_fails(_name)
    )
    suite.case(
        f"{_name}: Error Conditions",
        "a context that is cancelled ends the call and changes nothing",
    )(_cancelled(_name))


@suite.case(
    "Error Conditions 1. Context Cancellation",
    "a call that is cancelled under way is done whole or not at all",
)
async def cancelled_under_way(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for steps in range(6):
        ids = [f"{steps}-{n}" for n in range(10)]
        task = asyncio.ensure_future(
            backend.enqueue_jobs([Job(id=job_id, tags=[f"round-{steps}"]) for job_id in ids])
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        stored = (await backend.get_job_stats([f"round-{steps}"])).total_jobs
        assert stored in (0, 10)


@suite.case(
    "Error Conditions 2. Invalid States", "completing a completed job is an error of its own kind"
)
async def invalid_state(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.COMPLETED)
    with raises(InvalidStateError) as caught:
        await backend.complete_job("a", b"again")
    assert isinstance(caught.error, BackendError)
    assert caught.error.job_id == "a"
    assert await backend.get_job("a") == before


@suite.case(
    "Error Conditions 3. Not Found", "a job that does not exist is an error of its own kind"
)
async def not_found(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(JobNotFoundError) as caught:
        await backend.complete_job("ghost", b"")
    assert isinstance(caught.error, BackendError)
    assert caught.error.job_id == "ghost"


@suite.case(
    "Error Conditions 4. Backend Errors",
    "an error of the storage reaches the caller with its cause",
)
async def storage_error(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.close()
    with raises(StorageError) as caught:
        await backend.get_job("a")
    assert isinstance(caught.error, BackendError)
    assert isinstance(caught.error.__cause__, HeadraceError)


@suite.case(
    "Error Conditions 5. Invalid Parameters", "every invalid parameter is an error of one kind"
)
async def invalid_parameters(env: Env) -> None:
    backend, before = await _stage(env)
    nil: Any = None
    for call in (
        backend.enqueue_job(nil),
        backend.get_job(""),
        backend.get_job(nil),
        backend.complete_job("", b""),
        backend.fail_job("", "no"),
        backend.fail_job("running", nil),
        backend.stop_job("running", 5),  # type: ignore[arg-type]  # that is the statement
        backend.complete_job("running", object()),
        backend.dequeue_jobs("w", [], -1),
        backend.dequeue_jobs("w", [], True),  # noqa: FBT003 - a bool is no count
        backend.dequeue_jobs("", [], 1),
        backend.dequeue_jobs("w", "pending", 1),
        backend.dequeue_jobs("w", [""], 1),
        backend.cancel_jobs([], [""]),
        backend.cancel_jobs([], "pending"),
        backend.acknowledge_cancellation("cancelling", nil),
        backend.cleanup_expired_jobs(nil),
        backend.get_job_stats([""]),
    ):
        with raises(InvalidArgumentError):
            await call
    assert [await backend.get_job(job_id) for job_id in NAMES] == before


@suite.case(
    "Error Conditions 5. Invalid Parameters", "what is not a list is an error of the same kind"
)
async def not_a_list(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await queue.enqueue_job(Job(id="a", tags=["t"]))
    before = await queue.get_job("a")
    bad: list[Any] = [5, 0, True, object(), [5], [None], [["t"]], b"", ""]
    for wrong in bad:
        for call in (
            lambda wrong=wrong: queue.dequeue_jobs("w", wrong, 1),
            lambda wrong=wrong: queue.cancel_jobs(wrong, ["a"]),
            lambda wrong=wrong: queue.cancel_jobs(["t"], wrong),
            lambda wrong=wrong: queue.delete_jobs(wrong, ["a"]),
            lambda wrong=wrong: queue.delete_jobs(["t"], wrong),
            lambda wrong=wrong: queue.get_job_stats(wrong),
            lambda wrong=wrong: queue.get_jobs(wrong),
            lambda wrong=wrong: queue.enqueue_job(Job(id="b", tags=wrong)),
            lambda wrong=wrong: queue.enqueue_jobs(wrong),
            lambda wrong=wrong: queue.complete_jobs(wrong),
        ):
            with raises(InvalidArgumentError):
                await call()
        with raises(InvalidArgumentError):
            queue.stream_jobs("w", wrong, 1)
    nil: Any = None
    with raises(InvalidArgumentError):
        await queue.get_jobs(nil)
    with raises(InvalidArgumentError):
        await queue.enqueue_jobs(nil)
    assert await queue.get_job("a") == before


@suite.case(
    "Error Conditions 6. Validation Failures", "duplicate IDs and jobs not final are errors"
)
async def validation_failures(env: Env) -> None:
    backend, before = await _stage(env)
    with raises(DuplicateJobError):
        await backend.enqueue_job(Job(id="pending"))
    with raises(InvalidStateError):
        await backend.delete_jobs([], list(NAMES))
    assert [await backend.get_job(job_id) for job_id in NAMES] == before


@suite.case(
    "Observable State Changes",
    "GetJob shows status, assignee, timestamps and retry count as they change",
)
async def observable_job(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    env.clock.advance(1)
    await backend.dequeue_jobs("w", [], 1)
    job = await backend.get_job("a")
    assert (job.status, job.assignee_id, job.assigned_at) == (S.RUNNING, "w", env.clock.now())
    env.clock.advance(1)
    await backend.fail_job("a", "no")
    job = await backend.get_job("a")
    assert (job.status, job.retry_count, job.last_retry_at) == (S.FAILED_RETRY, 1, env.clock.now())


@suite.case("Observable State Changes", "freedAssigneeIDs and GetJobStats show the same change")
async def observable_counts(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING, tags=["t"])
    assert (await backend.get_job_stats(["t"])).running_jobs == 1
    assert await backend.stop_job("a", "") == {worker_of("a"): 1}
    stats = await backend.get_job_stats(["t"])
    assert (stats.running_jobs, stats.stopped_jobs) == (0, 1)


@suite.case(
    "Performance Expectations",
    "the time of GetJob, DequeueJobs and GetJobStats stays within the text's bounds",
)
async def performance(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}", tags=[f"t{n % 10}"]) for n in range(3000)])

    async def best(call: Callable[[], Awaitable[object]]) -> float:
        """Of five, in seconds: what the machine does meanwhile is not the store's fault."""
        times = []
        for _ in range(5):
            start = time.perf_counter()
            await call()
            times.append(time.perf_counter() - start)
        return min(times)

    assert await best(lambda: backend.get_job("j1500")) < 0.1
    assert await best(lambda: backend.dequeue_jobs("w", ["t3"], 10)) < 0.1
    assert await best(lambda: backend.get_job_stats(["t4"])) < 0.5
    assert await best(lambda: backend.get_job_stats([])) < 0.5


@suite.case(
    "Performance Expectations", "twelve concurrent workers drain the backlog, each job once"
)
async def many_workers(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}") for n in range(120)])

    async def work(name: str) -> int:
        done = 0
        while jobs := await backend.dequeue_jobs(name, [], 5):
            for job in jobs:
                assert await backend.complete_job(job.id, b"") == {name: 1}
                done += 1
        return done

    assert sum(await asyncio.gather(*(work(f"w{n}") for n in range(12)))) == 120
    assert (await backend.get_job_stats([])).completed_jobs == 120


@suite.case(
    "Testing Requirements 7. Durability",
    "where the store is durable, a second backend on it reads every field",
)
async def durability(env: Env) -> None:
    backend, jobs = await _stage(env)
    manager = await env.manager()
    if not manager.capabilities.durable:
        return  # nothing outlives this store, by its own word
    await backend.close()
    again: Backend = await env.open(Backend)
    assert [await again.get_job(job_id) for job_id in NAMES] == jobs
    assert await again.complete_job("running", b"after") == {worker_of("running"): 1}
