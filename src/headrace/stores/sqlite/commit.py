"""Committing: compare each change with the row, write those that still hold."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headrace.model import LEASED, Change, Job
from headrace.stores.base import Commit, Committed
from headrace.stores.sqlite import changes, graph
from headrace.stores.sqlite.changes import Writable
from headrace.stores.sqlite.lanes import Lanes
from headrace.stores.sqlite.rows import us_or_none
from headrace.stores.sqlite.session import Transaction
from headrace.stores.sqlite.sql import json_list, query

_VERSIONS = query("commit_versions")


class _Standing(NamedTuple):
    """The part of a stored row that a change is compared with."""

    id: str
    seq: int
    lease_until_us: int | None
    lane: int
    version: int
    state: str
    token: str | None
    assignee: str | None
    attempt: int
    failures: int
    losses: int


_VERSION = _Standing._fields.index("version")
_STANDINGS = msgspec.json.Decoder(list[_Standing])


def commit(tx: Transaction, wanted: Commit) -> Committed:
    ids = json_list(change.before.id for change in wanted.changes)
    (rows,) = tx.connection.execute(_VERSIONS, (ids,)).fetchone()
    stored = {standing.id: standing for standing in _STANDINGS.decode(rows)}
    tx.lanes.learn(standing.lane for standing in stored.values())
    writable: list[Writable] = []
    applied: list[bool] = []
    for change in wanted.changes:
        standing = stored.get(change.before.id)
        current = standing is not None and _is_current(
            tx.lanes, change.before, standing, lease_too=wanted.leases_as_read
        )
        applied.append(current)
        if standing is not None and current:
            writable.append(Writable(change, standing.seq, _lease(change, standing)))
            del stored[change.before.id]  # a second change of the same job comes too late
    if wanted.together and not all(applied):
        return Committed([False] * len(applied))
    touched = changes.write(tx, writable)
    graph.see(tx, wanted.seen_given(applied))
    return Committed(applied, touched)


def _is_current(lanes: Lanes, read: Job, standing: _Standing, *, lease_too: bool) -> bool:
    """Whether the row stands as it was read; the id is what it was found by."""
    return (
        standing[_VERSION:]
        == (
            read.version,
            read.state,
            read.token,
            read.assignee,
            read.attempt,
            read.failures,
            read.losses,
        )
        and lanes.key(standing.lane)
        == (read.tenant, read.queue, read.type, read.priority, read.limit_key)
        and not (lease_too and standing.lease_until_us != us_or_none(read.lease_until))
    )


def _lease(change: Change, standing: _Standing) -> int | None:
    """While the lease goes on, a heartbeat since the job was read is not undone."""
    if change.before.state in LEASED and change.after.state in LEASED:
        return standing.lease_until_us
    return us_or_none(change.after.lease_until)
