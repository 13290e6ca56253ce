"""Inserting: one statement that stores all or raises, then (only then) a look at what was in its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from msgspec.structs import replace

from headrace.errors import Contention
from headrace.lifecycle import lease_holds
from headrace.model import Edge, Event, Job
from headrace.stores.base import Clash, Fence, Inserted, Insertion, KeyHold, Kin
from headrace.stores.postgres import read
from headrace.stores.postgres.errors import Violated
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import Column, column, storable, storable_or_none

_TRIES = 20
_MICROSECOND = timedelta(microseconds=1)


async def insert(session: Session, lanes: Lanes, insertion: Insertion) -> Inserted | Clash:
    jobs = insertion.jobs
    arguments = [
        insertion.now,
        session.is_callers,
        *_fence(insertion.fence),
        [storable(parent) for parent in insertion.parents],
        list(insertion.parents.values()),
        *_kin(insertion.kin),
        *_jobs(jobs, await lanes.of(jobs)),
        *_events(insertion.events),
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
            return Inserted([replace(job, seq=seq) for job, seq in zip(jobs, seqs, strict=True)])
    # Something stood in the way each time, and was gone each time when we looked for it.
    raise Contention("the jobs kept clashing with other writes; nothing was stored") from reason


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
        [None if one.joins is None else _array_literal(one.joins) for one in kin.values()],
        [None if one.spawned is None else _array_literal(one.spawned) for one in kin.values()],
    ]


def _jobs(jobs: Sequence[Job], lanes: list[int]) -> list[Column]:
    """One list per column, in the order of insert.sql."""
    return [
        [job.id for job in jobs],
        column([*lanes]),
        column([_array_literal(job.tags) for job in jobs]),
        column([job.created_at for job in jobs]),
        column([job.key for job in jobs]),
        column([job.previous_id for job in jobs]),
        column([job.parent_id for job in jobs]),
        column([job.correlation_id for job in jobs]),
        column([job.callback_url for job in jobs]),
        column([job.depth for job in jobs]),
        column([job.max_attempts for job in jobs]),
        column([job.lease_seconds for job in jobs]),
        column([us_or_none(job.lease_seconds) for job in jobs]),
        column([job.timeout_seconds for job in jobs]),
        column([job.expires_at for job in jobs]),
        column([job.backoff_json for job in jobs]),
        column([job.payload_json for job in jobs]),
        column([job.state for job in jobs]),
        column([job.version for job in jobs]),
        column([job.run_at for job in jobs]),
        column([job.updated_at for job in jobs]),
        column([job.attempt for job in jobs]),
        column([job.failures for job in jobs]),
        column([job.losses for job in jobs]),
        column([job.token for job in jobs]),
        column([job.lease_until for job in jobs]),
        column([job.assignee for job in jobs]),
        column([job.assigned_at for job in jobs]),
        column([job.scheduled_at for job in jobs]),
        column([job.started_at for job in jobs]),
        column([job.last_failed_at for job in jobs]),
        column([job.finalized_at for job in jobs]),
        column([None if job.failure is None else storable(job.failure.message) for job in jobs]),
        column([None if job.failure is None else job.failure.category for job in jobs]),
        column(
            [None if job.failure is None else storable_or_none(job.failure.code) for job in jobs]
        ),
        column([job.result_json for job in jobs]),
        column([job.progress for job in jobs]),
        column([job.progress_note for job in jobs]),
        column([job.checkpoint_json for job in jobs]),
        column([job.log_json for job in jobs]),
    ]


def _events(events: Sequence[Event]) -> list[Column]:
    return [
        column([event.at for event in events]),
        column([event.kind for event in events]),
        column([event.payload_bytes for event in events]),
        column([event.detail_json for event in events]),
    ]


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


def us_or_none(seconds: float | None) -> int | None:
    """Rounded as Python rounds a duration, so that a claim adds exactly what the lifecycle adds."""
    return None if seconds is None else timedelta(seconds=seconds) // _MICROSECOND


def _array_literal(tags: Sequence[str]) -> str:
    """A list of texts as one text: an array of arrays of different lengths cannot be sent."""
    if not tags:
        return "{}"
    quoted = ('"' + tag.replace("\\", "\\\\").replace('"', '\\"') + '"' for tag in tags)
    return "{" + ",".join(quoted) + "}"
