"""The suite of the manager, and what its cases share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.manager import JobManager
from headrace.model import Job, State
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Suite

suite = Suite("manager", "the manager, headrace.manager.JobManager")


async def submit(manager: JobManager, job_id: str, **fields: Any) -> Job:
    """One job by id, of type "t" unless said otherwise."""
    given: dict[str, Any] = {"type": "t", "id": job_id}
    return (await manager.submit(JobSpec(**(given | fields)))).job


async def take(manager: JobManager, job_id: str, worker: str = "w") -> tuple[Job, str]:
    """Claim everything there is, and give back one job of it, with its token."""
    for job in await manager.claim(worker, limit=1000):
        if job.id == job_id:
            assert job.token is not None
            return job, job.token
    raise AssertionError(f"job {job_id} was not claimable")


async def finish(manager: JobManager, *job_ids: str) -> None:
    """Claim and complete these jobs."""
    claimed = {job.id: job for job in await manager.claim("finisher", limit=10_000)}
    for job_id in job_ids:
        await manager.complete(job_id, claimed[job_id].token)
    for job_id, job in claimed.items():
        if job_id not in job_ids:
            await manager.release(job_id, job.token)


async def states(manager: JobManager, job_ids: Sequence[str]) -> list[State]:
    return [(await manager.get(job_id)).state for job_id in job_ids]


async def unchanged(manager: JobManager) -> tuple[int, str]:
    """What must be equal before and after something that was refused."""
    return (await manager.stats()).total, await manager.tail()
