"""The suite, and how its cases bring a job into each status by the text's own calls."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.contracts.backend_api import Backend, Job, JobStatus
from headrace.testing.conformance.kit import Suite

suite = Suite("backend_api", "Backend API Specification")

S = JobStatus
STATUSES = tuple(JobStatus)
FINAL = (S.COMPLETED, S.UNSCHEDULED, S.STOPPED, S.UNKNOWN_STOPPED)
NOT_FINAL = tuple(status for status in STATUSES if status not in FINAL)
ELIGIBLE = (S.INITIAL_PENDING, S.FAILED_RETRY, S.UNKNOWN_RETRY)


def worker_of(job_id: str) -> str:
    """Each job that `put` assigns has a worker of its own."""
    return f"worker-of-{job_id}"


async def put(backend: Backend, job_id: str, status: JobStatus, tags: Iterable[str] = ()) -> Job:
    """A new job that has come to `status`; the job as it is then."""
    only = f"only:{job_id}"
    worker = worker_of(job_id)
    await backend.enqueue_job(Job(id=job_id, payload=b"work", tags=[*tags, only]))
    if status not in (S.INITIAL_PENDING, S.UNSCHEDULED):
        (job,) = await backend.dequeue_jobs(worker, [only], 1)
        assert (job.id, job.status) == (job_id, S.RUNNING)
    match status:
        case S.INITIAL_PENDING | S.RUNNING:
            pass
        case S.UNSCHEDULED | S.CANCELLING:
            await backend.cancel_jobs([], [job_id])
        case S.FAILED_RETRY:
            await backend.fail_job(job_id, "first failure")
        case S.UNKNOWN_RETRY:
            await backend.mark_worker_unresponsive(worker)
        case S.COMPLETED:
            await backend.complete_job(job_id, b"first result")
        case S.STOPPED:
            await backend.stop_job(job_id, "stopped first")
        case S.UNKNOWN_STOPPED:
            await backend.mark_job_unknown_stopped(job_id, "given up first")
    job = await backend.get_job(job_id)
    assert job.status is status
    return job


async def drain(backend: Backend, assignee_id: str = "drain", tags: Iterable[str] = ()) -> set[str]:
    """The ids of all that is eligible, by assigning it."""
    return {job.id for job in await backend.dequeue_jobs(assignee_id, list(tags), 1000)}
