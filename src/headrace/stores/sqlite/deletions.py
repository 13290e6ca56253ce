"""Deleting jobs: the row and everything that is theirs, but not their events."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.stores.sqlite import graph, keys, tags
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.lanes import Moves
from headrace.stores.sqlite.rows import jobs_by_seq, seqs_of_ids
from headrace.stores.sqlite.session import Transaction
from headrace.stores.sqlite.sql import json_list, query

_BY_SEQ = tuple(
    query(name) for name in ("delete_job", "delete_payload", "delete_result", "delete_notes")
)
_LOGGED = query("delete_logged")
_REMEMBER = Bulk("delete_remember")


def delete(tx: Transaction, versions: Mapping[str, int]) -> bool:
    jobs = jobs_by_seq(tx, seqs_of_ids(tx, list(versions)))
    if any(job.version != versions[job.id] for job in jobs):
        return False
    moves = Moves()
    placed = [(job, tx.lanes.of(job)) for job in jobs]
    for job, lane in placed:
        moves.leave(lane, job.state, job.failures)
    seqs = json_list(job.seq for job in jobs)
    for sql in _BY_SEQ:
        tx.connection.execute(sql, (seqs,))
    logged = set(tx.numbers(_LOGGED, (seqs,)))  # of the others, all events have been trimmed
    _REMEMBER.run(tx.connection, [(job.id, job.seq) for job in jobs if job.seq in logged])
    tags.leave(tx, placed)
    keys.remove(tx, jobs)
    graph.remove(tx, jobs)
    moves.write(tx.connection)
    for lane in {lane for job, lane in placed if job.limit_key is not None}:
        tx.lanes.remove(lane)
    return True
