"""Writing what happened to stored jobs, with their events."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model import CLAIMABLE, TERMINAL, Change, DependencyKind, Edge, State
from headrace.stores.base import Commit, Committed
from headrace.stores.codec import Dialect, lists_writer
from headrace.stores.columns import Kind
from headrace.stores.postgres import read
from headrace.stores.postgres.columns import READ, TOLD, WRITTEN
from headrace.stores.postgres.drivers import Row
from headrace.stores.postgres.lanes import Lanes, lane_key
from headrace.stores.postgres.rows import STATE_OF
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import (
    Column,
    column,
    storable,
    transposed,
)

NO_LANE = 0
"""The number of no lane."""
_WORDS = Dialect(writes={Kind.FREE_TEXT: storable})
_read = lists_writer(
    READ, dialect=Dialect(writes={Kind.TEXT: storable, Kind.FREE_TEXT: storable}), given=["lane"]
)
_written = lists_writer(WRITTEN, dialect=_WORDS)
_told = lists_writer(TOLD, dialect=_WORDS)


async def commit(session: Session, lanes: Lanes, wanted: Commit) -> Committed:
    changes = wanted.changes
    if not changes and not wanted.seen:
        return Committed([])
    if _are_plain_completions(wanted):
        rows = await _complete(session, lanes, changes)
    else:
        rows = await _commit(session, lanes, wanted)
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


def _are_plain_completions(wanted: Commit) -> bool:
    """Running jobs that completed, at one time: mostly all that a worker has to say."""
    if wanted.together or wanted.leases_as_read or wanted.seen:
        return False
    at = wanted.changes[0].after.updated_at
    return all(
        before.state is State.RUNNING
        and after.state is State.COMPLETED
        and after.updated_at == at
        and before.started_at is not None
        and after.failure is before.failure
        and before.token is not None
        and before.seq
        for before, after in ((change.before, change.after) for change in wanted.changes)
    )


async def _complete(session: Session, lanes: Lanes, changes: Sequence[Change]) -> Sequence[Row]:
    by_seq = sorted(
        (change.before.seq, position) for position, change in enumerate(changes, start=1)
    )
    ordered = [changes[position - 1] for _, position in by_seq]
    results = [change.after.result_json for change in ordered]
    return await session.write(
        "complete",
        changes[0].after.updated_at,
        [seq for seq, _ in by_seq],
        results if any(results) else [],
        [position for _, position in by_seq],
        *map(column, await _as_read(lanes, ordered)),
        *_spent_keys(changes),
    )


async def _commit(session: Session, lanes: Lanes, wanted: Commit) -> Sequence[Row]:
    changes = wanted.changes
    seqs = await seqs_of(session, changes)
    return await session.write(
        "commit",
        wanted.together,
        wanted.leases_as_read,
        [*seqs],
        *map(column, await _as_read(lanes, changes)),
        *map(column, _written([change.after for change in changes])),
        *map(column, _told([change.event for change in changes])),
        *_spent_keys(changes),
        *await _tags(lanes, changes, seqs),
        [parent_id for parent_id, _ in wanted.seen],
        [child_id for _, child_id in wanted.seen],
    )


async def seqs_of(session: Session, changes: Sequence[Change]) -> list[int]:
    """The seqs of the jobs; a job that was not read from the store is looked up by its id."""
    unread = [change.before.id for change in changes if not change.before.seq]
    known = await read.seqs_of(session, unread) if unread else {}
    return [change.before.seq or known.get(change.before.id, 0) for change in changes]


async def _as_read(lanes: Lanes, changes: Sequence[Change]) -> list[Column]:
    """One list for each column of READ."""
    known = await lanes.known([lane_key(change.before) for change in changes])
    numbers = [NO_LANE if lane is None else lane for lane in known]
    return _read([change.before for change in changes], numbers)


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
