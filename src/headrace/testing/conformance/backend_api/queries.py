"""Query Operations: GetJob, GetJobStats."""

from __future__ import annotations

from typing import Any

from headrace.contracts.backend_api import (
    Backend,
    InvalidArgumentError,
    Job,
    JobNotFoundError,
    JobStats,
    JobStatus,
)
from headrace.testing.conformance.backend_api.suite import (
    STATUSES,
    S,
    put,
    suite,
    worker_of,
)
from headrace.testing.conformance.kit import CaseFunction, Env, raises

COUNTED_AS = {
    S.INITIAL_PENDING: "pending_jobs",
    S.RUNNING: "running_jobs",
    S.CANCELLING: None,
    S.FAILED_RETRY: "failed_jobs",
    S.UNKNOWN_RETRY: "failed_jobs",
    S.COMPLETED: "completed_jobs",
    S.STOPPED: "stopped_jobs",
    S.UNSCHEDULED: "stopped_jobs",
    S.UNKNOWN_STOPPED: "stopped_jobs",
}


@suite.case("GetJob: Preconditions", "an empty jobID is refused")
async def empty_id(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(InvalidArgumentError):
        await backend.get_job("")


@suite.case("GetJob: Error Conditions", "a job that does not exist is an error")
async def unknown(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    with raises(JobNotFoundError) as caught:
        await backend.get_job("A")
    assert isinstance(caught.error, JobNotFoundError)
    assert caught.error.job_id == "A"


@suite.case("GetJob: Postconditions", "all fields are populated, tags included")
async def all_fields(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    created = env.clock.now()
    await backend.enqueue_job(Job(id="a", job_type="report", payload=b"in", tags=["y", "x"]))
    env.clock.advance(1)
    started = env.clock.now()
    await backend.dequeue_jobs("w1", [], 1)
    env.clock.advance(1)
    failed = env.clock.now()
    await backend.fail_job("a", "once")
    env.clock.advance(1)
    assigned = env.clock.now()
    await backend.dequeue_jobs("w2", [], 1)
    env.clock.advance(1)
    await backend.complete_job("a", b"out")
    assert await backend.get_job("a") == Job(
        id="a",
        status=S.COMPLETED,
        job_type="report",
        payload=b"in",
        tags=["y", "x"],
        created_at=created,
        started_at=started,
        finalized_at=env.clock.now(),
        assignee_id="w2",
        assigned_at=assigned,
        retry_count=1,
        last_retry_at=failed,
        result=b"out",
        error_message="once",
    )


@suite.case("GetJob: Postconditions", "reading changes nothing")
async def read_only(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.RUNNING)
    env.clock.advance(10)
    assert await backend.get_job("a") == before
    assert await backend.get_job("a") == before


@suite.case("GetJob: Backend Expectations", "the current state is read, also by a second reader")
async def current(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in STATUSES:
        await put(backend, status.lower(), status)
        assert (await backend.get_job(status.lower())).status is status


def _counted(status: JobStatus, field: str | None) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        job = await put(backend, "a", status)
        counts: dict[str, Any] = {"total_jobs": 1, "total_retries": job.retry_count}
        if field is not None:
            counts[field] = 1
        assert await backend.get_job_stats([]) == JobStats(**counts)

    return case


for _status, _field in COUNTED_AS.items():
    _as = "only in the total" if _field is None else f"in the total and in {_field}"
    suite.case("GetJobStats: Backend Expectations", f"{_status} counts {_as}")(
        _counted(_status, _field)
    )


@suite.case("GetJobStats: Postconditions", "no job at all is all zeros")
async def zeros(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    assert await backend.get_job_stats([]) == JobStats()
    assert await backend.get_job_stats(["x"]) == JobStats()


@suite.case(
    "GetJobStats: Postconditions", "empty tags count all jobs, others those that have all of them"
)
async def by_tags(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in STATUSES:
        await put(backend, status.lower(), status, tags=["x"])
        await put(backend, f"{status.lower()}-2", status, tags=["x", "y"])
        await put(backend, f"{status.lower()}-3", status, tags=["y"])
    one = JobStats(
        total_jobs=9,
        pending_jobs=1,
        running_jobs=1,
        completed_jobs=1,
        stopped_jobs=3,
        failed_jobs=2,
        total_retries=1,
    )
    assert await backend.get_job_stats(["y", "x"]) == one
    assert (await backend.get_job_stats(["x"])).total_jobs == 18
    assert (await backend.get_job_stats(["x"])).stopped_jobs == 6
    assert (await backend.get_job_stats([])).total_jobs == 27
    assert (await backend.get_job_stats([])).total_retries == 3
    assert await backend.get_job_stats(["x", "z"]) == JobStats()


@suite.case("GetJobStats: Postconditions", "reading changes nothing")
async def stats_read_only(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.RUNNING)
    assert await backend.get_job_stats([]) == await backend.get_job_stats([])
    assert await backend.get_job("a") == before


@suite.case(
    "GetJobStats: Backend Expectations", "TotalRetries sums the retries of jobs in every status"
)
async def total_retries(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id="a", tags=["t"]), Job(id="b")])
    for job_id, failures in (("a", 3), ("b", 2)):
        for _ in range(failures):
            await backend.dequeue_jobs("w", [], 2)
            await backend.fail_job(job_id, "no")
    assert (await backend.get_job_stats([])).total_retries == 5
    await backend.dequeue_jobs("w", [], 2)
    await backend.complete_job("a", b"")
    assert (await backend.get_job_stats([])).total_retries == 5
    assert (await backend.get_job_stats(["t"])).total_retries == 3
    await backend.delete_jobs([], ["a"])
    assert (await backend.get_job_stats([])).total_retries == 2


@suite.case(
    "GetJobStats: Backend Expectations", "each transition moves a job from one count to the other"
)
async def counts_move(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    assert await backend.get_job_stats([]) == JobStats(total_jobs=1, running_jobs=1)
    await backend.mark_worker_unresponsive(worker_of("a"))
    assert await backend.get_job_stats([]) == JobStats(total_jobs=1, failed_jobs=1)
    await backend.complete_job("a", b"")
    assert await backend.get_job_stats([]) == JobStats(total_jobs=1, completed_jobs=1)
    await backend.delete_jobs([], ["a"])
    assert await backend.get_job_stats([]) == JobStats()
