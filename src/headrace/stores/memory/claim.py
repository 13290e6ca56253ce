"""Claiming: pick the due jobs, lease them, in one step; and which lanes have due jobs.

Which jobs may be leased, and what a lease writes, is the lifecycle's to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from headrace import lifecycle
from headrace.model import LEASED, Job
from headrace.stores.base import GATE, ClaimRequest, Held, Record, Share
from headrace.stores.memory import commit
from headrace.stores.memory.tables import Tables


def claim(tables: Tables, request: ClaimRequest) -> list[Job]:
    gated = set(tables.records.names(GATE))
    taken = tables.jobs.lanes.take(
        request, tables.queues.pauses(), gated, _leasing(tables, request)
    )
    return _claimed(tables, taken)


def claim_shares(
    tables: Tables, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
) -> list[Job] | None:
    if not all(tables.records.is_current(gate) for gate in gates):
        return None
    for gate in gates:
        tables.records.put(gate)
    taken = tables.jobs.lanes.take_shares(
        request, tables.queues.pauses(), shares, _leasing(tables, request)
    )
    return _claimed(tables, taken)


def held(tables: Tables, now: datetime, queues: Sequence[str]) -> list[Held]:
    """The leases on these queues that hold now."""
    counts = Counter(
        (job.tenant, job.queue, job.limit_key)
        for job in tables.jobs.in_states(LEASED)
        if job.queue in queues and (job.lease_until is None or job.lease_until > now)
    )
    return [
        Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=count)
        for (tenant, queue, limit_key), count in counts.items()
    ]


def _leasing(tables: Tables, request: ClaimRequest) -> Callable[[Job], Job]:
    """What turns a waiting job into one that is leased as requested, event included."""
    command = lifecycle.Claim(
        worker=request.worker,
        nonce=request.nonce,
        lease_seconds=request.lease_seconds,
        due_by=request.due_by,
    )

    def lease(job: Job) -> Job:
        change = lifecycle.apply(job, command, request.now)
        commit.write(tables, change)
        return change.after

    return lease


def _claimed(tables: Tables, taken: list[Job]) -> list[Job]:
    if taken:
        tables.log.wake()
    return taken
