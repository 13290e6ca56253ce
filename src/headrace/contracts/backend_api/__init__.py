"""The specification `Backend API`, callable by its own names.

`Backend` is its interface; `Queue` is the layer above it that the text describes, with batches and
`stream_jobs`. See docs/reference/contracts/backend_api.md.
"""

from headrace.contracts.backend_api.backend import Backend
from headrace.contracts.backend_api.errors import (
    BackendError,
    DuplicateJobError,
    InvalidArgumentError,
    InvalidStateError,
    JobNotFoundError,
    StorageError,
)
from headrace.contracts.backend_api.queue import BatchResult, Queue
from headrace.contracts.backend_api.streams import JobStream
from headrace.contracts.backend_api.submission import POLICY
from headrace.contracts.backend_api.values import Job, JobStats, JobStatus

__all__ = [
    "POLICY",
    "Backend",
    "BackendError",
    "BatchResult",
    "DuplicateJobError",
    "InvalidArgumentError",
    "InvalidStateError",
    "Job",
    "JobNotFoundError",
    "JobStats",
    "JobStatus",
    "JobStream",
    "Queue",
    "StorageError",
]
