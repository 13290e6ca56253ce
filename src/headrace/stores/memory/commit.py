"""Committing: compare each change with the row, write those that still hold.

Claims write through here, too, so what a change entails stands in one place.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from headrace.model import TERMINAL, Change, Edge, Job
from headrace.stores.base import Commit, Committed
from headrace.stores.columns import COMPARED, JOB, LANE_KEY, Group, of
from headrace.stores.memory.tables import Tables

_compared = attrgetter("id", *(column.field for column in (*LANE_KEY, *COMPARED)))
_NOTES = [column.field for column in of(JOB, Group.PAYLOAD, Group.NOTE)]


def commit(tables: Tables, wanted: Commit) -> Committed:
    applied = [
        is_current(tables, change.before, lease_too=wanted.leases_as_read)
        for change in wanted.changes
    ]
    if wanted.together and not all(applied):
        return Committed([False] * len(applied))
    touched: list[Edge] = []
    for change, current in zip(wanted.changes, applied, strict=True):
        if current:
            touched += write(tables, change)
    tables.edges.see(wanted.seen_given(applied))
    if any(applied):
        tables.log.wake()
    return Committed(applied, touched)


def write(tables: Tables, change: Change) -> list[Edge]:
    """One change with all that goes with it; the edges it settled."""
    stored = tables.jobs[change.before.id]
    tables.jobs.move(keep_newer(change.after, stored))
    tables.log.append(change.event)
    if change.after.state not in TERMINAL:
        return []
    tables.keys.release(change.after)
    return tables.edges.settle(change.after.id, change.after.state)


def is_current(tables: Tables, read: Job, *, lease_too: bool = False) -> bool:
    job = tables.jobs.get(read.id)
    return (
        job is not None
        and is_as_read(job, read)
        and not (lease_too and job.lease_until != read.lease_until)
    )


def is_as_read(stored: Job, read: Job) -> bool:
    """Whether a change computed from `read` is one of the stored row: see `JobStore.commit`."""
    return bool(_compared(stored) == _compared(read))


def keep_newer(after: Job, stored: Job) -> Job:
    """What heartbeats, notes and rewrites wrote since the change's job was read stays."""
    kept: dict[str, Any] = {field: getattr(stored, field) for field in _NOTES}
    if stored.is_leased and after.is_leased:
        kept["lease_until"] = stored.lease_until
    return replace(after, **kept)
