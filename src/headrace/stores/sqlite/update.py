"""Updating: what a job's user says of it, with the lane and the tags that follow from that."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model import Change
from headrace.stores.sqlite import log, tags
from headrace.stores.sqlite.lanes import Moves, lane_key
from headrace.stores.sqlite.rows import tags_text
from headrace.stores.sqlite.session import Transaction
from headrace.stores.sqlite.sql import json_list, query

_VERSIONS = query("update_versions")
_UPDATE = query("update_job")


def update(tx: Transaction, changes: Sequence[Change]) -> list[bool]:
    ids = json_list(change.before.id for change in changes)
    stored = {
        job_id: (seq, (tx.lanes.key(lane), version, state))
        for job_id, seq, lane, version, state in tx.connection.execute(_VERSIONS, (ids,)).fetchall()
    }
    answers = []
    for change in changes:
        read = change.before
        seq, standing = stored.get(read.id, (0, None))
        current = standing == (lane_key(read, read.limit_key), read.version, read.state)
        if current:
            _write(tx, change, seq)
            del stored[read.id]  # a second change of the same job comes too late
        answers.append(current)
    return answers


def _write(tx: Transaction, change: Change, seq: int) -> None:
    before, after = change.before, change.after
    old, new = tx.lanes.of(before), tx.lanes.of(after)
    tx.connection.execute(
        _UPDATE,
        (
            after.version,
            new,
            tags_text(after.tags),
            after.correlation_id,
            after.callback_url,
            after.depth,
            seq,
        ),
    )
    log.append(tx, [(change.event, seq)])
    tags.replace(tx, change, seq, old, new)
    if old != new:
        moves = Moves()
        moves.leave(old, before.state, before.failures)
        moves.enter(new, before.state, before.failures)
        moves.write(tx.connection)
        if before.limit_key is not None:
            tx.lanes.remove(old)
