"""The job store architecture: JobStore keeps jobs, JobManager runs their lives, results are values."""

from __future__ import annotations

from headrace.contracts.job_store.configuration import JobManagerConfiguration
from headrace.contracts.job_store.entity import Job, JobStatistics, JobStatus
from headrace.contracts.job_store.manager import JobManager
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
    "ErrorCode",
    "ExponentialBackoffRetryStrategy",
    "Job",
    "JobManager",
    "JobManagerConfiguration",
    "JobStatistics",
    "JobStatus",
    "JobStore",
    "MethodResult",
    "RetryStrategy",
    "SchedulingStrategy",
    "TimedSchedulingStrategy",
]
