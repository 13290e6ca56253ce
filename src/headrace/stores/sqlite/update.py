"""What a job's user says of it, contents put into another form, and jobs deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.model import Change
from headrace.stores.base import Rewrite
from headrace.stores.sqlite import graph, keys, log, tags
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.lanes import Moves, lane_key
from headrace.stores.sqlite.rows import jobs_by_seq, seqs_of_ids, tags_text
from headrace.stores.sqlite.session import Transaction
from headrace.stores.sqlite.sql import json_list, query

_VERSIONS = query("update_versions")
_UPDATE = query("update_job")
_REWRITE_VERSIONS = query("rewrite_versions")
_PAYLOAD = Bulk("rewrite_payload")
_RESULT = Bulk("result_set")
_NOTES = Bulk("annotate")
_FAILURE = Bulk("rewrite_failure")
_BY_SEQ = tuple(
    query(name) for name in ("delete_job", "delete_payload", "delete_result", "delete_notes")
)
_LOGGED = query("delete_logged")
_REMEMBER = Bulk("delete_remember")


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


def rewrite(tx: Transaction, rewrites: Sequence[Rewrite]) -> list[bool]:
    ids = json_list({wanted.job_id for wanted in rewrites})
    stored = {
        (job_id, version): seq
        for job_id, seq, version in tx.connection.execute(_REWRITE_VERSIONS, (ids,)).fetchall()
    }
    answers = [(wanted.job_id, wanted.version) in stored for wanted in rewrites]
    current = [
        (stored[wanted.job_id, wanted.version], wanted)
        for wanted, answer in zip(rewrites, answers, strict=True)
        if answer
    ]
    _write_contents(tx, current)
    return answers


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
    log.append(tx, [change.event], [seq])
    tags.replace(tx, change, seq, old, new)
    if old != new:
        moves = Moves()
        moves.leave(old, before.state, before.failures)
        moves.enter(new, before.state, before.failures)
        moves.write(tx.connection)
        if before.limit_key is not None:
            tx.lanes.remove(old)


def _write_contents(tx: Transaction, current: Sequence[tuple[int, Rewrite]]) -> None:
    """Each by the seq of its job. Where a job is named twice, the last word stands."""
    payloads = {
        seq: wanted.payload_json for seq, wanted in current if wanted.payload_json is not None
    }
    messages = {
        seq: wanted.failure_message for seq, wanted in current if wanted.failure_message is not None
    }
    results = [
        (seq, wanted.result_json) for seq, wanted in current if wanted.result_json is not None
    ]
    notes = [
        (seq, None, None, wanted.checkpoint_json, wanted.log_json)
        for seq, wanted in current
        if (wanted.checkpoint_json, wanted.log_json) != (None, None)
    ]
    _PAYLOAD.run(tx.connection, [(payload, seq) for seq, payload in payloads.items()])
    _FAILURE.run(tx.connection, [(message, seq) for seq, message in messages.items()])
    _RESULT.run(tx.connection, results)
    _NOTES.run(tx.connection, notes)
