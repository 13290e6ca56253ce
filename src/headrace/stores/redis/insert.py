"""Storing new jobs, with all that must be stored with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from struct import Struct
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace.clock import to_us
from headrace.model import Edge, Job, State
from headrace.stores.base import Clash, Inserted, Insertion, Kin
from headrace.stores.redis.codes import STATE_BYTE, STATE_CODE
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.errors import text_refused
from headrace.stores.redis.lanes import pack_lane
from headrace.stores.redis.log import pack_event
from headrace.stores.redis.rows import (
    common_fields,
    has_more,
    more_of,
    pack_behind_payload,
    pack_body,
    pack_row,
    pack_scope,
    position_us,
    us_or_none,
)
from headrace.stores.redis.scripts import Script

_INSERT = Script("insert")

_SPEC = Struct(">IIcIqqB")
"""How many jobs, their lane's place in the list, state, failures, position, expires_at, what they have"""
_HAS_TAGS, _IS_SPAWNED, _HAS_WORKER = 1, 2, 4
_EDGES_PER_ARGUMENT = 500  # so that a script never unpacks a very large list at once

_encode = msgspec.msgpack.Encoder().encode


async def insert(server: Server, insertion: Insertion) -> Inserted | Clash:
    """All of it, or nothing and what stood in the way."""
    with text_refused():
        arguments = _arguments(insertion)
    outcome, *rest = await server.write_script(_INSERT, *arguments)
    match outcome:
        case b"ok":
            first = int(rest[0])
            return Inserted([replace(job, seq=first + n) for n, job in enumerate(insertion.jobs)])
        case b"fence":
            return Clash(fence=True)
        case b"parents":
            return Clash(parents=[name.decode() for name in rest[0]])
        case b"kin":
            return Clash(kin=[name.decode() for name in rest[0]])
        case b"ids":
            return Clash(ids=[name.decode() for name in rest[0]])
        case _:
            return Clash(keys=[insertion.keys[place - 1].scope for place in rest[0]])


def _arguments(insertion: Insertion) -> list[Argument]:
    jobs = insertion.jobs
    lanes: dict[str, int] = {}
    runs: list[Argument] = []
    stored: list[Argument] = []
    more: list[tuple[int, str, str]] = []
    index = 0
    # Jobs of one call are mostly alike: what they share is packed, sent and read once.
    for alike in _runs(jobs):
        first = alike[0]
        runs += (_run(first, len(alike), lanes), pack_row(first))
        behind = pack_behind_payload(first)
        for job in alike:
            stored += (pack_body(job, behind), pack_event(insertion.events[index]))
            if has_more(job):
                more += ((index, letter, value.decode()) for letter, value in more_of(job))
            index += 1
    fence = insertion.fence
    head = (
        to_us(insertion.now),
        len(jobs),
        len(runs) // 2,
        list(lanes),
        False if fence is None else (fence.job_id, fence.token),
        [(name, _code(outcome)) for name, outcome in insertion.parents.items()],
        [
            (
                pack_scope(hold.scope),
                hold.job_id,
                False if hold.expires_at is None else to_us(hold.expires_at),
                hold.released_when_terminal,
            )
            for hold in insertion.keys
        ],
        more,
        [_kin(job_id, kin) for job_id, kin in insertion.kin.items()],
    )
    ids = [job.id for job in jobs]
    return [_encode(head), *ids, *runs, *stored, *_edges(insertion.edges)]


def _runs(jobs: Sequence[Job]) -> Iterable[Sequence[Job]]:
    """Those one after the other that are alike in all but id, payload and event."""
    if len(jobs) == 1:
        return (jobs,)
    return (list(run) for _, run in groupby(jobs, common_fields))


def _run(job: Job, jobs: int, lanes: dict[str, int]) -> bytes:
    """`lanes`: the names of those that jobs are in, and the place of each in that list."""
    names = pack_lane(job.tenant, job.queue, job.type, job.priority, job.limit_key)
    return _SPEC.pack(
        jobs,
        lanes.setdefault(names, len(lanes) + 1),
        STATE_BYTE[job.state],
        job.failures,
        position_us(job),
        us_or_none(job.expires_at),
        (_HAS_TAGS if job.tags else 0)
        | (_IS_SPAWNED if job.parent_id else 0)
        | (_HAS_WORKER if job.assignee else 0),
    )


def _edges(edges: Sequence[Edge]) -> list[Argument]:
    flat: list[Any] = [
        (edge.parent_id, edge.child_id, str(edge.kind), _code(edge.outcome), edge.seen)
        for edge in edges
    ]
    return [
        _encode(flat[start : start + _EDGES_PER_ARGUMENT])
        for start in range(0, len(flat), _EDGES_PER_ARGUMENT)
    ]


def _kin(job_id: str, kin: Kin) -> tuple[Any, ...]:
    return (
        job_id,
        *(False if value is None else value for value in (kin.version, kin.parents_max)),
        *(False if ids is None else list(ids) for ids in (kin.joins, kin.spawned)),
    )


def _code(outcome: State | None) -> str | bool:
    """False rather than nothing: a hole would end a list in Lua."""
    return False if outcome is None else STATE_CODE[outcome]
