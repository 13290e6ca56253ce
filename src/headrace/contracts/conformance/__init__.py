"""The conformance specification's backend: leases, retries, idempotency, order, events, by its names."""

from __future__ import annotations

from headrace.contracts.conformance.backend import Backend
from headrace.contracts.conformance.errors import (
    BackendFailure,
    InvalidLeaseToken,
    InvalidRequest,
    JobAlreadyTerminal,
    JobCanceled,
    JobNotFound,
    LeaseExpired,
    QueueError,
)
from headrace.contracts.conformance.stream import EventStream
from headrace.contracts.conformance.values import (
    EventKind,
    JobEvent,
    JobMessage,
    JobPriority,
    JobRecord,
    JobStatus,
    Leased,
    LeaseToken,
    QueueCtx,
    StatusKind,
)

__all__ = [
    "Backend",
    "BackendFailure",
    "EventKind",
    "EventStream",
    "InvalidLeaseToken",
    "InvalidRequest",
    "JobAlreadyTerminal",
    "JobCanceled",
    "JobEvent",
    "JobMessage",
    "JobNotFound",
    "JobPriority",
    "JobRecord",
    "JobStatus",
    "LeaseExpired",
    "LeaseToken",
    "Leased",
    "QueueCtx",
    "QueueError",
    "StatusKind",
]
