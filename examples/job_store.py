"""A JobManager over a store of one's own: a plain class with the methods of the specification."""

import asyncio
from collections import Counter
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.contracts.job_store import (
    AsyncEndpointError,
    BackgroundService,
    Id,
    Job,
    JobManager,
    JobManagerConfiguration,
    JobStatistics,
    JobStatus,
    MethodResult,
)

Q, S, P = JobStatus.QUEUED, JobStatus.SCHEDULED, JobStatus.IN_PROGRESS


class DictStore:
    """Jobs in a dict. One event loop, so each method is one atomic step: none of them waits."""

    def __init__(self) -> None:
        self.jobs: dict[Id, Job] = {}

    async def create_job(self, job: Job) -> MethodResult[Any]:
        self.jobs.setdefault(job.id, deepcopy(job))
        return MethodResult.success()

    async def get_job_by_id(self, job_id: Id) -> MethodResult[Job]:
        return MethodResult.success(deepcopy(self.jobs.get(job_id)))

    async def update_job(self, job: Job) -> MethodResult[Any]:
        return self._set(job.id, **vars(deepcopy(job)))

    async def update_job_status(self, job_id: Id, status: JobStatus) -> MethodResult[Any]:
        return self._set(job_id, status=status)

    async def update_job_result(self, job_id: Id, result: Any) -> MethodResult[Any]:
        return self._set(job_id, result=result)

    async def update_job_exception(self, job_id: Id, exception: str) -> MethodResult[Any]:
        return self._set(job_id, exception=exception)

    async def claim_jobs_for_worker(
        self, worker_id: Id, max_claim_count: int
    ) -> MethodResult[list[Job]]:
        claimed = self._in(Q)[:max_claim_count]
        for job in claimed:
            job.status, job.worker_id, job.last_updated_at = P, worker_id, datetime.now(UTC)
        return MethodResult.success(deepcopy(claimed))

    async def get_jobs_by_status(self, status: JobStatus, limit: int) -> MethodResult[list[Job]]:
        return MethodResult.success(deepcopy(self._in(status)[:limit]))

    async def get_due_scheduled_jobs(self, limit: int) -> MethodResult[list[Job]]:
        now = datetime.now(UTC)
        due = [job for job in self._in(S) if (job.retry_delay_until or now) <= now]
        return MethodResult.success(deepcopy(due[:limit]))

    async def release_job_to_pool(self, job_id: Id) -> MethodResult[Any]:
        return self._set(job_id, status=Q, worker_id=None)

    async def delete_job(self, job_id: Id) -> MethodResult[Any]:
        self.jobs.pop(job_id, None)
        return MethodResult.success()

    async def get_job_statistics(self) -> MethodResult[JobStatistics]:
        count = Counter(job.status for job in self.jobs.values())
        return MethodResult.success(
            JobStatistics(queued_count=count[Q], completed_count=count[JobStatus.COMPLETED])
        )

    async def cleanup_completed_jobs(self, max_age: timedelta) -> MethodResult[int]:
        line = datetime.now(UTC) - max_age
        old = [job for job in self._in(JobStatus.COMPLETED) if (job.completed_at or line) < line]
        for job in old:
            del self.jobs[job.id]
        return MethodResult.success(len(old))

    def _in(self, status: JobStatus) -> list[Job]:
        return [job for job in self.jobs.values() if job.status is status]

    def _set(self, job_id: Id, **fields: Any) -> MethodResult[Any]:
        if job_id not in self.jobs:
            return MethodResult.failure(AsyncEndpointError("JOB_NOT_FOUND", f"no job {job_id}"))
        vars(self.jobs[job_id]).update(fields)
        return MethodResult.success()


async def main() -> None:
    failed_once: set[Id] = set()

    async def resize(job: Job) -> str:
        if job.id == "photo-2" and job.id not in failed_once:
            failed_once.add(job.id)
            raise TimeoutError("the disk was busy")
        return f"{job.id} at {job.payload['width']} px"

    quick = JobManagerConfiguration(retry_delay_base_seconds=0.05, job_polling_interval_ms=20)
    manager = JobManager(DictStore(), quick)
    for number in range(1, 4):
        await manager.submit_job(Job(id=f"photo-{number}", payload={"width": 80}))
    async with BackgroundService(manager, resize):
        while (statistics := (await manager.get_job_statistics()).data) is not None:
            if statistics.completed_count == 3:
                break
            await asyncio.sleep(0.01)
    for number in range(1, 4):
        job = (await manager.get_job_by_id(f"photo-{number}")).data
        assert job is not None
        print(f"{job.status}: {job.result}, {job.retry_count} retries")


if __name__ == "__main__":
    asyncio.run(main())
