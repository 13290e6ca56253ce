"""The graph: edges between jobs, how far the parents of a job are, and what a job has spawned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import PROPAGATED, Join
from headrace.model import DependencyKind, Edge, Job
from headrace.stores.base import Query
from headrace.stores.redis import search
from headrace.stores.redis.codes import STATE_CODE, STATE_OF_BYTE
from headrace.stores.redis.connection import Server
from headrace.stores.redis.scripts import Script

_EDGES = Script("edges")
_JOINS = Script("joins")
_UNSEEN = Script("unseen")

_CHILDREN_PER_CALL = 1000
_EDGES_PER_CALL = 5000
_KIND_OF = {str(kind).encode(): kind for kind in DependencyKind}

# The slots of lua/shared/edges.lua: n(eeded) or a(ny), then the outcome's letter or o(pen).
_NEEDS_OPEN = "no"
_ANY_OPEN = "ao"
_NEEDS_BROKEN = [(f"n{STATE_CODE[state]}", state) for state in PROPAGATED]


async def edges(server: Server, parent_id: str | None, child_id: str | None) -> list[Edge]:
    if parent_id is not None:
        found = await _edges(server, "from", parent_id)
        return [edge for edge in found if child_id in (None, edge.child_id)]
    return [] if child_id is None else await _edges(server, "into", child_id)


async def _edges(server: Server, direction: str, job_id: str) -> list[Edge]:
    """A job may have any number of children: page by page."""
    found: list[Edge] = []
    last: bytes | int = 0
    while True:
        flat, last = await server.read_script(_EDGES, direction, job_id, last, _EDGES_PER_CALL)
        page = read_edges(flat)
        found += page
        if len(page) < _EDGES_PER_CALL:
            return found


async def joins(server: Server, child_ids: Sequence[str]) -> dict[str, Join]:
    found: dict[str, Join] = {}
    for start in range(0, len(child_ids), _CHILDREN_PER_CALL):
        page = child_ids[start : start + _CHILDREN_PER_CALL]
        slots = await server.read_script(_JOINS, *page)
        found |= {
            child: _join(text.decode().split()) for child, text in zip(page, slots, strict=True)
        }
    return found


async def unseen(server: Server, limit: int) -> list[Edge]:
    found: list[Edge] = []
    while (left := limit - len(found)) > 0:
        size = min(left, _EDGES_PER_CALL)
        page = read_edges(await server.read_script(_UNSEEN, len(found), size))
        found += page
        if len(page) < size:
            break
    return found


def read_edges(flat: Sequence[Any]) -> list[Edge]:
    return [
        Edge(
            parent.decode(),
            child.decode(),
            _KIND_OF[kind],
            STATE_OF_BYTE[outcome] if outcome else None,
            seen == b"1",
        )
        for parent, child, kind, outcome, seen in zip(
            flat[::5], flat[1::5], flat[2::5], flat[3::5], flat[4::5], strict=True
        )
    ]


def _join(slots: Sequence[str]) -> Join:
    return Join(
        needs_open=_NEEDS_OPEN in slots,
        needs_broken=next((state for slot, state in _NEEDS_BROKEN if slot in slots), None),
        any_open=_ANY_OPEN in slots,
        any_ended=any(slot[0] == "a" and slot != _ANY_OPEN for slot in slots),
    )


async def spawned(server: Server, parent_id: str) -> list[Job]:
    """The jobs that a job spawned, in order of seq."""
    found: list[Job] = []
    every = Query()
    async for handles in search.walk(server, server.keys.spawned(parent_id), every):
        found += await search.pick(server, every, handles, len(handles))
    return found
