"""History: the event that a change writes, and a job's row and attempts rebuilt from its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import to_us
from headrace.model import (
    ENCRYPTED,
    LEASED,
    TERMINAL,
    Category,
    Dependency,
    Event,
    EventKind,
    Job,
    State,
)
from headrace.redaction import Redacted

MESSAGE_CHARS_MAX = 1000
"""Of an error's message in an event; the job keeps more."""

SAID_BY_USERS = ("tags", "priority", "correlation_id", "callback_url")
"""What an update may change: the user metadata of the job model, but for the type."""
UPDATED = (*SAID_BY_USERS, "depth")
"""What an update writes: the depth follows from what a job comes to wait for."""
_NOT_IN_THE_LOG = frozenset({"callback_url"})
"""A url may hold a secret: that it was changed is said, and no more."""

KIND_OF_TARGET: Mapping[State, EventKind] = {
    State.PENDING: EventKind.UNBLOCKED,
    State.RUNNING: EventKind.LEASED,
    State.CANCELLING: EventKind.CANCELLING,
    State.RETRYING: EventKind.RETRYING,
    State.LOST: EventKind.LOST,
    State.COMPLETED: EventKind.COMPLETED,
    State.FAILED: EventKind.FAILED,
    State.DEAD: EventKind.DEAD,
    State.CANCELLED: EventKind.CANCELLED,
    State.ABANDONED: EventKind.ABANDONED,
}

_UNKNOWN = frozenset({State.LOST, State.ABANDONED})
"""The outcome of the last attempt is not known, and may still be told."""
_REPORTS = frozenset({EventKind.COMPLETED, EventKind.RETRYING, EventKind.FAILED})
"""What a worker that was given up may still say of its attempt."""


class Attempt(Redacted, frozen=True, kw_only=True):
    """One claim of a job, from the events that tell of it."""

    attempt: int
    worker: str | None
    leased_at: datetime
    lease_until: datetime | None
    """Of the claim; heartbeats that made it last longer leave no event."""
    wait_us: int | None
    """From ready to claimed."""
    ended_at: datetime | None = None
    """None: it has not left its lease."""
    outcome: EventKind | None = None
    """How it left its lease."""
    state: State
    """What the job was after that; of one that goes on, what it is."""
    run_us: int | None = None
    category: Category | None = None
    code: str | None = None
    message: str | None = None
    """Of its error, cut to 1,000 characters; `encrypted` stands for that of an encrypted job."""
    result_bytes: int | None = None
    told_late: tuple[EventKind, ...] = ()
    """What its worker was heard to say after it had been given up, where that was let count."""
    traceback: str | None = None
    """Where it failed; no part of the events: who knows it adds it."""


def event_of(
    before: Job | None, after: Job, kind: EventKind, at: datetime, detail_json: bytes | None = None
) -> Event:
    leaves_lease = before is not None and before.state in LEASED and after.state not in LEASED
    failure = after.failure if before is None or after.failure is not before.failure else None
    return Event(
        at=at,
        tenant=after.tenant,
        queue=after.queue,
        type=after.type,
        job_id=after.id,
        kind=kind,
        before=None if before is None else before.state,
        after=after.state,
        version=after.version,
        attempt=after.attempt,
        failures=after.failures,
        losses=after.losses,
        priority=after.priority,
        run_at=after.run_at,
        worker=after.assignee,
        lease_until=after.lease_until,
        category=None if failure is None else failure.category,
        code=None if failure is None else failure.code,
        message=None if failure is None else failure.message[:MESSAGE_CHARS_MAX],
        wait_us=_span(after.scheduled_at, at) if kind is EventKind.LEASED else None,
        run_us=_span(after.assigned_at, at) if leaves_lease else None,
        payload_bytes=len(after.payload_json) if before is None else None,
        result_bytes=len(after.result_json)
        if kind is EventKind.COMPLETED and after.result_json is not None
        else None,
        detail_json=detail_json,
    )


def without_message(event: Event) -> Event:
    """The event for a job that is encrypted: the log keeps category and code, never what was said."""
    return event if event.message is None else msgspec.structs.replace(event, message=ENCRYPTED)


def _span(start: datetime | None, end: datetime) -> int | None:
    return None if start is None else to_us(end) - to_us(start)


def detail_of(job: Job, dependencies: Iterable[Dependency]) -> bytes:
    """What analysis needs to know of a job besides the event's own columns; absent means unset."""
    return msgspec.json.encode(details_of(job, dependencies))


def details_of(job: Job, dependencies: Iterable[Dependency]) -> dict[str, Any]:
    """The same before it is encoded, in order."""
    details: dict[str, Any] = {
        "tags": job.tags,
        "max_attempts": job.max_attempts,
        "expires_at": job.expires_at,
        "timeout_seconds": job.timeout_seconds,
        "key": job.key,
        "previous_id": job.previous_id,
        "parent_id": job.parent_id,
        "correlation_id": job.correlation_id,
        "limit_key": job.limit_key,
        "dependencies": [[item.job_id, item.kind] for item in dependencies],
    }
    return {name: value for name, value in details.items() if value not in (None, (), [])}


def update_of(before: Job, after: Job) -> bytes:
    """What an update changed: names, the new values and, under `was`, the old ones."""
    changed = [name for name in UPDATED if getattr(before, name) != getattr(after, name)]
    told = [name for name in changed if name not in _NOT_IN_THE_LOG]
    new = {name: getattr(after, name) for name in told}
    old = {name: getattr(before, name) for name in told}
    return msgspec.json.encode(new | {"changed": changed, "was": old})


def fold(events: Iterable[Event]) -> dict[str, Any]:
    """The lifecycle part of a job's row, rebuilt from its events alone, oldest first."""
    row: dict[str, Any] = {}
    for event in events:
        if event.kind is EventKind.ENQUEUED:
            row = {}  # an id may be used again once its job was deleted
        row |= {
            "state": event.after,
            "version": event.version,
            "attempt": event.attempt,
            "failures": event.failures,
            "losses": event.losses,
            "run_at": event.run_at,
            "priority": event.priority,
        }
        if event.kind is not EventKind.UPDATED or "updated_at" not in row:
            row["updated_at"] = event.at
        row |= _told(event)
        if not stays_ended(event.before, event.after):
            row["finalized_at"] = event.at if event.after in TERMINAL else None
        row.setdefault("created_at", event.at)
        if event.kind is EventKind.LEASED:
            row |= {"assignee": event.worker, "assigned_at": event.at}
            row.setdefault("started_at", event.at)
    return row


def attempts(events: Iterable[Event]) -> list[Attempt]:
    """The claims of one job, oldest first, from its events in order.

    Of an id that was used again once its job was deleted, those of the last job.
    """
    found: list[Attempt] = []
    for event in events:
        if event.kind is EventKind.ENQUEUED:
            found = []
        elif event.kind is EventKind.LEASED:
            found.append(
                Attempt(
                    attempt=event.attempt,
                    worker=event.worker,
                    leased_at=event.at,
                    lease_until=event.lease_until,
                    wait_us=event.wait_us,
                    state=event.after,
                )
            )
        elif found and found[-1].attempt == event.attempt:
            found[-1] = _heard(found[-1], event)
    return found


def _heard(attempt: Attempt, event: Event) -> Attempt:
    """What the event adds to what is known of its attempt."""
    if attempt.ended_at is not None:
        if event.before not in _UNKNOWN or event.kind not in _REPORTS:
            return attempt
        return msgspec.structs.replace(attempt, told_late=(*attempt.told_late, event.kind))
    if event.before not in LEASED or event.after in LEASED:
        return msgspec.structs.replace(attempt, state=event.after)
    return msgspec.structs.replace(
        attempt,
        ended_at=event.at,
        outcome=event.kind,
        state=event.after,
        run_us=event.run_us,
        category=event.category,
        code=event.code,
        message=event.message,
        result_bytes=event.result_bytes,
    )


def _told(event: Event) -> dict[str, Any]:
    """What the log says of a job's user metadata, besides the priority that every event has."""
    if event.detail_json is None:
        return {}
    detail = msgspec.json.decode(event.detail_json)
    if event.kind is EventKind.ENQUEUED:
        names = {"tags": (), "correlation_id": None}
        return {name: _tuple(detail.get(name, unset)) for name, unset in names.items()}
    return {name: _tuple(detail[name]) for name in ("tags", "correlation_id") if name in detail}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def stays_ended(before: State | None, after: State) -> bool:
    """An abandoned job that turns out to have stopped ended when it was given up; a result is news."""
    return before in TERMINAL and after is not State.COMPLETED
