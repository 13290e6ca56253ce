"""Writing a change: the row, its event, and everything that must move in the same step.

Claims and commits both come through here, so what a change entails stands in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.model import TERMINAL, Change, Edge
from headrace.stores.sqlite import graph, keys, log, tags
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.lanes import Moves
from headrace.stores.sqlite.rows import change_parameters
from headrace.stores.sqlite.session import Transaction

_CHANGE = Bulk("job_change", few="job_change_one")
_RESULT = Bulk("result_set")


class Writable(NamedTuple):
    """A change whose job is as it was read."""

    change: Change
    seq: int
    lease_until_us: int | None
    """What the row is to hold: a heartbeat may have written a newer one than `change` knows."""


def write(tx: Transaction, changes: Sequence[Writable]) -> list[Edge]:
    """Write them all; the edges to which they gave an outcome."""
    if not changes:
        return []
    moves = Moves()
    lanes = [tx.lanes.of(item.change.after) for item in changes]
    for (change, _, _), lane in zip(changes, lanes, strict=True):
        moves.leave(lane, change.before.state, change.before.failures)
        moves.enter(lane, change.after.state, change.after.failures)
    _CHANGE.run(
        tx.connection,
        [change_parameters(change.after, seq, lease) for change, seq, lease in changes],
    )
    _write_results(tx, changes)
    log.append(tx, [(item.change.event, item.seq) for item in changes])
    moves.write(tx.connection)
    tagged = [
        (item.change, lane, item.seq)
        for item, lane in zip(changes, lanes, strict=True)
        if item.change.after.tags
    ]
    if tagged:
        tags.move(tx, tagged)
    return _end(tx, changes)


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
