"""The event log: appending, reading on from a cursor, what a cursor is, and trimming."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headrace.clock import to_us
from headrace.errors import InvalidCursor, LogTrimmed
from headrace.model import Event
from headrace.stores.base import EventQuery
from headrace.stores.sqlite.bulk import Wide
from headrace.stores.sqlite.rows import event_columns, read_event
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import query

_ADD = Wide("event_add")
_EVENTS = query("events")
_EVENTS_OF_JOB = query("events_of_job")
_LANES = query("events_lanes")
_START = query("log_start")
_TAIL = query("tail")
_TRIM_LAST = query("trim_last")
_TRIM_DELETED = query("trim_deleted")
_TRIM_EVENTS = query("trim_events")

_SEQ_MAX = 2**63 - 1


def position(cursor: str) -> int:
    """The seq after which the cursor resumes. A cursor is the seq of the last event seen, as text."""
    if cursor == "":
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return min(int(cursor), _SEQ_MAX)


def append(tx: Transaction, events: Sequence[Event], job_seqs: Sequence[int]) -> None:
    """Append events, each with the seq of its job."""
    if not events:
        return
    lanes = [tx.lanes.of_event(event) for event, _ in zip(events, job_seqs, strict=True)]
    _ADD.run(tx.connection, event_columns(events, job_seqs, lanes))
    tx.grew = True


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
    return [read_event(row, view.lanes.key) for row in rows]


def start(view: Snapshot) -> int:
    """The seq of the last event that was trimmed, 0 if none was."""
    (seq,) = view.connection.execute(_START).fetchone()
    return int(seq)


def tail(view: Snapshot) -> int:
    """The seq of the last event ever appended."""
    (seq,) = view.connection.execute(_TAIL).fetchone()
    return int(seq)


def trim(tx: Transaction, upto: Sequence[str], before: datetime, limit: int) -> int:
    """The oldest events go, and with them the way to deleted jobs that have no other."""
    bounds = {
        "upto": min(map(position, upto), default=tail(tx)),
        "before": to_us(before),
        "limit": max(limit, 0),
    }
    (last,) = tx.connection.execute(_TRIM_LAST, bounds).fetchone()
    if last is None:
        return 0
    tx.connection.execute(_TRIM_DELETED, {"last": last})
    return tx.connection.execute(_TRIM_EVENTS, {"last": last}).rowcount


def cursor_of(seq: int) -> str:
    return str(seq) if seq else ""


def _lanes_of(view: Snapshot, tenant: str | None) -> str | None:
    """The lanes by which events name a tenant, as a JSON list; None when there is nothing to filter."""
    if tenant is None:
        return None
    (lanes,) = view.connection.execute(_LANES, (tenant,)).fetchone()
    return str(lanes)
