"""The contract's words as values: what a caller hands in and what it gets back."""

from __future__ import annotations

import copy
import enum
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import msgspec

from headrace.model import DEFAULT_QUEUE
from headrace.redaction import Redacted


class JobPriority(enum.StrEnum):
    """More urgent is dequeued first."""

    LOW = "Low"
    NORMAL = "Normal"
    HIGH = "High"
    CRITICAL = "Critical"


class LeaseToken(str):
    """The proof of a lease: text, and compared as text."""

    __slots__ = ()

    @classmethod
    def new(cls) -> Self:
        """A token that no lease has."""
        return cls(secrets.token_hex(16))

    @classmethod
    def from_str(cls, text: str) -> Self:
        return cls(text)

    def as_str(self) -> str:
        return str(self)


class QueueCtx(msgspec.Struct, frozen=True):
    """Who asks: every call sees and changes this tenant's jobs only."""

    tenant_id: str


@dataclass
class JobMessage:
    """A job to be enqueued. Plain and mutable: change what you like before you enqueue it."""

    job_type: str
    payload: Any = field(default=None, repr=False)
    queue: str = DEFAULT_QUEUE
    priority: JobPriority = JobPriority.NORMAL
    max_retries: int | None = 3
    """Retries after the first attempt. None: unlimited."""
    idempotency_key: str | None = None
    run_at: datetime | None = None
    """Not eligible before this. None: at once."""

    def clone(self) -> Self:
        """A copy that shares nothing with this one."""
        return copy.deepcopy(self)


class StatusKind(enum.StrEnum):
    """Where a job stands."""

    ENQUEUED = "Enqueued"
    PROCESSING = "Processing"
    RETRYING = "Retrying"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"


class EventKind(enum.StrEnum):
    """What happened to a job."""

    ENQUEUED = "Enqueued"
    LEASED = "Leased"
    RETRYING = "Retrying"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A job's status. A field that does not belong to its kind is None."""

    kind: StatusKind
    lease_until: datetime | None = None
    """Processing."""
    retry_at: datetime | None = None
    """Retrying: the moment that was given to ack_fail."""
    error: str | None = None
    """Retrying and Failed: what went wrong."""
    finished_at: datetime | None = None
    """Completed, Failed and Canceled."""


class JobRecord(Redacted, frozen=True, kw_only=True):
    """All that is known of a job."""

    job_id: str
    tenant_id: str
    queue: str
    job_type: str
    payload: Any
    priority: JobPriority
    attempt: int
    """Counts leases: 0 before the first."""
    max_retries: int | None
    lease_token: LeaseToken | None
    """While it is leased, and only then; so is lease_until."""
    lease_until: datetime | None
    status: JobStatus
    created_at: datetime
    updated_at: datetime
    run_at: datetime
    """Eligible from then on."""
    idempotency_key: str | None
    error: str | None
    """What went wrong the last time something did."""
    result: Any
    finished_at: datetime | None


class Leased(Redacted, frozen=True):
    """A job that was dequeued, with the lease that its holder must show."""

    record: JobRecord
    lease_token: LeaseToken
    lease_until: datetime


class JobEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one job. A field that does not belong to its kind is None."""

    kind: EventKind
    job_id: str
    tenant_id: str
    queue: str
    job_type: str
    attempt: int
    at: datetime
    lease_until: datetime | None = None
    """Leased."""
    retry_at: datetime | None = None
    """Retrying."""
    error: str | None = None
    """Retrying, Failed, and Enqueued after a loss; cut to 1,000 characters."""
    cause: str
    """Headrace's own, finer word: "lost" for a job that is enqueued again because its lease lapsed."""
