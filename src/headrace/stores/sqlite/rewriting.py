"""Rewriting: the same contents in another form, while nobody works on the job."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.stores.base import Rewrite
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.session import Transaction
from headrace.stores.sqlite.sql import json_list, query

_VERSIONS = query("rewrite_versions")
_PAYLOAD = Bulk("rewrite_payload")
_RESULT = Bulk("result_set")
_NOTES = Bulk("annotate")
_FAILURE = Bulk("rewrite_failure")


def rewrite(tx: Transaction, rewrites: Sequence[Rewrite]) -> list[bool]:
    ids = json_list({wanted.job_id for wanted in rewrites})
    stored = {
        (job_id, version): seq
        for job_id, seq, version in tx.connection.execute(_VERSIONS, (ids,)).fetchall()
    }
    answers = [(wanted.job_id, wanted.version) in stored for wanted in rewrites]
    current = [
        (stored[wanted.job_id, wanted.version], wanted)
        for wanted, answer in zip(rewrites, answers, strict=True)
        if answer
    ]
    _write(tx, current)
    return answers


def _write(tx: Transaction, current: Sequence[tuple[int, Rewrite]]) -> None:
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
