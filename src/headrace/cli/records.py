"""What `--json` prints. Field names are stable and documented in docs/reference/cli.md.

A lease token is a worker's proof, so no record has it. Payloads, results and checkpoints go out as
the JSON that is stored; where they are encrypted and there is no key, as an `envelope.Notice`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headrace.envelope import published
from headrace.manager import FailedAttempt
from headrace.model import (
    Category,
    DependencyKind,
    Edge,
    Event,
    EventKind,
    Failure,
    Job,
    State,
)
from headrace.redaction import Redacted

NULL = msgspec.Raw(b"null")


class JobRecord(Redacted, frozen=True, kw_only=True):
    """A job, as `show`, `list` and others print it."""

    id: str
    tenant: str
    queue: str
    type: str
    state: State
    priority: int
    tags: tuple[str, ...]
    payload: msgspec.Raw
    result: msgspec.Raw
    failure: Failure | None
    attempt: int
    max_attempts: int | None
    failures: int
    losses: int
    assignee: str | None
    progress: float | None
    progress_note: str | None
    checkpoint: msgspec.Raw
    created_at: datetime
    run_at: datetime
    updated_at: datetime
    started_at: datetime | None
    assigned_at: datetime | None
    lease_until: datetime | None
    last_failed_at: datetime | None
    finalized_at: datetime | None
    expires_at: datetime | None
    lease_seconds: float | None
    timeout_seconds: float | None
    key: str | None
    limit_key: str | None
    previous_id: str | None
    parent_id: str | None
    correlation_id: str | None
    callback_url: str | None
    depth: int
    version: int


class FailedAttemptRecord(Redacted, frozen=True, kw_only=True):
    """One of the last attempts that failed."""

    attempt: int
    at: datetime
    state: State
    category: Category
    code: str | None
    message: str | None
    """Null: it is encrypted, and there is no key for it."""
    traceback: str | None


class DependencyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a dependency, seen from the other."""

    job_id: str
    kind: DependencyKind
    outcome: State | None
    """How the job that comes first ended; null while it has not."""


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An event, one per line of `events`."""

    cursor: str
    seq: int
    at: datetime
    tenant: str
    queue: str
    type: str
    job_id: str
    kind: EventKind
    before: State | None
    after: State
    version: int
    attempt: int
    failures: int
    losses: int
    priority: int
    run_at: datetime
    worker: str | None
    lease_until: datetime | None
    category: Category | None
    code: str | None
    message: str | None
    wait_us: int | None
    run_us: int | None
    payload_bytes: int | None
    result_bytes: int | None
    detail: msgspec.Raw


def job_record(job: Job) -> JobRecord:
    return JobRecord(**job_fields(job))


def job_fields(job: Job) -> dict[str, Any]:
    """The fields of a job's record, for records that have more."""
    same = {
        name: getattr(job, name)
        for name in JobRecord.__struct_fields__
        if name not in ("payload", "result", "checkpoint")
    }
    return {
        **same,
        "payload": _raw(job.payload_json),
        "result": _raw(job.result_json),
        "checkpoint": _raw(job.checkpoint_json),
    }


def event_record(event: Event) -> EventRecord:
    same = {
        name: getattr(event, name) for name in EventRecord.__struct_fields__ if name != "detail"
    }
    return EventRecord(**same, detail=_raw(event.detail_json))


def failed_attempt_record(attempt: FailedAttempt) -> FailedAttemptRecord:
    names = FailedAttemptRecord.__struct_fields__
    return FailedAttemptRecord(**{name: getattr(attempt, name) for name in names})


def parent_record(edge: Edge) -> DependencyRecord:
    """The job that the other waits for."""
    return DependencyRecord(job_id=edge.parent_id, kind=edge.kind, outcome=edge.outcome)


def child_record(edge: Edge) -> DependencyRecord:
    """The job that waits."""
    return DependencyRecord(job_id=edge.child_id, kind=edge.kind, outcome=edge.outcome)


def _raw(encoded: bytes | None) -> msgspec.Raw:
    return NULL if encoded is None else msgspec.Raw(published(encoded))
