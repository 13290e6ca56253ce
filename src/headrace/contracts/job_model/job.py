"""A job as the specification describes it: its states, its failure and its metadata."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headrace import model, validation
from headrace.contracts import vocabulary
from headrace.contracts.job_model.configuration import TimeoutConfig
from headrace.contracts.job_model.request import TAG_SEPARATOR
from headrace.errors import InvalidInput
from headrace.model import Category, Priority, State
from headrace.redaction import Redacted


class JobState(enum.StrEnum):
    """The lifecycle states. What only the passing of time changes is derived when the job is read."""

    PENDING = "PENDING"
    """Accepted and persisted; awaits other jobs."""
    SCHEDULED = "SCHEDULED"
    """Runs as soon as a worker is available."""
    DELAYED = "DELAYED"
    """Deferred until a specified time."""
    RUNNING = "RUNNING"
    """Dispatched to a worker."""
    COMPLETED = "COMPLETED"
    """Succeeded; the result is stored."""
    FAILED = "FAILED"
    """Failed permanently."""
    RETRYING = "RETRYING"
    """Failed; runs again after its backoff."""
    DEAD_LETTER = "DEAD_LETTER"
    """Exhausted its retries or its lifetime."""
    CANCELLED = "CANCELLED"
    """Explicitly cancelled, or depends on a job that was."""


class FailureCategory(enum.StrEnum):
    """Every failure is of exactly one."""

    TEMPORARY = "TEMPORARY"
    PERMANENT = "PERMANENT"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    SYSTEM = "SYSTEM"

    @classmethod
    def named(cls, name: str) -> FailureCategory:
        """The category of that name, in whatever case; Headrace's own categories included."""
        try:
            return cls[name.upper()]
        except (AttributeError, KeyError):
            raise InvalidInput(
                f"{validation.told(name)} is not one of {', '.join(cls)}; {validation.UNCHANGED}"
            ) from None

    @property
    def stored(self) -> Category:
        return Category[self.name]


class Failure(Redacted, frozen=True):
    """What went wrong the last time something did."""

    category: FailureCategory
    message: str
    code: str | None = None


class Job(Redacted, frozen=True, kw_only=True):
    """One job at the moment it was read. Times are aware and in UTC."""

    # system metadata
    id: str
    """A UUID (version 4) as text, assigned by the system."""
    created_at: datetime
    updated_at: datetime
    """The last change of state, those by the passing of time included."""
    state: JobState
    attempt: int
    """0 before the first execution starts, then 1 and up."""
    scheduled_at: datetime | None
    """When it became SCHEDULED, for the present or last attempt. None: it never was yet."""
    started_at: datetime | None
    """When the current (or last) attempt started."""
    completed_at: datetime | None
    """When it reached a terminal state."""

    # user metadata
    type: str
    priority: Priority
    """The more urgent of its own and those of the jobs it depends on."""
    tags: Mapping[str, str]
    correlation_id: str | None
    callback_url: str | None

    payload: Any
    idempotency_key: str | None
    run_at: datetime
    """Not before this: the delay's end, or after a failure the backoff's."""
    max_attempts: int | None
    timeout: TimeoutConfig
    expires_at: datetime | None
    """The end of its lifetime."""
    parent_id: str | None
    """The running job that spawned it."""

    result: Any
    failure: Failure | None
    checkpoint: Any
    """What an earlier attempt left for the next."""
    cancel_requested: bool
    """It runs, and its worker should stop and say so."""

    token: str | None
    """The lease token, while it runs: what every write of its worker must show."""
    lease_until: datetime | None
    """When it becomes visible again unless a heartbeat comes first."""
    worker: str | None

    @property
    def attempt_id(self) -> str | None:
        """Names the current attempt; None before the first."""
        return attempt_id(self.id, self.attempt)

    @property
    def previous_attempt_id(self) -> str | None:
        """The `attempt_id` that the attempt before this one had; None on the first."""
        return attempt_id(self.id, self.attempt - 1)


def attempt_id(job_id: str, attempt: int) -> str | None:
    return f"{job_id}:{attempt}" if attempt > 0 else None


def state_of(job: model.Job, now: datetime) -> JobState:
    """The specification's word for a stored state; ready and delayed differ by the clock alone."""
    return JobState(vocabulary.job_model(job.state, job.is_due(now), job.attempt))


def view(job: model.Job, now: datetime) -> Job:
    """The stored job in the specification's words."""
    state = state_of(job, now)
    # Coming due is a change of state that nobody writes: it happened when run_at came.
    became_due = max(job.run_at, job.updated_at) if state is JobState.SCHEDULED else None
    lifetime = None if job.expires_at is None else job.expires_at - job.created_at
    return Job(
        id=job.id,
        created_at=job.created_at,
        updated_at=became_due or job.updated_at,
        state=state,
        attempt=job.attempt,
        scheduled_at=became_due or job.scheduled_at,
        started_at=job.assigned_at,
        completed_at=job.finalized_at,
        type=job.type,
        priority=Priority(job.priority),
        tags=dict(_entry(tag) for tag in job.tags),
        correlation_id=job.correlation_id,
        callback_url=job.callback_url,
        payload=job.payload,
        idempotency_key=job.key,
        run_at=job.run_at,
        max_attempts=job.max_attempts,
        timeout=TimeoutConfig(job.timeout_seconds, job.lease_seconds, lifetime),
        expires_at=job.expires_at,
        parent_id=job.parent_id,
        result=job.result,
        failure=None
        if job.failure is None
        else Failure(
            FailureCategory.named(job.failure.category), job.failure.message, job.failure.code
        ),
        checkpoint=job.checkpoint,
        cancel_requested=job.state is State.CANCELLING,
        token=job.token,
        lease_until=job.lease_until,
        worker=job.assignee if job.is_leased else None,
    )


def _entry(tag: str) -> tuple[str, str]:
    key, _, value = tag.partition(TAG_SEPARATOR)
    return key, value
