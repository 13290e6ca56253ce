"""JobManager: the lifecycle half of the specification, one implementation over any store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from headrace import model, validation
from headrace.clock import Clock
from headrace.contracts.job_store import updates
from headrace.contracts.job_store.configuration import JobManagerConfiguration
from headrace.contracts.job_store.entity import Id, Job, JobStatistics
from headrace.contracts.job_store.records import Records, check_exception, check_job, seconds_of
from headrace.contracts.job_store.result import ErrorCode, MethodResult, Refused, answers
from headrace.contracts.job_store.store import JobStore
from headrace.contracts.job_store.strategies import (
    RetryStrategy,
    SchedulingStrategy,
    TimedSchedulingStrategy,
)
from headrace.model import Category


class JobManager:
    """Submits jobs, hands them to workers, and says what becomes of them.

    Every method returns a MethodResult: success with the data that its signature names, or an error,
    and then nothing was changed. `await JobManager.open(url)` opens a store of its own; `JobManager(store)`
    shares one, and leaves it open when it is closed. Without a `retry_strategy` a failed job waits
    2^n × `retry_delay_base_seconds`, n being the number of the retry.
    """

    def __init__(
        self,
        store: JobStore,
        configuration: JobManagerConfiguration | None = None,
        retry_strategy: RetryStrategy | None = None,
        scheduling_strategy: SchedulingStrategy | None = None,
    ) -> None:
        self.configuration = configuration or JobManagerConfiguration()
        self.store = store
        self._retry_strategy = retry_strategy
        self._scheduling_strategy = scheduling_strategy or TimedSchedulingStrategy()
        self._records: Records = store.records.under(self.configuration.policy())
        self._owns_store = False

    @classmethod
    async def open(
        cls,
        url: str,
        clock: Clock | None = None,
        configuration: JobManagerConfiguration | None = None,
        retry_strategy: RetryStrategy | None = None,
        scheduling_strategy: SchedulingStrategy | None = None,
    ) -> Self:
        store = await JobStore.open(url, clock)
        manager = cls(store, configuration, retry_strategy, scheduling_strategy)
        manager._owns_store = True
        return manager

    async def close(self) -> None:
        """Give back the store that `open` opened. Closing twice is fine."""
        if self._owns_store:
            await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # --- submitting and claiming -----------------------------------------------------------------

    @answers
    async def submit_job(self, job: Job) -> Id:
        """Store the job as Queued (or, with a time to come, Scheduled) and return its id.

        The given job is brought up to date: status, times and retries as stored.
        """
        stored = await self._records.create(check_job(job))
        job.id, job.status = stored.id, stored.status
        job.retry_count, job.max_retries = stored.retry_count, stored.max_retries
        job.created_at, job.last_updated_at = stored.created_at, stored.last_updated_at
        return stored.id

    @answers
    async def claim_jobs_for_processing(
        self, worker_id: Id, max_claim_count: int | None = None
    ) -> list[Job]:
        """Give the worker up to so many due jobs; they are InProgress and its own until the claim times out.

        Without a number: `max_claim_batch_size`.
        """
        count = (
            self.configuration.max_claim_batch_size if max_claim_count is None else max_claim_count
        )
        timeout = self.configuration.job_claim_timeout.total_seconds()
        return await self._records.claim(worker_id, count, lease_seconds=timeout)

    # --- the ends of an attempt ------------------------------------------------------------------

    @answers
    async def process_job_success(self, job_id: Id, result: Any = None) -> Job:
        """InProgress to Completed, with the result."""
        job, token = await self._records.fenced(job_id)
        changed = await self._records.manager.complete(job.id, token, result)
        return self._records.show(self._records.settled(changed.job))

    @answers
    async def process_job_failure(self, job_id: Id, exception: str | BaseException) -> Job:
        """InProgress to Scheduled while retries are left, else to Failed; the exception is kept."""
        message = check_exception(exception)
        job, token = await self._records.fenced(job_id)
        category, delay = Category.TEMPORARY, None
        if self._retry_strategy is not None:
            delay = self._ask(self._retry_strategy, job, exception)
            category = Category.PERMANENT if delay is None else Category.TEMPORARY
        changed = await self._records.manager.fail(
            job.id, token, message, category=category, retry_after=delay
        )
        return self._records.show(self._records.settled(changed.job))

    @answers
    async def process_job_cancellation(self, job_id: Id) -> Job:
        """Canceled: a job that waits, or one in progress whose worker has stopped it."""
        stored = await self._records.read(job_id)
        return self._records.show(await updates.cancel(self._records, stored))

    # --- cancelling ------------------------------------------------------------------------------

    @answers
    async def cancel_job(self, job_id: Id) -> Job:
        """Cancel a job that has not started; JOB_ALREADY_STARTED if a worker has it."""
        return self._records.show(await self._records.cancel(job_id))

    # --- what a loop calls from time to time -----------------------------------------------------

    async def process_scheduled_jobs(self) -> MethodResult[int]:
        """Check which scheduled jobs are due; how many of the next batch are.

        Time alone makes them claimable, so there is nothing to move and no harm in calling this never.
        """
        limit = self.configuration.max_claim_batch_size
        due = await self._scheduling_strategy.get_due_jobs(self.store, limit)
        if due.error is not None:
            return MethodResult.failure(due.error)
        return MethodResult.success(len(due.data or ()))

    @answers
    async def process_stale_job_claims(self) -> int:
        """Release the jobs whose claim has timed out; how many there were."""
        return len((await self._records.manager.reap()).jobs)

    # --- reading ---------------------------------------------------------------------------------

    async def get_job_by_id(self, job_id: Id) -> MethodResult[Job]:
        """The job with full details, or JOB_NOT_FOUND."""
        return await self.store.get_job_by_id(job_id)

    async def get_job_statistics(self) -> MethodResult[JobStatistics]:
        """How many jobs are in each status."""
        return await self.store.get_job_statistics()

    def _ask(
        self, strategy: RetryStrategy, job: model.Job, exception: str | BaseException
    ) -> float | None:
        """The strategy's delay in seconds. None: it says no."""
        shown = self._records.show(job)
        error = exception if isinstance(exception, BaseException) else Exception(exception)
        try:
            if not strategy.should_retry(shown.retry_count, shown, error):
                return None
            delay: timedelta | float = strategy.calculate_delay(shown.retry_count + 1, shown)
        except Exception as defect:  # whatever the caller's code raises, the answer is a result
            raise Refused(
                ErrorCode.RETRY_STRATEGY_FAILED,
                f"the retry strategy raised {defect!r}; job {job.id} is in progress as before",
            ) from defect
        return validation.check_seconds(seconds_of(delay), "the strategy's delay", zero=True)
