"""The JSON of an event: what `events --json` prints, and the server answers."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.job_record import raw
from headrace.model import Category, Event, EventKind, State


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


def event_record(event: Event) -> EventRecord:
    same = {
        name: getattr(event, name) for name in EventRecord.__struct_fields__ if name != "detail"
    }
    return EventRecord(**same, detail=raw(event.detail_json))
