"""How Headrace's jobs and events read in this contract's words. Nothing here decides anything."""

from __future__ import annotations

from collections.abc import Mapping

from headrace import model, validation
from headrace.contracts.conformance.errors import InvalidRequest
from headrace.contracts.conformance.values import (
    EventKind,
    JobEvent,
    JobPriority,
    JobRecord,
    JobStatus,
    Leased,
    LeaseToken,
    StatusKind,
)
from headrace.model import Category, Event, Failure, Job, Priority, State

STATUS_KINDS: Mapping[State, StatusKind] = {
    State.BLOCKED: StatusKind.ENQUEUED,
    State.PENDING: StatusKind.ENQUEUED,
    State.RUNNING: StatusKind.PROCESSING,
    State.CANCELLING: StatusKind.PROCESSING,
    State.RETRYING: StatusKind.RETRYING,
    State.LOST: StatusKind.ENQUEUED,
    State.COMPLETED: StatusKind.COMPLETED,
    State.FAILED: StatusKind.FAILED,
    State.DEAD: StatusKind.FAILED,
    State.CANCELLED: StatusKind.CANCELED,
    State.ABANDONED: StatusKind.CANCELED,
}

EVENT_KINDS: Mapping[model.EventKind, EventKind | None] = {
    model.EventKind.ENQUEUED: EventKind.ENQUEUED,
    model.EventKind.UNBLOCKED: EventKind.ENQUEUED,
    model.EventKind.LEASED: EventKind.LEASED,
    model.EventKind.COMPLETED: EventKind.COMPLETED,
    model.EventKind.FAILED: EventKind.FAILED,
    model.EventKind.DEAD: EventKind.FAILED,
    model.EventKind.RETRYING: EventKind.RETRYING,
    model.EventKind.SNOOZED: EventKind.RETRYING,
    model.EventKind.RELEASED: EventKind.RETRYING,
    # A cancellation that is asked but not answered: Processing before and after, so there is nothing
    # to tell. It cannot come from this contract, whose cancel is immediate.
    model.EventKind.CANCELLING: None,
    model.EventKind.CANCELLED: EventKind.CANCELED,
    model.EventKind.LOST: EventKind.ENQUEUED,
    model.EventKind.ABANDONED: EventKind.CANCELED,
    # It waits before and after; this contract has no call that would do it.
    model.EventKind.RESCHEDULED: None,
    model.EventKind.UPDATED: None,  # its status is what it was
    model.EventKind.RETIMED: None,
}

PRIORITIES: Mapping[JobPriority, Priority] = {
    JobPriority.LOW: Priority.LOW,
    JobPriority.NORMAL: Priority.NORMAL,
    JobPriority.HIGH: Priority.HIGH,
    JobPriority.CRITICAL: Priority.CRITICAL,
}
_PRIORITY_NAMES = {level: name for name, level in PRIORITIES.items()} | {
    Priority.BULK: JobPriority.LOW  # this contract has four: a BULK job came in another way
}


def priority_of(value: object) -> Priority:
    """A JobPriority, or its name as text in whatever case."""
    word = value.capitalize() if isinstance(value, str) else None
    if word not in tuple(JobPriority):
        raise InvalidRequest(
            f"priority {validation.told(value)} is not a JobPriority; nothing was enqueued"
        )
    return PRIORITIES[JobPriority(word)]


def status_of(job: Job) -> JobStatus:
    kind = STATUS_KINDS[job.state]
    return JobStatus(
        kind=kind,
        lease_until=job.lease_until,
        retry_at=job.run_at if kind is StatusKind.RETRYING else None,
        error=_error(job.failure) if kind in (StatusKind.RETRYING, StatusKind.FAILED) else None,
        finished_at=job.finalized_at,
    )


def record_of(job: Job) -> JobRecord:
    return JobRecord(
        job_id=job.id,
        tenant_id=job.tenant,
        queue=job.queue,
        job_type=job.type,
        payload=job.payload,
        priority=_PRIORITY_NAMES[Priority(job.priority)],
        attempt=job.attempt,
        max_retries=None if job.max_attempts is None else job.max_attempts - 1,
        lease_token=None if job.token is None else LeaseToken(job.token),
        lease_until=job.lease_until,
        status=status_of(job),
        created_at=job.created_at,
        updated_at=job.updated_at,
        run_at=job.run_at,
        idempotency_key=job.key,
        error=_error(job.failure),
        result=job.result,
        finished_at=job.finalized_at,
    )


def leased_of(job: Job) -> Leased:
    # A claim under this contract's policy has both: leases end, and writes are fenced.
    assert job.token is not None
    assert job.lease_until is not None
    return Leased(record_of(job), LeaseToken(job.token), job.lease_until)


def event_of(event: Event) -> JobEvent | None:
    """None: the event changes nothing that this contract has a word for."""
    kind = EVENT_KINDS[event.kind]
    if kind is None:
        return None
    return JobEvent(
        kind=kind,
        job_id=event.job_id,
        tenant_id=event.tenant,
        queue=event.queue,
        job_type=event.type,
        attempt=event.attempt,
        at=event.at,
        lease_until=event.lease_until,
        retry_at=event.run_at if kind is EventKind.RETRYING else None,
        error=None if event.category is Category.CANCELLED else event.message,
        cause=event.kind.value,
    )


def _error(failure: Failure | None) -> str | None:
    """A cancellation is recorded as a failure too, but it is not an error."""
    return None if failure is None or failure.category is Category.CANCELLED else failure.message
