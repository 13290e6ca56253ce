"""Inserting: one statement that stores all or raises, then (only then) a look at what was in its way."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from headrace.errors import Contention
from headrace.lifecycle import lease_holds
from headrace.model import Edge, Event, Job
from headrace.stores.base import Clash, Fence, Inserted, Insertion, KeyHold, Kin
from headrace.stores.codec import Dialect, lists_writer, writer
from headrace.stores.columns import EVENT, Kind, named
from headrace.stores.postgres import read
from headrace.stores.postgres.columns import ALONE, FRESH, INPUTS
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.copying import copy_rows
from headrace.stores.postgres.errors import Violated
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.new_rows import NewRows, are_plain
from headrace.stores.postgres.session import PoolSession, Session
from headrace.stores.postgres.values import (
    Column,
    array_literal,
    column,
    storable,
    us_or_none,
)
from headrace.stores.postgres.wait import Hint

_TRIES = 20
_NO_HINT = (None, None)
_DIALECT = Dialect(writes={Kind.TEXTS: array_literal, Kind.FREE_TEXT: storable})
_OF_JOB = [one for one in INPUTS if one.field or one.name in ("lane", "lease_us")]
_OF_EVENT = named(EVENT, "at", "kind", "payload_bytes", "detail")
_lists = lists_writer(_OF_JOB, dialect=_DIALECT, given=["lane", "lease_us"])
_event_lists = lists_writer(_OF_EVENT, dialect=_DIALECT)
_row = writer(
    [one for one in _OF_JOB if one in ALONE], dialect=_DIALECT, given=["lane", "lease_us"]
)
_event_row = writer(_OF_EVENT, dialect=_DIALECT)
COPIED_MIN = 2000
"""With fewer jobs, the round trips of COPY cost more than it saves."""
IN_TIME_MAX = 10_000
"""So many are copied within moments. Of more, nobody knows when they commit: see pick_jobs."""


async def insert(
    session: Session, lanes: Lanes, insertion: Insertion, hint: Hint | None = None
) -> Inserted | Clash:
    """`hint`: what is told to whoever waits for jobs, as the insertion commits."""
    jobs = insertion.jobs
    if isinstance(session, PoolSession) and are_plain(insertion):
        with contextlib.suppress(Violated):  # stored already: the statement below says which
            if len(jobs) == 1:
                return Inserted(_numbered(jobs, await _alone(session, lanes, insertion, hint)))
            if len(jobs) >= COPIED_MIN:
                return Inserted(_numbered(jobs, await _copied(session, lanes, insertion, hint)))
    arguments = [
        insertion.now,
        session.is_callers,
        *(hint or _NO_HINT),
        *_fence(insertion.fence),
        [storable(parent) for parent in insertion.parents],
        list(insertion.parents.values()),
        *_kin(insertion.kin),
        *_jobs(jobs, await lanes.of(jobs), insertion.events),
        *_tags(jobs),
        *_edges(insertion.edges),
        *_keys(insertion.keys),
    ]
    for _ in range(_TRIES):
        try:
            ((seqs,),) = await session.write("insert", *arguments)
        except Violated as violated:
            clash = await _clash(session, lanes, insertion)
            if clash is not None:
                return clash
            reason = violated
        else:
            return Inserted(_numbered(jobs, seqs))
    # Something stood in the way each time, and was gone each time when we looked for it.
    raise Contention("the jobs kept clashing with other writes; nothing was stored") from reason


def _numbered(jobs: Sequence[Job], seqs: Iterable[int]) -> list[Job]:
    return [replace(job, seq=seq) for job, seq in zip(jobs, seqs, strict=True)]


async def _alone(
    session: Session, lanes: Lanes, insertion: Insertion, hint: Hint | None
) -> Iterable[int]:
    (job,), (event,) = insertion.jobs, insertion.events
    lane, lease_us = await lanes.of([job]), us_or_none(job.lease_seconds)
    ((seq,),) = await session.write(
        "insert_alone", *_row(job, *lane, lease_us), *_event_row(event), *(hint or _NO_HINT)
    )
    return (seq,)


async def _copied(
    session: PoolSession, lanes: Lanes, insertion: Insertion, hint: Hint | None
) -> Iterable[int]:
    """The seqs of plain new jobs, that are stored by COPY."""
    jobs = insertion.jobs
    of_jobs = await lanes.of(jobs)

    async def work(connection: Connection) -> bytes:
        query = session.sql.query("load_seqs")
        seqs, in_time = await connection.fetchrow(query, len(jobs))
        early = [
            job.run_at < max(job.created_at, in_time) or len(jobs) > IN_TIME_MAX for job in jobs
        ]
        rows = NewRows(jobs, insertion.events, of_jobs, seqs, early)
        async with connection.transaction():
            for table, columns in FRESH.items():
                await copy_rows(
                    connection, table, list(columns), [rows.of(table)], schema=session.sql.schema
                )
            if hint is not None:
                await connection.fetch(session.sql.query("notify_too"), *hint)
        return bytes(seqs)

    seqs = await session.write_by(work)
    return struct.unpack(f">{len(jobs)}q", seqs)


async def _clash(session: Session, lanes: Lanes, insertion: Insertion) -> Clash | None:
    """The first kind of clash, if there still is one, in the order fence, parents, kin, ids, keys."""
    fence, now = insertion.fence, insertion.now
    if fence is not None:
        job = (await read.get(session, lanes, [fence.job_id])).get(fence.job_id)
        if job is None or job.token != fence.token or not lease_holds(job, now):
            return Clash(fence=True)
    if insertion.parents:
        found = await read.get(session, lanes, list(insertion.parents))
        moved = [
            parent_id
            for parent_id, outcome in insertion.parents.items()
            if (parent := found.get(parent_id)) is None
            or (parent.state if parent.is_terminal else None) is not outcome
        ]
        if moved:
            return Clash(parents=moved)
    if insertion.kin:
        grown = await session.read("insert_kin", *_kin(insertion.kin))
        if grown:
            return Clash(kin=[job_id for (job_id,) in grown])
    stored = await read.seqs_of(session, [job.id for job in insertion.jobs])
    if stored:
        return Clash(ids=[job.id for job in insertion.jobs if job.id in stored])
    scopes = [hold.scope for hold in insertion.keys]
    held = await read.keyed(session, scopes, now) if scopes else {}
    return Clash(keys=[scope for scope in scopes if scope in held]) if held else None


def _fence(fence: Fence | None) -> tuple[str | None, str | None]:
    return (None, None) if fence is None else (storable(fence.job_id), storable(fence.token))


def _kin(kin: Mapping[str, Kin]) -> list[Column]:
    return [
        [storable(job_id) for job_id in kin],
        [one.version for one in kin.values()],
        [one.parents_max for one in kin.values()],
        [None if one.joins is None else array_literal(one.joins) for one in kin.values()],
        [None if one.spawned is None else array_literal(one.spawned) for one in kin.values()],
    ]


def _jobs(jobs: Sequence[Job], lanes: list[int], events: Sequence[Event]) -> list[Column]:
    """One list for each of INPUTS."""
    lease_us = [us_or_none(job.lease_seconds) for job in jobs]
    return [*map(column, (*_lists(jobs, lanes, lease_us), *_event_lists(events)))]


def _tags(jobs: Sequence[Job]) -> list[Column]:
    tagged = [(position, tag) for position, job in enumerate(jobs, start=1) for tag in job.tags]
    return [[position for position, _ in tagged], [tag for _, tag in tagged]]


def _edges(given: Sequence[Edge]) -> list[Column]:
    """One edge per pair: the last of several counts."""
    edges = {(edge.parent_id, edge.child_id): edge for edge in given}.values()
    return [
        [edge.parent_id for edge in edges],
        [edge.child_id for edge in edges],
        [edge.kind for edge in edges],
        [edge.outcome for edge in edges],
        [edge.seen for edge in edges],
    ]


def _keys(holds: Iterable[KeyHold]) -> list[Column]:
    ordered = sorted(
        holds,
        key=lambda hold: (hold.scope.tenant, hold.scope.queue, hold.scope.type, hold.scope.key),
    )
    return [
        [hold.scope.tenant for hold in ordered],
        [hold.scope.queue for hold in ordered],
        [hold.scope.type for hold in ordered],
        [hold.scope.key for hold in ordered],
        [hold.job_id for hold in ordered],
        [hold.expires_at for hold in ordered],
        [hold.released_when_terminal for hold in ordered],
    ]
