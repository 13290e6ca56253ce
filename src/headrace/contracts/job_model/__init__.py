"""The formal job model specification: `Queue`, and the values it is spoken to with.

queue = await Queue.open("sqlite:///jobs.db")
job_id = await queue.submit("send_mail", {"to": "a@example.org"}, Priority.HIGH)
job = await queue.claim("worker-1")
await queue.complete(job.id, job.token, {"sent": True})
"""

from headrace.contracts.job_model.configuration import BackoffStrategy, RetryConfig, TimeoutConfig
from headrace.contracts.job_model.job import Failure, FailureCategory, Job, JobState
from headrace.contracts.job_model.queue import Queue
from headrace.contracts.job_model.request import Dependency, DependencyType, JobRequest
from headrace.errors import (
    DependencyCycle,
    DependencyNotFound,
    InvalidBatch,
    InvalidDependency,
    InvalidInput,
    InvalidKey,
    InvalidLimit,
    InvalidPayload,
    JobCancelled,
    JobNotFound,
    JobTerminal,
    LeaseExpired,
    PayloadTooLarge,
    PermanentError,
    StaleToken,
    SubmissionTimeout,
    TemporaryError,
)
from headrace.model import Priority

__all__ = [
    "BackoffStrategy",
    "Dependency",
    "DependencyCycle",
    "DependencyNotFound",
    "DependencyType",
    "Failure",
    "FailureCategory",
    "InvalidBatch",
    "InvalidDependency",
    "InvalidInput",
    "InvalidKey",
    "InvalidLimit",
    "InvalidPayload",
    "Job",
    "JobCancelled",
    "JobNotFound",
    "JobRequest",
    "JobState",
    "JobTerminal",
    "LeaseExpired",
    "PayloadTooLarge",
    "PermanentError",
    "Priority",
    "Queue",
    "RetryConfig",
    "StaleToken",
    "SubmissionTimeout",
    "TemporaryError",
    "TimeoutConfig",
]
