"""Fenced writes besides commits: does a lease hold, heartbeats, and the notes of its holder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from headrace.clock import to_us
from headrace.stores.base import Extended, Fence, Note
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.rows import STATE_OF, us_or_none
from headrace.stores.sqlite.snapshot import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_LEASE = query("lease")
_LEASES = query("extend_leases")
_EXTEND = Bulk("extend")
_ANNOTATE = query("annotate")


def holds(view: Snapshot, fence: Fence, now: datetime) -> bool:
    return _held_seq(view, fence, now) is not None


def extend(tx: Transaction, leases: Mapping[Fence, float | None], now: datetime) -> list[Extended]:
    ids = json_list({fence.job_id for fence in leases})
    rows = tx.connection.execute(_LEASES, (ids,)).fetchall()
    stored = {job_id: lease for job_id, *lease in rows}
    extended: list[Extended] = []
    writes: list[tuple[int | None, int]] = []
    for fence, seconds in leases.items():
        if fence.job_id not in stored:
            continue
        seq, state, token, lease_until_us = stored[fence.job_id]
        if not _is_held(fence, token, lease_until_us, now):
            continue
        until = None if seconds is None else now + timedelta(seconds=seconds)
        extended.append(Extended(fence.job_id, STATE_OF[state], until))
        writes.append((us_or_none(until), seq))
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


def _held_seq(view: Snapshot, fence: Fence, now: datetime) -> int | None:
    """The seq of the fence's job, if its lease holds."""
    row = view.connection.execute(_LEASE, (fence.job_id,)).fetchone()
    if row is None:
        return None
    seq, token, lease_until_us = row
    return int(seq) if _is_held(fence, token, lease_until_us, now) else None


def _is_held(fence: Fence, token: str | None, lease_until_us: int | None, now: datetime) -> bool:
    return token == fence.token and (lease_until_us is None or lease_until_us > to_us(now))
