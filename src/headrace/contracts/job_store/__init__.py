"""The job store architecture: stores keep jobs, JobManager runs their lives, results are values."""

from __future__ import annotations

from headrace.contracts.job_store.background import BackgroundService
from headrace.contracts.job_store.configuration import JobManagerConfiguration
from headrace.contracts.job_store.entity import Id, Job, JobStatistics, JobStatus
from headrace.contracts.job_store.interface import (
    ClaimsScheduledJobs,
    HasClock,
    IJobStore,
    OneStepChanges,
    TimedClaims,
)
from headrace.contracts.job_store.manager import JobManager
from headrace.contracts.job_store.options import RedisJobStoreOptions, SqlJobStoreOptions
from headrace.contracts.job_store.result import AsyncEndpointError, ErrorCode, MethodResult
from headrace.contracts.job_store.store import JobStore
from headrace.contracts.job_store.strategies import (
    ExponentialBackoffRetryStrategy,
    RetryStrategy,
    SchedulingStrategy,
    TimedSchedulingStrategy,
)

__all__ = [
    "AsyncEndpointError",
    "BackgroundService",
    "ClaimsScheduledJobs",
    "ErrorCode",
    "ExponentialBackoffRetryStrategy",
    "HasClock",
    "IJobStore",
    "Id",
    "Job",
    "JobManager",
    "JobManagerConfiguration",
    "JobStatistics",
    "JobStatus",
    "JobStore",
    "MethodResult",
    "OneStepChanges",
    "RedisJobStoreOptions",
    "RetryStrategy",
    "SchedulingStrategy",
    "SqlJobStoreOptions",
    "TimedClaims",
    "TimedSchedulingStrategy",
]
