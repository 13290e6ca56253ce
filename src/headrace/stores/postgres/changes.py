"""Writing what happened to stored jobs: changes, heartbeats, notes, rewrites, deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import asdict, replace

from headrace.model import CLAIMABLE, TERMINAL, Change, DependencyKind, Edge
from headrace.stores.base import Commit, Committed, Extended, Fence, Note, Rewrite
from headrace.stores.postgres import reading
from headrace.stores.postgres.columns import Column, column, transposed
from headrace.stores.postgres.lanes import Lanes, lane_key
from headrace.stores.postgres.rows import STATE_OF
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.texts import storable, storable_or_none

NO_LANE = 0
"""The number of no lane."""


async def commit(session: Session, lanes: Lanes, wanted: Commit) -> Committed:
    changes = wanted.changes
    if not changes and not wanted.seen:
        return Committed([])
    seqs = await seqs_of(session, changes)
    lanes_read = await lanes.known([lane_key(change.before) for change in changes])
    rows = await session.write(
        "commit",
        wanted.together,
        wanted.leases_as_read,
        [*seqs],
        *_standings(changes, lanes_read),
        *_changes(changes),
        *_spent_keys(changes),
        *await _tags(lanes, changes, seqs),
        [parent_id for parent_id, _ in wanted.seen],
        [child_id for _, child_id in wanted.seen],
    )
    ((applied, parents, children, kinds, outcomes),) = rows
    written = frozenset(applied or ())
    return Committed(
        [position in written for position in range(1, len(changes) + 1)],
        [
            Edge(parent_id, child_id, DependencyKind(kind), STATE_OF[outcome])
            for parent_id, child_id, kind, outcome in zip(
                parents or (), children or (), kinds or (), outcomes or (), strict=True
            )
        ],
    )


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


async def rewrite(session: Session, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Those of the same job at the same version count as one: what the last of them gives is written."""
    merged: dict[tuple[str, int], Rewrite] = {}
    for one in rewrites:
        place = (one.job_id, one.version)
        merged[place] = _over(merged.get(place), one)
    if not merged:
        return []
    ((seqs,),) = await session.write(
        "rewrite",
        *transposed(
            (
                (
                    storable(one.job_id),
                    one.version,
                    one.payload_json,
                    one.result_json,
                    one.checkpoint_json,
                    one.log_json,
                    storable_or_none(one.failure_message),
                )
                for one in merged.values()
            ),
            7,
        ),
    )
    written = {place: seq is not None for place, seq in zip(merged, seqs, strict=True)}
    return [written[one.job_id, one.version] for one in rewrites]


def _over(first: Rewrite | None, then: Rewrite) -> Rewrite:
    if first is None:
        return then
    given = {name: value for name, value in asdict(then).items() if value is not None}
    return replace(first, **given)


async def delete(session: Session, jobs: Mapping[str, int]) -> bool:
    if not jobs:
        return True
    ((deleted,),) = await session.write(
        "delete", [storable(job_id) for job_id in jobs], list(jobs.values())
    )
    return bool(deleted)


async def seqs_of(session: Session, changes: Sequence[Change]) -> list[int]:
    """The seqs of the jobs; a job that was not read from the store is looked up by its id."""
    unread = [change.before.id for change in changes if not change.before.seq]
    known = await reading.seqs_of(session, unread) if unread else {}
    return [change.before.seq or known.get(change.before.id, 0) for change in changes]


def _standings(changes: Sequence[Change], lanes_read: Sequence[int | None]) -> list[Column]:
    """What the rows are compared with: one list per column, in the order of commit.sql."""
    before = [change.before for change in changes]
    return [
        [storable(job.id) for job in before],
        column([NO_LANE if lane is None else lane for lane in lanes_read]),
        column([job.version for job in before]),
        column([job.state for job in before]),
        column([storable_or_none(job.token) for job in before]),
        column([storable_or_none(job.assignee) for job in before]),
        column([job.attempt for job in before]),
        column([job.failures for job in before]),
        column([job.losses for job in before]),
        column([job.lease_until for job in before]),
    ]


def _changes(changes: Sequence[Change]) -> list[Column]:
    """One list per column, in the order of commit.sql."""
    after = [change.after for change in changes]
    events = [change.event for change in changes]
    return [
        column([job.state for job in after]),
        column([job.version for job in after]),
        column([job.run_at for job in after]),
        column([job.updated_at for job in after]),
        column([job.attempt for job in after]),
        column([job.failures for job in after]),
        column([job.losses for job in after]),
        column([job.token for job in after]),
        column([job.lease_until for job in after]),
        column([job.assignee for job in after]),
        column([job.assigned_at for job in after]),
        column([job.scheduled_at for job in after]),
        column([job.started_at for job in after]),
        column([job.last_failed_at for job in after]),
        column([job.finalized_at for job in after]),
        column([None if job.failure is None else storable(job.failure.message) for job in after]),
        column([None if job.failure is None else job.failure.category for job in after]),
        column(
            [None if job.failure is None else storable_or_none(job.failure.code) for job in after]
        ),
        column([job.result_json for job in after]),
        column([event.kind for event in events]),
        column([event.category for event in events]),
        column([storable_or_none(event.code) for event in events]),
        column([storable_or_none(event.message) for event in events]),
        column([event.wait_us for event in events]),
        column([event.run_us for event in events]),
        column([event.result_bytes for event in events]),
    ]


def _spent_keys(changes: Sequence[Change]) -> list[Column]:
    ended = [
        change.after
        for change in changes
        if change.after.key is not None and change.after.state in TERMINAL
    ]
    return [
        [job.tenant for job in ended],
        [job.queue for job in ended],
        [job.type for job in ended],
        [job.key for job in ended],
        [job.id for job in ended],
    ]


async def _tags(lanes: Lanes, changes: Sequence[Change], seqs: Sequence[int]) -> list[Column]:
    """The tags of jobs that are claimable before or after: `ready_tags` follows them."""
    moved = [
        (change.before, seq)
        for change, seq in zip(changes, seqs, strict=True)
        if change.before.tags
        and (change.before.state in CLAIMABLE or change.after.state in CLAIMABLE)
    ]
    rows = [
        (seq, tag, lane, job.run_at if job.state in CLAIMABLE else None)
        for (job, seq), lane in zip(moved, await lanes.of([job for job, _ in moved]), strict=True)
        for tag in job.tags
    ]
    return transposed(rows, 4)
