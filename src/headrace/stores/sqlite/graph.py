"""The graph: edges between jobs, how far the parents of a job are, and what a job has spawned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.graph import Join
from headrace.model import DependencyKind, Edge, Job
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.rows import STATE_OF, jobs_by_seq
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_ADD = Bulk("edge_add")
_OPEN = query("edges_open")
_SETTLE = Bulk("edge_settle")
_SEE = Bulk("edge_see")
_REMOVE = query("edges_remove")
_FROM = query("edges_from")
_INTO = query("edges_into")
_UNSEEN = query("edges_unseen")
_JOINS = query("joins")
_SPAWNED = query("spawned")


def add(tx: Transaction, edges: Iterable[Edge]) -> None:
    _ADD.run(
        tx.connection,
        [
            (
                edge.parent_id,
                edge.child_id,
                str(edge.kind),
                None if edge.outcome is None else str(edge.outcome),
                int(edge.seen),
            )
            for edge in edges
        ],
    )


def settle(tx: Transaction, ended: Sequence[Job]) -> list[Edge]:
    """Give every open edge from these jobs its outcome; the edges so changed."""
    outcomes = {job.id: job.state for job in ended}
    rows = tx.connection.execute(_OPEN, (json_list(outcomes),)).fetchall()
    if not rows:
        return []
    place = {job_id: index for index, job_id in enumerate(outcomes)}
    rows.sort(key=lambda row: (place[row[1]], row[0]))
    settled = [
        Edge(parent_id, child_id, DependencyKind(kind), outcomes[parent_id], bool(seen))
        for _, parent_id, child_id, kind, _, seen in rows
    ]
    _SETTLE.run(
        tx.connection,
        [(str(edge.outcome), ord_) for edge, (ord_, *_) in zip(settled, rows, strict=True)],
    )
    return settled


def see(tx: Transaction, pairs: Sequence[tuple[str, str]]) -> None:
    _SEE.run(tx.connection, pairs)


def remove(tx: Transaction, deleted: Iterable[Job]) -> None:
    tx.connection.execute(_REMOVE, (json_list(job.id for job in deleted),))


def edges(view: Snapshot, parent_id: str | None, child_id: str | None) -> list[Edge]:
    if parent_id is not None:
        wanted = {"parent_id": parent_id, "child_id": child_id}
        rows = view.connection.execute(_FROM, wanted).fetchall()
    elif child_id is not None:
        rows = view.connection.execute(_INTO, (child_id,)).fetchall()
    else:
        rows = []
    return [_read_edge(row) for row in rows]


def unseen(view: Snapshot, limit: int) -> list[Edge]:
    rows = view.connection.execute(_UNSEEN, (max(limit, 0),)).fetchall()
    return [_read_edge(row) for row in rows]


def joins(view: Snapshot, child_ids: Sequence[str]) -> dict[str, Join]:
    rows = view.connection.execute(_JOINS, (json_list(child_ids),)).fetchall()
    return {
        child_id: Join(
            needs_open=bool(needs_open),
            needs_broken=None if broken is None else STATE_OF[broken],
            any_open=bool(any_open),
            any_ended=bool(any_ended),
        )
        for child_id, needs_open, broken, any_open, any_ended in rows
    }


def spawned(view: Snapshot, parent_id: str) -> list[Job]:
    return jobs_by_seq(view, sorted(view.numbers(_SPAWNED, {"parent_id": parent_id})))


def _read_edge(row: Sequence[Any]) -> Edge:
    _, parent_id, child_id, kind, outcome, seen = row
    return Edge(
        parent_id,
        child_id,
        DependencyKind(kind),
        None if outcome is None else STATE_OF[outcome],
        bool(seen),
    )
