"""JobManager: the lifecycle half of the specification, one implementation over any store.

It asks a store for nothing but `IJobStore`. What some stores can do besides (`interface`) makes it safer
and quicker, and is used where it is there.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Self

from headrace import error_text, validation
from headrace.clock import Clock, SystemClock
from headrace.contracts.job_store.configuration import JobManagerConfiguration
from headrace.contracts.job_store.entity import Id, Job, JobStatistics, JobStatus
from headrace.contracts.job_store.interface import (
    ClaimsScheduledJobs,
    HasClock,
    IJobStore,
    OneStepChanges,
    TimedClaims,
)
from headrace.contracts.job_store.options import StoreOptions
from headrace.contracts.job_store.records import (
    check_exception,
    check_id,
    check_job,
    check_worker,
    seconds_of,
)
from headrace.contracts.job_store.result import ErrorCode, MethodResult, Refused, answers
from headrace.contracts.job_store.store import JobStore
from headrace.contracts.job_store.store_answers import answer_of, data_of, list_of, one_of
from headrace.contracts.job_store.strategies import (
    ExponentialBackoffRetryStrategy,
    RetryStrategy,
    SchedulingStrategy,
    TimedSchedulingStrategy,
)
from headrace.errors import InvalidInput
from headrace.input_checks import checked

METHODS = tuple(name for name in vars(IJobStore) if not name.startswith("_"))
"""What a store must have."""

STALE_JOBS_MAX = 10_000
"""How many jobs in progress one look for stale claims goes through, in a store that does not know them."""

_S = JobStatus


class JobManager:
    """Submits jobs, hands them to workers, and says what becomes of them.

    Every method returns a MethodResult: success with the data that its signature names, or an error,
    and then nothing was changed. `await JobManager.open(url)` opens a store of its own; `JobManager(store)`
    works over any object with the methods of `IJobStore`, and leaves it open when it is closed. Without a
    `retry_strategy` a failed job waits 2^n × `retry_delay_base_seconds`, n being the number of the retry.
    `clock` is for stores without one.
    """

    def __init__(
        self,
        store: IJobStore,
        configuration: JobManagerConfiguration | None = None,
        retry_strategy: RetryStrategy | None = None,
        scheduling_strategy: SchedulingStrategy | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        missing = [name for name in METHODS if not callable(getattr(store, name, None))]
        if missing:
            raise InvalidInput(
                f"{type(store).__name__} is no job store: it has no {', '.join(missing)}; see IJobStore"
            )
        self.configuration = configuration or JobManagerConfiguration()
        self.store = store
        self._clock: HasClock = store if isinstance(store, HasClock) else clock or SystemClock()
        self._retry_strategy = retry_strategy
        self._scheduling_strategy = scheduling_strategy or TimedSchedulingStrategy()
        self._own: JobStore | None = None

    @classmethod
    @checked
    async def open(
        cls,
        where: str | StoreOptions,
        clock: Clock | None = None,
        configuration: JobManagerConfiguration | None = None,
        retry_strategy: RetryStrategy | None = None,
        scheduling_strategy: SchedulingStrategy | None = None,
    ) -> Self:
        """On a store of its own: behind a url, or as the options say."""
        store = await JobStore.open(where, clock)
        manager = cls(store, configuration, retry_strategy, scheduling_strategy)
        manager._own = store
        return manager

    async def close(self) -> None:
        """Give back the store that `open` opened. Closing twice is fine."""
        if self._own is not None:
            await self._own.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def needs_scheduling(self) -> bool:
        """Whether a due job may have to wait for `process_scheduled_jobs`.

        Not where claims take what is due by themselves, and no strategy of the user's says otherwise.
        """
        by_itself = isinstance(self.store, ClaimsScheduledJobs) and self.store.takes_due_jobs()
        return not (by_itself and type(self._scheduling_strategy) is TimedSchedulingStrategy)

    # --- submitting and claiming -----------------------------------------------------------------

    @answers
    async def submit_job(self, job: Job) -> Id:
        """Store the job as Queued (or, with a time to come, Scheduled) and return its id.

        The given job is brought up to date: status, times and retries as stored.
        """
        new = self._born(check_job(job))
        brought = await data_of(self.store.create_job(new))
        stored = brought if isinstance(brought, Job) else new
        job.id, job.status = stored.id, stored.status
        job.retry_count, job.max_retries = stored.retry_count, stored.max_retries
        job.created_at, job.last_updated_at = stored.created_at, stored.last_updated_at
        return stored.id

    @answers
    async def claim_jobs_for_processing(
        self, worker_id: Id, max_claim_count: int | None = None
    ) -> list[Job]:
        """Give the worker up to so many due jobs; they are InProgress and its own until the claim times out.

        Never more than `max_claim_batch_size`, and that many without a number.
        """
        most = self.configuration.max_claim_batch_size
        count = most
        if max_claim_count is not None:
            asked = validation.check_limit(max_claim_count, "max_claim_count", minimum=0)
            count = min(most, asked)
        check_worker(worker_id)
        if isinstance(self.store, TimedClaims):
            timeout = self.configuration.job_claim_timeout
            return await list_of(self.store.claim_jobs_for_a_time(worker_id, count, timeout))
        jobs = await list_of(self.store.claim_jobs_for_worker(worker_id, count)) if count else []
        return [await self._assigned(job, worker_id) for job in jobs]

    # --- the ends of an attempt ------------------------------------------------------------------

    @answers
    async def process_job_success(self, job_id: Id, result: Any = None) -> Job:
        """InProgress to Completed, with the result."""
        if isinstance(self.store, OneStepChanges):
            return await one_of(self.store.complete_job(job_id, result))
        job = await self._in_progress(job_id)
        job.result = job.result if result is None else result
        job.completed_at = self._clock.now()
        return await self._to(job, _S.COMPLETED)

    @answers
    async def process_job_failure(self, job_id: Id, exception: str | BaseException) -> Job:
        """InProgress to Scheduled while retries are left, else to Failed; the exception is kept."""
        message = check_exception(exception)
        job = await self._in_progress(job_id)
        delay = self._delay(job, exception)
        if isinstance(self.store, OneStepChanges):
            return await one_of(self.store.fail_job(job_id, message, delay))
        job.exception = message
        if delay is None or job.retry_count >= self._max_retries(job):
            job.set_exception(message)
            job.completed_at = self._clock.now()
            return await self._to(job, _S.FAILED)
        job.increment_retry_count()
        job.set_retry_time(self._clock.now() + delay)
        return await self._to(job, _S.SCHEDULED)

    @answers
    async def process_job_cancellation(self, job_id: Id) -> Job:
        """Canceled: a job that waits, or one in progress whose worker has stopped it."""
        job = await self._read(job_id)
        _refuse_ended(job)
        return await self._to(job, _S.CANCELED)

    # --- cancelling ------------------------------------------------------------------------------

    @answers
    async def cancel_job(self, job_id: Id) -> Job:
        """Cancel a job that has not started; JOB_ALREADY_STARTED if a worker has it."""
        if isinstance(self.store, OneStepChanges):
            return await one_of(self.store.cancel_waiting_job(job_id))
        job = await self._read(job_id)
        _refuse_ended(job)
        if job.status is _S.IN_PROGRESS:
            raise Refused(
                ErrorCode.JOB_ALREADY_STARTED, f"job {job.id} has started; nothing was changed"
            )
        return await self._to(job, _S.CANCELED)

    # --- what a loop calls from time to time -----------------------------------------------------

    @answers
    async def process_scheduled_jobs(self) -> int:
        """Put what the scheduling strategy calls due into the pool; how many jobs that were.

        It is asked for up to `max_claim_batch_size` at a time, and again while it names that many.
        """
        limit = self.configuration.max_claim_batch_size
        total = 0
        while True:
            due = await self._due(limit)
            moved = sum([await self._queued(job) for job in due])
            total += moved
            if moved == 0 or len(due) < limit:
                return total

    @answers
    async def process_stale_job_claims(self) -> int:
        """Release the jobs whose claim has timed out; how many there were."""
        if isinstance(self.store, TimedClaims):
            return await one_of(self.store.release_stale_claims())
        held = await list_of(self.store.get_jobs_by_status(_S.IN_PROGRESS, STALE_JOBS_MAX))
        stale = [job for job in held if self._is_stale(job)]
        for job in stale:
            await data_of(self.store.release_job_to_pool(job.id))
        return len(stale)

    # --- reading ---------------------------------------------------------------------------------

    @answers
    async def get_job_by_id(self, job_id: Id) -> Job:
        """The job with full details, or JOB_NOT_FOUND."""
        return await self._found(job_id)

    @answers
    async def get_job_statistics(self) -> JobStatistics:
        """How many jobs are in each status."""
        return await one_of(self.store.get_job_statistics())

    # --- inside ----------------------------------------------------------------------------------

    def _born(self, job: Job) -> Job:
        """The job to store: what its submitter may say of it, and nothing of a life before."""
        now, later = self._clock.now(), job.retry_delay_until
        if later is not None:
            later = validation.check_time(later, "retry_delay_until")
        retries = self.configuration.default_max_retries
        if job.max_retries is not None:
            retries = validation.check_limit(job.max_retries, "max_retries", minimum=0)
        return Job(
            id=job.id,
            name=job.name,
            payload=job.payload,
            status=_S.QUEUED if later is None or later <= now else _S.SCHEDULED,
            max_retries=retries,
            retry_delay_until=later,
            created_at=now,
            last_updated_at=now,
        )

    async def _found(self, job_id: Id) -> Job:
        check_id(job_id)
        job = await data_of(self.store.get_job_by_id(job_id))
        if job is None:
            raise Refused(
                ErrorCode.JOB_NOT_FOUND, f"job {job_id} was not found; nothing was changed"
            )
        return job

    async def _read(self, job_id: Id) -> Job:
        """A copy to work on. It speaks for the claim made through the store, not for whose it is now."""
        return replace(await self._found(job_id), claim_token=None)

    async def _in_progress(self, job_id: Id) -> Job:
        job = await self._read(job_id)
        _refuse_ended(job)
        if job.status is not _S.IN_PROGRESS:
            raise Refused(
                ErrorCode.JOB_NOT_IN_PROGRESS,
                f"job {job.id} is not in progress; nothing was changed",
            )
        return job

    async def _to(self, job: Job, status: JobStatus) -> Job:
        """Store the copy with this status, which no worker has; the job as stored."""
        job.update_status(status)
        job.worker_id = None
        job.last_updated_at = self._clock.now()
        brought = await data_of(self.store.update_job(job))
        return brought if isinstance(brought, Job) else job

    async def _assigned(self, job: Job, worker_id: Id) -> Job:
        """The claimed job as the worker's own: a store may leave that to the manager."""
        if job.status is _S.IN_PROGRESS and job.worker_id is not None:
            return job
        job.update_status(_S.IN_PROGRESS)
        job.worker_id, job.retry_delay_until = worker_id, None
        job.last_updated_at = self._clock.now()
        job.started_at = job.started_at or job.last_updated_at
        brought = await data_of(self.store.update_job(job))
        return brought if isinstance(brought, Job) else job

    async def _due(self, limit: int) -> list[Job]:
        try:
            due = await self._scheduling_strategy.get_due_jobs(self.store, limit)
        except Exception as defect:  # whatever the caller's code raises, the answer is a result
            raise Refused(
                ErrorCode.SCHEDULING_STRATEGY_FAILED,
                f"the scheduling strategy raised {error_text.told(defect)}; what was due before is in "
                "the pool",
            ) from defect
        if not isinstance(due, MethodResult):
            raise Refused(
                ErrorCode.SCHEDULING_STRATEGY_FAILED,
                f"the scheduling strategy answered {type(due).__name__}, not a MethodResult",
            )
        return due.unwrap() or []

    async def _queued(self, due: Job) -> bool:
        """Into the pool, if it is still scheduled. Somebody may have been quicker, which is as well."""
        job = (await answer_of(self.store.get_job_by_id(due.id))).data
        if job is None or job.status is not _S.SCHEDULED:
            return False
        job = replace(job, claim_token=None, status=_S.QUEUED, retry_delay_until=None)
        job.last_updated_at = self._clock.now()
        return (await answer_of(self.store.update_job(job))).is_success

    def _is_stale(self, job: Job) -> bool:
        """Counted from its last change: a note by its worker is a sign of life."""
        since = job.last_updated_at or job.started_at
        return since is None or since + self.configuration.job_claim_timeout <= self._clock.now()

    def _max_retries(self, job: Job) -> int:
        retries = job.max_retries
        return self.configuration.default_max_retries if retries is None else retries

    def _delay(self, job: Job, exception: str | BaseException) -> timedelta | None:
        """How long to wait before the next retry. None: the strategy says no."""
        strategy = self._retry_strategy
        if strategy is None:
            base = self.configuration.retry_delay_base_seconds
            return ExponentialBackoffRetryStrategy(base).calculate_delay(job.retry_count + 1, job)
        error = exception if isinstance(exception, BaseException) else Exception(exception)
        shown = replace(job)
        try:
            if not strategy.should_retry(shown.retry_count, shown, error):
                return None
            delay: timedelta | float = strategy.calculate_delay(shown.retry_count + 1, shown)
        except Exception as defect:  # whatever the caller's code raises, the answer is a result
            raise Refused(
                ErrorCode.RETRY_STRATEGY_FAILED,
                f"the retry strategy raised {error_text.told(defect)}; job {job.id} is in progress as before",
            ) from defect
        seconds = validation.check_seconds(seconds_of(delay), "the strategy's delay", zero=True)
        return timedelta(seconds=seconds)


def _refuse_ended(job: Job) -> None:
    if job.status in (_S.COMPLETED, _S.FAILED):
        raise Refused(ErrorCode.JOB_TERMINAL, f"job {job.id} is {job.status} already; that stands")
    if job.status is _S.CANCELED:
        raise Refused(ErrorCode.JOB_CANCELED, f"job {job.id} is {job.status} already; that stands")
