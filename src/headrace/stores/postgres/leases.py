"""Leases: keeping them, what their holders say meanwhile, and those that are over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from headrace.model import Job
from headrace.stores.base import Extended, Fence, Note
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.rows import STATE_OF, read_jobs
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import storable, storable_or_none


async def extend(
    session: Session, leases: Mapping[Fence, float | None], now: datetime
) -> list[Extended]:
    rows = await session.write(
        "extend",
        [storable(fence.job_id) for fence in leases],
        [storable(fence.token) for fence in leases],
        [
            None if seconds is None else now + timedelta(seconds=seconds)
            for seconds in leases.values()
        ],
        now,
    )
    extended = {job_id: Extended(job_id, STATE_OF[state], until) for job_id, state, until in rows}
    ids = dict.fromkeys(fence.job_id for fence in leases)
    return [extended[job_id] for job_id in ids if job_id in extended]


async def annotate(session: Session, fence: Fence, note: Note, now: datetime) -> bool:
    ((written,),) = await session.write(
        "annotate",
        storable(fence.job_id),
        storable(fence.token),
        note.progress,
        storable_or_none(note.progress_note),
        note.checkpoint_json,
        note.log_json,
        now,
    )
    return bool(written)


async def lapsed(
    session: Session, lanes: Lanes, now: datetime, limit: int, tenant: str | None
) -> list[Job]:
    return await read_jobs(await session.read("lapsed", now, tenant, max(limit, 0)), lanes)


async def outlived(
    session: Session, lanes: Lanes, now: datetime, limit: int, tenant: str | None
) -> list[Job]:
    return await read_jobs(await session.read("outlived", now, tenant, max(limit, 0)), lanes)
