"""Claiming: pick the due jobs, lease them, in one step.

Which jobs may be leased, and what a lease writes, is the lifecycle's to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace import lifecycle
from headrace.model import Job
from headrace.stores.base import ClaimRequest, Record, Share
from headrace.stores.sqlite import changes, due, records
from headrace.stores.sqlite.changes import Writable
from headrace.stores.sqlite.rows import jobs_by_seq, us_or_none
from headrace.stores.sqlite.session import Transaction


def claim(tx: Transaction, request: ClaimRequest) -> list[Job]:
    return _lease(tx, request, due.first(tx, request))


def claim_shares(
    tx: Transaction, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
) -> list[Job] | None:
    if not records.put_all(tx, gates):
        return None
    return _lease(tx, request, due.shares(tx, request, shares))


def _lease(tx: Transaction, request: ClaimRequest, seqs: Sequence[int]) -> list[Job]:
    jobs = jobs_by_seq(tx, seqs)
    command = lifecycle.Claim(
        worker=request.worker,
        nonce=request.nonce,
        lease_seconds=request.lease_seconds,
        due_by=request.due_by,
    )
    leased = [lifecycle.apply(job, command, request.now) for job in jobs]
    changes.write(
        tx,
        [
            Writable(change, change.before.seq, us_or_none(change.after.lease_until))
            for change in leased
        ],
    )
    return [change.after for change in leased]
