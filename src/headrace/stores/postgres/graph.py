"""The graph: edges between jobs, how far the parents of a job are, and what a job has spawned."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.graph import Join
from headrace.model import DependencyKind, Edge, Job
from headrace.stores.postgres.drivers import Row
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.rows import STATE_OF, read_jobs
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import storable, storable_or_none


async def edges(session: Session, parent_id: str | None, child_id: str | None) -> list[Edge]:
    if parent_id is not None:
        rows = await session.read("edges_from", storable(parent_id), storable_or_none(child_id))
    elif child_id is not None:
        rows = await session.read("edges_into", storable(child_id))
    else:
        rows = ()
    return [_read_edge(row) for row in rows]


async def unseen(session: Session, limit: int) -> list[Edge]:
    return [_read_edge(row) for row in await session.read("unseen", max(limit, 0))]


async def joins(session: Session, child_ids: Sequence[str]) -> dict[str, Join]:
    if not child_ids:
        return {}
    rows = await session.read("joins", [storable(child_id) for child_id in child_ids])
    return {
        child_id: Join(
            needs_open=needs_open,
            needs_broken=None if broken is None else STATE_OF[broken],
            any_open=any_open,
            any_ended=any_ended,
        )
        for child_id, needs_open, broken, any_open, any_ended in rows
    }


def _read_edge(row: Row) -> Edge:
    parent_id, child_id, kind, outcome, seen = row
    return Edge(
        parent_id,
        child_id,
        DependencyKind(kind),
        None if outcome is None else STATE_OF[outcome],
        seen,
    )


async def spawned(session: Session, lanes: Lanes, parent_id: str) -> list[Job]:
    return await read_jobs(await session.read("spawned", storable(parent_id)), lanes)
