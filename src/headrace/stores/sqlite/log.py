"""The event log: appending, reading on from a cursor, and what a cursor is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.clock import to_us
from headrace.errors import InvalidCursor, LogTrimmed
from headrace.model import Event, EventKind
from headrace.stores.base import EventQuery
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.lanes import Lanes
from headrace.stores.sqlite.rows import CATEGORY_OF, STATE_OF, read_time, time_or_none, us_or_none
from headrace.stores.sqlite.snapshot import Snapshot, Transaction
from headrace.stores.sqlite.sql import query

_ADD = Bulk("event_add")
_EVENTS = query("events")
_EVENTS_OF_JOB = query("events_of_job")
_LANES = query("events_lanes")
_START = query("log_start")
_TAIL = query("tail")

_KIND_OF = {str(kind): kind for kind in EventKind}
_SEQ_MAX = 2**63 - 1


def position(cursor: str) -> int:
    """The seq after which the cursor resumes. A cursor is the seq of the last event seen, as text."""
    if cursor == "":
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return min(int(cursor), _SEQ_MAX)


def append(tx: Transaction, events: Iterable[tuple[Event, int]]) -> None:
    """Append events, each with the seq of its job."""
    parameters = [
        _event_parameters(event, job_seq, tx.lanes.of_event(event)) for event, job_seq in events
    ]
    _ADD.run(tx.connection, parameters)
    tx.grew = tx.grew or bool(parameters)


def events(view: Snapshot, wanted: EventQuery) -> list[Event]:
    if wanted.after and wanted.job_id is None:
        gone = start(view)
        if position(wanted.after) < gone:
            raise LogTrimmed(wanted.after, cursor_of(gone))
    rows = view.connection.execute(
        _EVENTS if wanted.job_id is None else _EVENTS_OF_JOB,
        {
            "after": position(wanted.after),
            "lanes": _lanes_of(view, wanted.tenant),
            "job_id": wanted.job_id,
            "limit": max(wanted.limit, 0),
        },
    ).fetchall()
    return [_read_event(row, view.lanes) for row in rows]


def start(view: Snapshot) -> int:
    """The seq of the last event that was trimmed, 0 if none was."""
    (seq,) = view.connection.execute(_START).fetchone()
    return int(seq)


def tail(view: Snapshot) -> int:
    """The seq of the last event ever appended."""
    (seq,) = view.connection.execute(_TAIL).fetchone()
    return int(seq)


def cursor_of(seq: int) -> str:
    return str(seq) if seq else ""


def _lanes_of(view: Snapshot, tenant: str | None) -> str | None:
    """The lanes by which events name a tenant, as a JSON list; None when there is nothing to filter."""
    if tenant is None:
        return None
    (lanes,) = view.connection.execute(_LANES, (tenant,)).fetchone()
    return str(lanes)


def _event_parameters(event: Event, job_seq: int, lane: int) -> tuple[Any, ...]:
    category = event.category
    return (
        to_us(event.at),
        lane,
        job_seq,
        event.job_id,
        str(event.kind),
        None if event.before is None else str(event.before),
        str(event.after),
        event.version,
        event.attempt,
        event.failures,
        event.losses,
        to_us(event.run_at),
        event.worker,
        us_or_none(event.lease_until),
        None if category is None else str(category),
        event.code,
        event.message,
        event.wait_us,
        event.run_us,
        event.payload_bytes,
        event.result_bytes,
        event.detail_json,
    )


def _read_event(row: Sequence[Any], lanes: Lanes) -> Event:
    (
        seq,
        at,
        lane,
        job_id,
        kind,
        before,
        after,
        version,
        attempt,
        failures,
        losses,
        run_at,
        worker,
        lease_until,
        category,
        code,
        message,
        wait_us,
        run_us,
        payload_bytes,
        result_bytes,
        detail,
    ) = row
    tenant, queue, type_, priority, _ = lanes.key(lane)
    return Event(
        seq=seq,
        cursor=str(seq),
        at=read_time(at),
        tenant=tenant,
        queue=queue,
        type=type_,
        job_id=job_id,
        kind=_KIND_OF[kind],
        before=None if before is None else STATE_OF[before],
        after=STATE_OF[after],
        version=version,
        attempt=attempt,
        failures=failures,
        losses=losses,
        priority=priority,
        run_at=read_time(run_at),
        worker=worker,
        lease_until=time_or_none(lease_until),
        category=None if category is None else CATEGORY_OF[category],
        code=code,
        message=message,
        wait_us=wait_us,
        run_us=run_us,
        payload_bytes=payload_bytes,
        result_bytes=result_bytes,
        detail_json=detail,
    )
