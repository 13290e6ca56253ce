"""What a JobManager needs of a store, and what it uses where a store can do more.

`IJobStore` is the specification's interface, and all that is needed: any object with these methods will
do. The others are optional, and asked for by what a store can do, never by what it is.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from headrace.contracts.job_store.entity import Id, Job, JobStatistics, JobStatus
from headrace.contracts.job_store.result import MethodResult


@runtime_checkable
class IJobStore(Protocol):
    """Keeps jobs. Every method answers with a MethodResult; what data a write brings is not looked at."""

    async def create_job(self, job: Job) -> MethodResult[Any]: ...

    async def get_job_by_id(self, job_id: Id, /) -> MethodResult[Job]:
        """The job as a copy. Unknown: a failure, or a success without a job."""
        ...

    async def update_job(self, job: Job) -> MethodResult[Any]:
        """Replace the stored job by this one, as far as the store allows."""
        ...

    async def update_job_status(self, job_id: Id, status: JobStatus) -> MethodResult[Any]: ...

    async def update_job_result(self, job_id: Id, result: Any) -> MethodResult[Any]: ...

    async def update_job_exception(self, job_id: Id, exception: str) -> MethodResult[Any]: ...

    async def claim_jobs_for_worker(
        self, worker_id: Id, max_claim_count: int
    ) -> MethodResult[list[Job]]:
        """Give the worker available jobs, each to one worker only, in one atomic step."""
        ...

    async def get_jobs_by_status(
        self, status: JobStatus, limit: int
    ) -> MethodResult[list[Job]]: ...

    async def get_due_scheduled_jobs(self, limit: int) -> MethodResult[list[Job]]: ...

    async def release_job_to_pool(self, job_id: Id) -> MethodResult[Any]: ...

    async def delete_job(self, job_id: Id) -> MethodResult[Any]: ...

    async def get_job_statistics(self) -> MethodResult[JobStatistics]: ...

    async def cleanup_completed_jobs(self, max_age: timedelta) -> MethodResult[int]: ...


@runtime_checkable
class HasClock(Protocol):
    """A store whose clock is the authority. Without it the manager goes by its own."""

    def now(self) -> datetime: ...


@runtime_checkable
class TimedClaims(Protocol):
    """A store whose claims end by themselves, so that it knows which are stale."""

    async def claim_jobs_for_a_time(
        self, worker_id: Id, max_claim_count: int, timeout: timedelta
    ) -> MethodResult[list[Job]]:
        """As claim_jobs_for_worker; the claims time out after so long."""
        ...

    async def release_stale_claims(self) -> MethodResult[int]:
        """Take back all that have timed out; how many there were."""
        ...


@runtime_checkable
class OneStepChanges(Protocol):
    """A store that checks and writes in one step, so that nothing comes between.

    Without it the manager reads a job, changes its copy and updates it, as the specification does, and of
    two who do so at once the later wins.
    """

    async def complete_job(self, job_id: Id, result: Any) -> MethodResult[Job]:
        """InProgress to Completed, if the claim holds."""
        ...

    async def fail_job(
        self, job_id: Id, exception: str, delay: timedelta | None
    ) -> MethodResult[Job]:
        """InProgress to Scheduled after the delay while retries are left; else, and without one, Failed."""
        ...

    async def cancel_waiting_job(self, job_id: Id) -> MethodResult[Job]:
        """Queued or Scheduled to Canceled; JOB_ALREADY_STARTED if a worker has it."""
        ...


@runtime_checkable
class ClaimsScheduledJobs(Protocol):
    """A store whose claims take a scheduled job as soon as its time has come, moved or not.

    A background service spares it the search for due jobs, unless the strategy is one of the user's own.
    """

    def takes_due_jobs(self) -> bool: ...
