"""Leases: does one hold, keeping them, what their holders say meanwhile, and those that are over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import Extended, Fence, Note
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.rows import STATE_OF, jobs_by_seq, us_or_none
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query


class _Lease(NamedTuple):
    """A lease and all that may end it: what `lifecycle.lease_holds` looks at."""

    seq: int
    token: str | None
    lease_until_us: int | None
    expires_at_us: int | None
    assigned_at_us: int | None
    timeout_seconds: float | None

    @property
    def times_out_at_us(self) -> int | None:
        if self.assigned_at_us is None or self.timeout_seconds is None:
            return None
        return self.assigned_at_us + timedelta(seconds=self.timeout_seconds) // _MICROSECOND


_MICROSECOND = timedelta(microseconds=1)
_LEASE = query("lease")
_LEASES = query("extend_leases")
_EXTEND = Bulk("extend")
_ANNOTATE = query("annotate")
_LAPSED = query("lapsed")
_OUTLIVED = query("outlived")


def holds(view: Snapshot, fence: Fence, now: datetime) -> bool:
    return _held_seq(view, fence, now) is not None


def extend(tx: Transaction, leases: Mapping[Fence, float | None], now: datetime) -> list[Extended]:
    ids = json_list({fence.job_id for fence in leases})
    rows = tx.connection.execute(_LEASES, (ids,)).fetchall()
    stored = {job_id: (state, _Lease(*lease)) for job_id, state, *lease in rows}
    extended: list[Extended] = []
    writes: list[tuple[int | None, int]] = []
    for fence, seconds in leases.items():
        if fence.job_id not in stored:
            continue
        state, lease = stored[fence.job_id]
        if not _is_held(fence, lease, now):
            continue
        until = None if seconds is None else now + timedelta(seconds=seconds)
        extended.append(Extended(fence.job_id, STATE_OF[state], until))
        writes.append((us_or_none(until), lease.seq))
    _EXTEND.run(tx.connection, writes)
    return extended


def annotate(tx: Transaction, fence: Fence, note: Note, now: datetime) -> bool:
    seq = _held_seq(tx, fence, now)
    if seq is None:
        return False
    said = (note.progress, note.progress_note, note.checkpoint_json, note.log_json)
    if said != (None, None, None, None):
        tx.connection.execute(_ANNOTATE, (seq, *said))
    return True


def lapsed(view: Snapshot, now: datetime, limit: int, tenant: str | None) -> list[Job]:
    jobs = _overdue(view, _LAPSED, now, limit, tenant)
    return sorted(jobs, key=attrgetter("lease_until", "seq"))


def outlived(view: Snapshot, now: datetime, limit: int, tenant: str | None) -> list[Job]:
    jobs = _overdue(view, _OUTLIVED, now, limit, tenant)
    return sorted(jobs, key=attrgetter("expires_at", "seq"))


def _held_seq(view: Snapshot, fence: Fence, now: datetime) -> int | None:
    """The seq of the fence's job, if its lease holds."""
    row = view.connection.execute(_LEASE, (fence.job_id,)).fetchone()
    if row is None:
        return None
    lease = _Lease(*row)
    return lease.seq if _is_held(fence, lease, now) else None


def _is_held(fence: Fence, lease: _Lease, now: datetime) -> bool:
    now_us, timeout_us = to_us(now), lease.times_out_at_us
    return (
        lease.token == fence.token
        and (lease.lease_until_us is None or lease.lease_until_us > now_us)
        and (lease.expires_at_us is None or lease.expires_at_us > now_us)
        and (timeout_us is None or timeout_us >= now_us)
    )


def _overdue(view: Snapshot, sql: str, now: datetime, limit: int, tenant: str | None) -> list[Job]:
    bound = {
        "now": to_us(now),
        "limit": max(limit, 0),
        "tenant": tenant,
    }
    return jobs_by_seq(view, view.numbers(sql, bound))
