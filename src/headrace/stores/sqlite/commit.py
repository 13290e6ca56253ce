"""Committing: compare each change with the row, write those that still hold.

Claims write through here, too, so what a change entails (the row, its event, and everything that must
move in the same step) stands in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from headrace.model import LEASED, TERMINAL, Change, Edge, Job
from headrace.stores.base import Commit, Committed
from headrace.stores.columns import COMPARED, LANE_KEY
from headrace.stores.sqlite import graph, keys, log, tags
from headrace.stores.sqlite.bulk import Bulk, Wide
from headrace.stores.sqlite.lanes import Lanes, Moves
from headrace.stores.sqlite.rows import change_columns, seqs_of_ids, us_or_none
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_VERSIONS = query("commit_versions")
_CHANGE = Wide("job_change", few="job_change_one")
_RESULT = Bulk("result_set")


class _Standing(NamedTuple):
    """The part of a stored row that a change is compared with."""

    id: str
    seq: int
    lease_until_us: int | None
    lane: int
    compared: tuple[str | int | None, ...]


_compared = attrgetter(*(column.field for column in COMPARED))
_lane_key = attrgetter(*(column.field for column in LANE_KEY))

_STANDINGS = msgspec.json.Decoder(list[_Standing])


class Writable(NamedTuple):
    """A change whose job is as it was read."""

    change: Change
    seq: int
    lease_until_us: int | None
    """What the row is to hold: a heartbeat may have written a newer one than `change` knows."""


def commit(tx: Transaction, wanted: Commit) -> Committed:
    stored = _standings(tx, wanted.changes)
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
    touched = write(tx, writable)
    graph.see(tx, wanted.seen_given(applied))
    return Committed(applied, touched)


def _standings(view: Snapshot, changes: Sequence[Change]) -> dict[str, _Standing]:
    """By id, as stored now. A job that was not read from the store has no seq: it is looked up by its id."""
    seqs = [change.before.seq for change in changes if change.before.seq]
    unread = [change.before.id for change in changes if not change.before.seq]
    if unread:
        seqs += seqs_of_ids(view, unread)
    (rows,) = view.connection.execute(_VERSIONS, (json_list(seqs),)).fetchone()
    return {standing.id: standing for standing in _STANDINGS.decode(rows)}


def write(tx: Transaction, changes: Sequence[Writable]) -> list[Edge]:
    """Write them all; the edges to which they gave an outcome."""
    if not changes:
        return []
    moves = Moves()
    lanes = [tx.lanes.of(item.change.after) for item in changes]
    for (change, _, _), lane in zip(changes, lanes, strict=True):
        moves.leave(lane, change.before.state, change.before.failures)
        moves.enter(lane, change.after.state, change.after.failures)
    seqs = [item.seq for item in changes]
    leases = [item.lease_until_us for item in changes]
    _CHANGE.run(
        tx.connection, change_columns([item.change.after for item in changes], seqs, leases)
    )
    _write_results(tx, changes)
    log.append(tx, [item.change.event for item in changes], seqs)
    moves.write(tx.connection)
    tagged = [
        (item.change, lane, item.seq)
        for item, lane in zip(changes, lanes, strict=True)
        if item.change.after.tags
    ]
    if tagged:
        tags.move(tx, tagged)
    return _end(tx, changes)


def _is_current(lanes: Lanes, read: Job, standing: _Standing, *, lease_too: bool) -> bool:
    """Whether the row stands as it was read; the id is what it was found by."""
    return (
        standing.compared == _compared(read)
        and lanes.key(standing.lane) == _lane_key(read)
        and not (lease_too and standing.lease_until_us != us_or_none(read.lease_until))
    )


def _lease(change: Change, standing: _Standing) -> int | None:
    """While the lease goes on, a heartbeat since the job was read is not undone."""
    if change.before.state in LEASED and change.after.state in LEASED:
        return standing.lease_until_us
    return us_or_none(change.after.lease_until)


def _write_results(tx: Transaction, changes: Sequence[Writable]) -> None:
    results = [
        (seq, change.after.result_json)
        for change, seq, _ in changes
        if change.after.result_json is not None
        and change.after.result_json is not change.before.result_json
    ]
    _RESULT.run(tx.connection, results)


def _end(tx: Transaction, changes: Sequence[Writable]) -> list[Edge]:
    """What goes with the end of a job: its key is given up, its children learn of it."""
    ended = [item.change.after for item in changes if item.change.after.state in TERMINAL]
    if not ended:
        return []
    keys.release(tx, ended)
    return graph.settle(tx, ended)
