"""Silver in plain Python, event by event: what the pipeline's tables must equal to the last column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace import history
from headrace.model import LEASED, Event, EventKind

Row = dict[str, Any]
_DETAIL = [
    "max_attempts",
    "timeout_seconds",
    "key",
    "previous_id",
    "parent_id",
    "correlation_id",
    "limit_key",
]


def lives_of(events: Iterable[Event]) -> list[list[Event]]:
    """The events of each life of each job, repeats left out."""
    by_seq = {event.seq: event for event in events}
    lives: dict[str, list[list[Event]]] = {}
    for _, event in sorted(by_seq.items()):
        of_job = lives.setdefault(event.job_id, [])
        if (
            not of_job
            or event.kind is EventKind.ENQUEUED
            or _whose(event) != _whose(of_job[-1][-1], event)
        ):
            of_job.append([])
        of_job[-1].append(event)
    return [life for of_job in lives.values() for life in of_job]


def _whose(event: Event, then: Event | None = None) -> tuple[object, ...]:
    """What only an update changes in a life: tells two apart while the birth of the second is missing."""
    after = then or event
    priority = after.priority if after.kind is EventKind.UPDATED else event.priority
    return event.tenant, event.queue, event.type, priority


def jobs(events: Iterable[Event]) -> list[Row]:
    return _sorted([_job(life) for life in lives_of(events)], "last_seq")


def histories(events: Iterable[Event]) -> list[Row]:
    """Jobs with all their events: what plain gold is computed from."""
    told = [
        _job(life) | {"timeline": [_told(event) for event in life]} for life in lives_of(events)
    ]
    return _sorted(told, "last_seq")


def attempts(events: Iterable[Event]) -> list[Row]:
    found = [row for life in lives_of(events) for row in _attempts(life)]
    return _sorted(found, "leased_seq")


def rows_of(table: pa.Table, by: str) -> list[Row]:
    """A table's rows as plain values, in the order in which the oracle gives them."""
    return _sorted(table.to_pylist(), by)


def _sorted(rows: list[Row], by: str) -> list[Row]:
    return sorted(rows, key=lambda row: row[by])


def _job(life: Sequence[Event]) -> Row:
    first, last = life[0], life[-1]
    detail = json.loads(first.detail_json or b"{}")
    failures = [event for event in life if event.category is not None]
    results = [event.result_bytes for event in life if event.result_bytes is not None]
    tried = _attempts(life)
    folded = {name: _plain(value) for name, value in history.fold(life).items()}
    expires_at = detail.get("expires_at")
    return {
        "job_id": first.job_id,
        "born_seq": _born(life),
        "tenant": last.tenant,
        "queue": last.queue,
        "type": last.type,
        "priority": last.priority,
        "started_at": None,
        "finalized_at": None,
        "assignee": None,
        "assigned_at": None,
        **folded,
        "category": _plain(failures[-1].category) if failures else None,
        "code": failures[-1].code if failures else None,
        "message": failures[-1].message if failures else None,
        "wait_us": _sum(row["wait_us"] for row in tried),
        "run_us": _sum(row["run_us"] for row in tried),
        "payload_bytes": first.payload_bytes,
        "result_bytes": results[-1] if results else None,
        "tags": detail.get("tags", []),
        "expires_at": None if expires_at is None else datetime.fromisoformat(expires_at),
        **{name: detail.get(name) for name in _DETAIL},
        "dependencies": [
            {"job_id": name, "kind": kind} for name, kind in detail.get("dependencies", [])
        ],
        **_updated(life),
        "events": len(life),
        "first_run_at": first.run_at,
        "failed_seq": failures[-1].seq if failures else None,
        "last_seq": last.seq,
        "last_at": last.at,
        "last_before": _plain(last.before),
    }


def _updated(life: Sequence[Event]) -> Row:
    """What updates say of the job; the last word counts."""
    said: Row = {}
    for event in life:
        if event.kind is EventKind.UPDATED:
            detail = json.loads(event.detail_json or b"{}")
            said |= {name: detail[name] for name in ("tags", "correlation_id") if name in detail}
    return said


def _attempts(life: Sequence[Event]) -> list[Row]:
    rows: list[Row] = []
    for place, event in enumerate(life):
        if event.kind is not EventKind.LEASED:
            continue
        rest = [
            later
            for later in life[place + 1 :]
            if later.attempt == event.attempt
            and later.before in LEASED
            and later.after not in LEASED
        ]
        assert event.wait_us is not None
        row: Row = {
            "job_id": event.job_id,
            "born_seq": _born(life),
            "attempt": event.attempt,
            "tenant": event.tenant,
            "queue": event.queue,
            "type": event.type,
            "priority": event.priority,
            "worker": event.worker,
            "ready_at": event.at - timedelta(microseconds=event.wait_us),
            "leased_at": event.at,
            "wait_us": event.wait_us,
            "leased_seq": event.seq,
        }
        end = rest[0] if rest else None
        for name in ("category", "code", "message", "run_us", "result_bytes"):
            row[name] = None if end is None else _plain(getattr(end, name))
        row["ended_at"] = None if end is None else end.at
        row["ended_seq"] = None if end is None else end.seq
        row["outcome"] = None if end is None else end.kind.value
        row["state_after"] = None if end is None else end.after.value
        rows.append(row)
    return rows


def _born(life: Sequence[Event]) -> int | None:
    return life[0].seq if life[0].kind is EventKind.ENQUEUED else None


def _told(event: Event) -> Row:
    names = ("seq", "at", "before", "after", "run_at", "category", "code", "message")
    return {name: _plain(getattr(event, name)) for name in names}


def _plain(value: Any) -> Any:
    """The value of a word of the model; anything else as it is."""
    return str(value.value) if hasattr(value, "value") else value


def _sum(values: Iterable[int | None]) -> int | None:
    here = [value for value in values if value is not None]
    return sum(here) if here else None
