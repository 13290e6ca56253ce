"""Reading jobs, keys and how many there are."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime

from headrace.errors import StoreError
from headrace.model import Job, State
from headrace.stores.base import Backlog, KeyScope, Query, Tally
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.rows import STATE_OF, read_jobs
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import storable, storable_or_none


async def get(session: Session, lanes: Lanes, ids: Sequence[str]) -> dict[str, Job]:
    if not ids:
        return {}
    rows = await session.read("get", [storable(job_id) for job_id in ids])
    found = {job.id: job for job in await read_jobs(rows, lanes)}
    return {job_id: found[job_id] for job_id in dict.fromkeys(ids) if job_id in found}


async def seqs_of(session: Session, ids: Sequence[str]) -> dict[str, int]:
    """The seqs of those that are stored."""
    rows = await session.read("stored_ids", [storable(job_id) for job_id in ids])
    return {job_id: seq for job_id, seq in rows}  # noqa: C416 - rows are the driver's own type


async def find(session: Session, lanes: Lanes, query: Query) -> list[Job]:
    rows = await session.read(
        "find",
        None if query.ids is None else [storable(job_id) for job_id in query.ids],
        await lanes.matching(query.tenant, query.queues, query.types),
        None if query.states is None else list(query.states),
        list(query.tags),
        storable_or_none(query.assignee),
        query.created_from,
        query.created_before,
        query.finalized_before,
        query.newest_first,
        query.after_seq,
        max(query.limit, 0),
    )
    return await read_jobs(rows, lanes)


async def keyed(session: Session, scopes: Sequence[KeyScope], now: datetime) -> dict[KeyScope, str]:
    rows = await session.read(
        "keyed",
        [scope.tenant for scope in scopes],
        [scope.queue for scope in scopes],
        [scope.type for scope in scopes],
        [scope.key for scope in scopes],
        now,
    )
    return {scopes[position - 1]: job_id for position, job_id in rows}


async def count(
    session: Session,
    lanes: Lanes,
    now: datetime,
    *,
    tenant: str | None,
    queues: Sequence[str] | None,
    tags: Sequence[str],
) -> list[Tally]:
    among = await lanes.matching(tenant, queues)
    rows = await session.read("count", now, among, list(tags))
    await lanes.know({lane for lane, *_ in rows})
    sums: dict[tuple[str, str, State], list[int]] = {}
    for lane, state, *amounts in rows:
        key = lanes.key(lane)
        total = sums.setdefault((key.tenant, key.queue, STATE_OF[state]), [0, 0, 0])
        for index, amount in enumerate(amounts):
            total[index] += int(amount)
    return [
        Tally(
            tenant=of_tenant,
            queue=queue,
            state=state,
            jobs=jobs,
            delayed=delayed,
            failures=failures,
        )
        for (of_tenant, queue, state), (jobs, delayed, failures) in sorted(sums.items())
        if jobs
    ]


async def fold_tallies(session: Session) -> None:
    """Tally what events have told, so that counting has less to add. A server that cannot write can count."""
    with contextlib.suppress(StoreError):
        await session.write("fold_tallies")


async def backlog(session: Session, tenant: str | None, queue: str | None) -> Backlog:
    ((jobs, payload_bytes),) = await session.read("backlog", tenant, queue)
    return Backlog(jobs, payload_bytes)
