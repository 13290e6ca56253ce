"""JobStore: the data half of the specification. It keeps and finds; it decides nothing about retries."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Self

from headrace import model, validation
from headrace.clock import Clock
from headrace.connect import connect
from headrace.contracts.job_store import updates
from headrace.contracts.job_store.entity import Id, Job, JobStatistics, JobStatus
from headrace.contracts.job_store.options import StoreOptions, UrlOptions
from headrace.contracts.job_store.projection import STATES
from headrace.contracts.job_store.records import (
    Records,
    check_exception,
    check_job,
    check_status,
    seconds_of,
)
from headrace.contracts.job_store.result import ErrorCode, Noted, Refused, again, answers
from headrace.contracts.presets import JOB_STORE
from headrace.input_checks import checked
from headrace.manager import JobManager as HeadraceManager
from headrace.manager.upkeep import LIMIT
from headrace.model import DEFAULT_TENANT, Category, State


class JobStore:
    """Jobs on any store.

    Every method returns a MethodResult: success with the data that its signature names, or an error,
    and then nothing was changed. `await JobStore.open(url)` opens a store; `JobStore(manager)` sits on
    a Headrace manager that is open already.
    """

    def __init__(self, manager: HeadraceManager, *, retry_count: int = 0) -> None:
        """`retry_count`: so often a call is tried again while the store cannot be reached."""
        self.records = Records(manager)
        self.retry_count = validation.check_limit(retry_count, "retry_count", minimum=0)

    @classmethod
    @checked
    async def open(cls, where: str | StoreOptions, clock: Clock | None = None) -> Self:
        """On the store behind a url, or as `RedisJobStoreOptions` or `SqlJobStoreOptions` say."""
        options = UrlOptions(where) if isinstance(where, str) else where
        place = options.place()

        async def opened() -> HeadraceManager:
            return await connect(
                place.url,
                policies=JOB_STORE,
                clock=clock,
                tenant=DEFAULT_TENANT,
                create=place.create,
                migrate=place.migrate,
            )

        manager = await again(opened, times=place.retry_count)
        return cls(manager, retry_count=place.retry_count)

    def now(self) -> datetime:
        """The store's own clock."""
        return self.records.now()

    async def close(self) -> None:
        """Give the store back. Closing twice is fine."""
        await self.records.manager.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # --- create, read, update, delete ------------------------------------------------------------

    @answers
    async def create_job(self, job: Job) -> Job:
        """Store a new job. With the id of a stored job, that job is the answer and nothing is stored."""
        _check_new(check_job(job))
        return await self.records.create(job)

    @answers
    async def get_job_by_id(self, id: Id) -> Job:
        """The job as it is now, or JOB_NOT_FOUND."""
        return self.records.show(await self.records.read(id))

    @answers
    async def update_job(self, job: Job) -> Job | Noted[Job]:
        """Make the stored job what this one says, as far as its status allows, in one step.

        If a field cannot be updated, nothing is: `error.fields` names each, and why. The times that the
        store writes itself are not taken: `not_updated` names those that the given job has otherwise.
        """
        check_job(job)
        given = replace(job, status=check_status(job.status))
        updated = await updates.update(self.records, given)
        return Noted(self.records.show(updated.job), updated.not_updated)

    @answers
    async def update_job_status(self, job_id: Id, status: JobStatus) -> Job:
        """Take the job to a status that the lifecycle allows now; the same status is no change."""
        target = check_status(status)
        stored = await self.records.read(job_id)
        shown = self.records.show(stored)
        if target is shown.status:
            return shown
        given = replace(shown, status=target, worker_id=None, claim_token=None)
        return self.records.show(await updates.transition(self.records, stored, given))

    @answers
    async def update_job_result(self, job_id: Id, result: Any) -> Job:
        """Note the result of a job in progress. Its status stays."""
        job, token = await self.records.fenced(job_id)
        return self.records.show(await self.records.note_result(job, token, result))

    @answers
    async def update_job_exception(self, job_id: Id, exception: str | BaseException) -> Job:
        """Note what went wrong with a job in progress. Its status stays: no retry is decided here."""
        message = check_exception(exception)
        job, token = await self.records.fenced(job_id)
        return self.records.show(await self.records.note_exception(job, token, message))

    @answers
    async def delete_job(self, job_id: Id) -> None:
        """Delete a job that no worker has. One that waits is cancelled first, so the log says so."""
        job = await self.records.read(job_id)
        if not job.is_terminal:
            await self.records.cancel(job.id)
        await self.records.manager.delete([job.id])
        self.records.claims.forget(job.id)

    # --- claiming --------------------------------------------------------------------------------

    @answers
    async def claim_jobs_for_worker(self, worker_id: Id, max_claim_count: int) -> list[Job]:
        """Give the worker up to so many due jobs, the longest due first, in one atomic step."""
        return await self.records.claim(worker_id, max_claim_count)

    @answers
    async def release_job_to_pool(self, job_id: Id) -> Job:
        """Take a job from the worker that has it, so that any worker can claim it at once.

        It costs no retry, however often it happens: a release fails no job.
        """
        stored = await self.records.read(job_id)
        if stored.is_terminal:
            self.records.claims.fence(stored, self.records.now())  # raises how it ended
        return self.records.show(await updates.release(self.records, stored))

    # --- what this store can do besides: see `interface` ------------------------------------------

    @answers
    async def claim_jobs_for_a_time(
        self, worker_id: Id, max_claim_count: int, timeout: timedelta
    ) -> list[Job]:
        """As claim_jobs_for_worker; the claims time out after so long."""
        seconds = validation.check_seconds(seconds_of(timeout), "timeout")
        return await self.records.claim(worker_id, max_claim_count, lease_seconds=seconds)

    @answers
    async def release_stale_claims(self) -> int:
        """Take back all claims that have timed out; how many. Each costs an attempt: see the docs."""
        return len((await self.records.manager.reap()).jobs)

    def takes_due_jobs(self) -> bool:
        """A claim takes a scheduled job as soon as its time has come."""
        return True

    @answers
    async def complete_job(self, job_id: Id, result: Any = None) -> Job:
        """InProgress to Completed, if the claim holds."""
        job, token = await self.records.fenced(job_id)
        changed = await self.records.manager.complete(job.id, token, result)
        return self.records.show(self.records.settled(changed.job))

    @answers
    async def fail_job(
        self, job_id: Id, exception: str | BaseException, delay: timedelta | float | None
    ) -> Job:
        """InProgress to Scheduled after the delay while retries are left; else, and without one, Failed."""
        message = check_exception(exception)
        seconds = None
        if delay is not None:
            seconds = validation.check_seconds(seconds_of(delay), "delay", zero=True)
        job, token = await self.records.fenced(job_id)
        changed = await self.records.manager.fail(
            job.id,
            token,
            message,
            category=Category.PERMANENT if delay is None else Category.TEMPORARY,
            retry_after=seconds,
        )
        return self.records.show(self.records.settled(changed.job))

    @answers
    async def cancel_waiting_job(self, job_id: Id) -> Job:
        """Queued or Scheduled to Canceled; JOB_ALREADY_STARTED if a worker has it."""
        return self.records.show(await self.records.cancel(job_id))

    # --- querying --------------------------------------------------------------------------------

    @answers
    async def get_jobs_by_status(self, status: JobStatus, limit: int) -> list[Job]:
        """Up to `limit` jobs of that status, the oldest first."""
        wanted = check_status(status)
        return await self.records.find(
            STATES[wanted], lambda job: self.records.status(job) is wanted, limit
        )

    @answers
    async def get_due_scheduled_jobs(self, limit: int) -> list[Job]:
        """Up to `limit` jobs that were scheduled and are due: retries, then those scheduled at first."""
        retries = await self.records.find((State.RETRYING,), self._is_due, limit)
        return retries + await self.records.find(
            (State.PENDING,), self._is_due, limit - len(retries)
        )

    @answers
    async def get_job_statistics(self) -> JobStatistics:
        """How many jobs are in each status."""
        return await self.records.statistics()

    @answers
    async def cleanup_completed_jobs(self, max_age: timedelta | float) -> int:
        """Delete jobs that completed longer ago than this; how many went. No other status is touched."""
        seconds = validation.check_seconds(seconds_of(max_age), "max_age", zero=True)
        total = 0
        while True:
            deleted = await self.records.manager.cleanup({State.COMPLETED: seconds})
            gone = sum(deleted.values())
            total += gone
            if gone < LIMIT:
                return total

    def _is_due(self, job: model.Job) -> bool:
        # One that was put into the pool has been touched since its time.
        scheduled = job.state is State.RETRYING or job.run_at > job.updated_at
        return scheduled and job.is_due(self.records.now())


def _check_new(job: Job) -> None:
    """A job is born waiting; everything else about its life is the store's to write."""
    status = check_status(job.status)
    if status not in (JobStatus.QUEUED, JobStatus.SCHEDULED):
        raise Refused(
            ErrorCode.INVALID_JOB,
            f"a new job is Queued or Scheduled, not {status}; nothing was stored",
        )
    if status is JobStatus.SCHEDULED and job.retry_delay_until is None:
        raise Refused(
            ErrorCode.INVALID_JOB,
            "a Scheduled job needs retry_delay_until; nothing was stored",
        )
    lived = (job.retry_count, job.worker_id, job.result, job.exception)
    if lived != (0, None, None, None):
        raise Refused(
            ErrorCode.INVALID_JOB,
            "a new job has no retries, worker, result or exception; nothing was stored",
        )
