"""The specification's extension points: when to retry, and which scheduled jobs are due."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol, runtime_checkable

from headrace.contracts.job_store.configuration import JobManagerConfiguration
from headrace.contracts.job_store.entity import Job
from headrace.contracts.job_store.interface import IJobStore
from headrace.contracts.job_store.result import MethodResult
from headrace.duration import DELAY_SECONDS_MAX
from headrace.retry import Exponential


@runtime_checkable
class RetryStrategy(Protocol):
    """Decides whether a failed job is retried, and how much later.

    It can end a job sooner than its `max_retries` does, never later.
    """

    def calculate_delay(self, retry_count: int, job: Job) -> timedelta:
        """How long to wait; `retry_count` counts the retry that is being scheduled."""
        ...

    def should_retry(self, retry_count: int, job: Job, exception: BaseException | None) -> bool:
        """May it be tried again; `retry_count` counts the retries before."""
        ...


@runtime_checkable
class SchedulingStrategy(Protocol):
    """Says which jobs are due: `process_scheduled_jobs` puts those into the pool, before their time, too."""

    async def get_due_jobs(
        self, job_store: IJobStore, max_count: int
    ) -> MethodResult[list[Job]]: ...


class ExponentialBackoffRetryStrategy:
    """2^retry_count × base seconds and at most ten years, while the job has retries left."""

    def __init__(
        self, base_seconds: float = JobManagerConfiguration().retry_delay_base_seconds
    ) -> None:
        self._backoff = Exponential(initial=base_seconds, cap=DELAY_SECONDS_MAX, jitter=False)

    def calculate_delay(self, retry_count: int, job: Job) -> timedelta:
        return timedelta(seconds=self._backoff.delay(retry_count + 1))

    def should_retry(self, retry_count: int, job: Job, exception: BaseException | None) -> bool:
        if job.max_retries is None:
            return retry_count < JobManagerConfiguration().default_max_retries
        return retry_count < job.max_retries


class TimedSchedulingStrategy:
    """Due is what the store says is due."""

    async def get_due_jobs(self, job_store: IJobStore, max_count: int) -> MethodResult[list[Job]]:
        return await job_store.get_due_scheduled_jobs(max_count)
