"""A job for programs outside: field names are stable, and documented in docs/reference/cli.md. Pure.

A lease token is a worker's proof, so it is not among them. Payload, result and checkpoint go out as the JSON
that is stored; where they are encrypted and there is no key, as an `envelope.Notice`.
"""

from __future__ import annotations

import html
from datetime import datetime
from typing import Any

import msgspec

from headrace.envelope import published
from headrace.model import Failure, Job, State
from headrace.redaction import Redacted

_NULL = msgspec.Raw(b"null")
_SHOWN = ("id", "type", "queue", "state", "attempt", "progress", "created_at", "finalized_at")


class JobRecord(Redacted, frozen=True, kw_only=True):
    """A job, as `Job.to_dict`, `show --json`, `list --json` and others give it."""

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
        "payload": raw(job.payload_json),
        "result": raw(job.result_json),
        "checkpoint": raw(job.checkpoint_json),
    }


def raw(encoded: bytes | None) -> msgspec.Raw:
    return _NULL if encoded is None else msgspec.Raw(published(encoded))


def as_dict(job: Job) -> dict[str, Any]:
    """The record in JSON values: times as text, in UTC."""
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(job_record(job)))
    return values


def as_html(job: Job) -> str:
    """A small table for notebooks, without anything that the job holds."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{name}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name in _SHOWN
        if (value := getattr(job, name)) is not None
    )
    return f"<table>{rows}</table>"
