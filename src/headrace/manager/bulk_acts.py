"""Acts on many jobs that go on whoever dies: what is asked for and how far it is, in a record.

Any maintenance carries an act on, chunk by chunk. A chunk takes two writes: first the ids that it is about,
then what became of them. Each act shows on a job that it was done, so a chunk that was cut off is looked
through and finished, by whoever comes next, and every job is counted once.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from headrace import codec, envelope, validation
from headrace.crypto import Place
from headrace.errors import (
    BulkActNotFound,
    CannotDecrypt,
    HeadraceError,
    InvalidInput,
    QueueFull,
    StoreCorrupt,
    StoreError,
)
from headrace.limits import Rate
from headrace.manager import bulk
from headrace.manager.bulk import Bulk, Deed, ErrorGroup, Step
from headrace.manager.context import Context
from headrace.manager.matching import Matching
from headrace.manager.records import change_record
from headrace.model import Job, State, new_id
from headrace.policy import CancelMode
from headrace.redaction import Redacted
from headrace.stores.base import Record

OPEN = "bulk"
ENDED = "bulk-ended"
KEEP = timedelta(days=30)
"""For how long acts that have ended can be asked for."""
ENDED_MAX = 1000
CHUNKS_PER_RUN = 20
"""Of one act, before other acts and other maintenance have their turn."""
GROUPS_MAX = 100
PLAN_JOBS = 100_000
FULL_SECONDS = 5.0
"""A queue that takes no more jobs is asked again after this."""
_MESSAGE_CHARS_MAX = 1000


class Act(enum.StrEnum):
    """What is done to each of the jobs."""

    CANCEL = "cancel"
    REDRIVE = "redrive"
    DELETE = "delete"
    PRIORITY = "priority"


class Progress(enum.StrEnum):
    RUNNING = "running"
    STOPPING = "stopping"
    """It was cancelled, and ends with the chunk that it is at."""
    DONE = "done"
    CANCELLED = "cancelled"
    """It was cancelled: what was done by then stays done."""
    FAILED = "failed"


class Where(Redacted, frozen=True, kw_only=True):
    """The filter of an act, as it is stored."""

    queues: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    states: tuple[State, ...] | None = None
    tags: tuple[str, ...] = ()
    codes: tuple[str, ...] | None = None
    error: str | None = None
    error_group: str | None = None
    since: datetime | None = None
    before: datetime | None = None

    def matching(self) -> Matching:
        return Matching(**{name: getattr(self, name) for name in self.__struct_fields__})


class BulkAct(Redacted, frozen=True, kw_only=True):
    """An act on all jobs that match, and how far it is."""

    id: str
    act: Act
    where: Where
    tenant: str | None
    """Whose jobs it is about. None: those of all."""
    actor: str | None = None
    """Who asked for it."""
    created_at: datetime
    progress: Progress = Progress.RUNNING
    ended_at: datetime | None = None
    done: int = 0
    left: Mapping[str, int] = {}
    """How many were left as they were, by the reason."""
    groups: tuple[ErrorGroup, ...] = ()
    """Those that were done, the largest first; no more than a hundred."""
    expected: int | None = None
    """How many jobs it would be about, as far as whoever asked for it had counted."""
    error: str | None = None
    """Why it failed."""
    rate: Rate | None = None
    mode: CancelMode | None = None
    reason: str | None = None
    priority: int | None = None
    is_patched: bool = False
    """The jobs it makes get a changed payload."""
    updated_at: datetime

    @property
    def tag(self) -> str:
        """What the jobs that a redrive makes are tagged with."""
        return f"bulk={self.id}"

    @property
    def has_ended(self) -> bool:
        return self.progress not in (Progress.RUNNING, Progress.STOPPING)


class _State(Redacted, frozen=True, kw_only=True):
    """What only those need to know who carry it on."""

    told: BulkAct
    newest_seq: int
    """Jobs that were submitted later are not meant."""
    after: int | None = None
    """Where in the order of submission the next chunk begins."""
    is_last: bool = False
    """There is no chunk after this one."""
    chunk: tuple[str, ...] = ()
    """What is being done to these is not counted yet."""
    next_at: datetime | None = None
    """When the rate allows for the next chunk."""
    data: bytes | None = None
    """The patch: JSON, sealed where there is a key ring."""


class BulkRound(msgspec.Struct, frozen=True, kw_only=True):
    """What one run did."""

    jobs: int = 0
    next_at: datetime | None = None
    """When there is more to be done. None: nothing is known of."""


# --- asking for it -------------------------------------------------------------------------------


async def plan(context: Context, act: Act, where: Matching, priority: int | None) -> Bulk:
    """What it would be done to now, counted up to a limit."""
    deed = _deed(context, _asked(context, act, where, priority=priority), UNSET)
    return await bulk.go_through(context, deed, dry_run=True, jobs_max=PLAN_JOBS)


async def start(
    context: Context,
    act: Act,
    where: Matching,
    *,
    rate: Rate | None,
    mode: CancelMode | None,
    reason: str | None,
    priority: int | None,
    patch: Any | UnsetType,
    expected: int | None,
) -> BulkAct:
    await context.synchronise()
    told = _asked(
        context, act, where, rate=rate, mode=mode, reason=reason, priority=priority, patch=patch
    )
    told = replace(told, expected=expected)
    _deed(context, told, patch)  # raises what is wrong with it
    newest = await bulk.newest_seq(context)
    state = _State(told=told, newest_seq=newest, data=_sealed(context, told, patch))
    record = Record(kind=OPEN, name=told.id, body_json=msgspec.json.encode(state))
    await context.store.put_record(record)
    return told


async def find_all(context: Context) -> tuple[BulkAct, ...]:
    """Those that go on and those that have ended, the newest first."""
    found: dict[str, BulkAct] = {}
    for kind in (OPEN, ENDED):
        for record in await context.store.records(kind):
            told = _read(record).told
            if context.tenant in (None, told.tenant):
                found[told.id] = told
    return tuple(sorted(found.values(), key=lambda one: (one.created_at, one.id), reverse=True))


async def find(context: Context, act_id: str) -> BulkAct:
    for kind in (ENDED, OPEN):
        for record in await context.store.records(kind, [act_id]):
            told = _read(record).told
            if context.tenant in (None, told.tenant):
                return told
    raise BulkActNotFound(act_id)


async def cancel(context: Context, act_id: str) -> BulkAct:
    """It ends with the chunk that it is at; one that has ended stays as it is."""
    told = await find(context, act_id)
    if told.has_ended:
        return told

    def decide(record: Record) -> tuple[Record | None, None]:
        if not record.version:
            return record, None
        state = _read(record)
        stopping = replace(state.told, progress=Progress.STOPPING, updated_at=context.now())
        return _written(record, replace(state, told=stopping)), None

    await change_record(context.store, OPEN, act_id, decide, what=f"bulk act {act_id}")
    await run(context, act_id)
    return await find(context, act_id)


# --- carrying it on ------------------------------------------------------------------------------


async def run(context: Context, act_id: str | None = None) -> BulkRound:
    """Some chunks of each act that goes on, or of this one."""
    await context.synchronise()
    jobs, times = 0, []
    for found in await context.store.records(OPEN, None if act_id is None else [act_id]):
        record, state = found, _read(found)
        if context.tenant not in (None, state.told.tenant):
            continue
        own = context.of_tenant(state.told.tenant)
        for _ in range(CHUNKS_PER_RUN):
            is_early = state.next_at is not None and state.next_at > context.now()
            if is_early and state.told.progress is Progress.RUNNING:
                break
            try:
                moved = await _step(own, record, state)
            except CannotDecrypt:
                break  # for those who have the key
            if moved is None:
                break  # somebody else carries it on
            jobs += moved.told.done - state.told.done
            record, state = replace(record, version=record.version + 1), moved
            if state.told.has_ended:
                await _sweep(context)
                break
        if not state.told.has_ended:
            times.append(state.next_at or context.now())
    return BulkRound(jobs=jobs, next_at=min(times, default=None))


async def _sweep(context: Context) -> None:
    """Forget acts that ended long ago."""
    ended = [(record, _read(record).told) for record in await context.store.records(ENDED)]
    ended.sort(key=lambda one: one[1].updated_at, reverse=True)
    for place, (record, told) in enumerate(ended):
        if place >= ENDED_MAX or context.now() - told.updated_at > KEEP:
            await context.store.delete_record(record)


async def _step(context: Context, record: Record, state: _State) -> _State | None:
    """One write further: the next chunk chosen, done and counted, or the end. None: it was overtaken."""
    try:
        deed = _deed(context, state.told, _opened(context, state))
        if state.chunk:
            moved = await _finish_chunk(context, state, deed)
        elif state.is_last or state.told.progress is Progress.STOPPING:
            stopped = state.told.progress is Progress.STOPPING
            return await _end(
                context, record, state, Progress.CANCELLED if stopped else Progress.DONE
            )
        else:
            moved = await _choose_chunk(context, state, deed)
    except QueueFull:
        moved = replace(state, next_at=context.now() + timedelta(seconds=FULL_SECONDS))
    except (StoreError, CannotDecrypt):
        raise
    except HeadraceError as error:
        # The same would come again: nothing that has been done is undone.
        failed = replace(state.told, error=error.message[:_MESSAGE_CHARS_MAX])
        return await _end(context, record, replace(state, told=failed), Progress.FAILED)
    moved = replace(moved, told=replace(moved.told, updated_at=context.now()))
    return moved if await context.store.put_record(_written(record, moved)) else None


async def _choose_chunk(context: Context, state: _State, deed: Deed) -> _State:
    jobs, after = await bulk.next_page(context, deed.criteria, state.after, state.newest_seq)
    most = _at_once(state.told.rate)
    if len(jobs) > most:
        jobs = jobs[:most]
        after = jobs[-1].seq
    readable = [job for job in jobs if not deed.criteria.is_withheld(job)]
    willing, left = await deed.sort(readable)
    told = _left(state.told, {"encrypted": len(jobs) - len(readable)})
    return replace(
        state,
        told=_left(told, left),
        after=after,
        is_last=after is None,
        chunk=tuple(job.id for job in willing),
    )


def _at_once(rate: Rate | None) -> int:
    """At a rate, what comes in a second."""
    if rate is None:
        return bulk.STEP_JOBS
    return max(1, min(bulk.STEP_JOBS, int(rate.jobs / rate.per_seconds)))


async def _finish_chunk(context: Context, state: _State, deed: Deed) -> _State:
    """Do to the chunk what was not done to it yet, and count all of it."""
    jobs = await context.read(state.chunk)
    before = await deed.done_before(state.chunk)
    meant = [
        jobs[job_id]
        for job_id in state.chunk
        if job_id in jobs and job_id not in before and deed.criteria.means(jobs[job_id])
    ]
    willing, left = await deed.sort(meant) if meant else ([], {})
    step = await _do(deed, willing) if willing else Step(())
    settled = len(before) + len(step.done) + sum(step.left.values()) + sum(left.values())
    told = _left(state.told, left)
    told = _left(told, step.left)
    told = _left(told, {bulk.CHANGED: len(state.chunk) - settled})
    done = [*step.done, *(jobs[job_id] for job_id in sorted(before) if job_id in jobs)]
    told = replace(
        told,
        done=told.done + len(before) + len(step.done),
        groups=_with_groups(told.groups, done),
    )
    return replace(state, told=told, chunk=(), next_at=_next_at(context, state, len(state.chunk)))


async def _do(deed: Deed, jobs: Sequence[Job]) -> Step:
    """To all at once or, where one of them stands in the way of the others, one by one."""
    try:
        return await deed.do(jobs)
    except (StoreError, QueueFull):
        raise
    except HeadraceError:
        if len(jobs) == 1:
            raise
    done: list[Job] = []
    left: dict[str, int] = {}
    for job in jobs:
        try:
            step = await deed.do([job])
        except (StoreError, QueueFull):
            raise
        except HeadraceError as error:
            step = Step((), {error.code: 1})
        done += step.done
        left = {
            reason: left.get(reason, 0) + step.left.get(reason, 0) for reason in {*left, *step.left}
        }
    return Step(done, left)


async def _end(
    context: Context, record: Record, state: _State, progress: Progress
) -> _State | None:
    """Among those that have ended first: one that is among both has ended."""
    now = context.now()
    told = replace(state.told, progress=progress, ended_at=now, updated_at=now)
    ended = replace(state, told=told, chunk=(), data=None)
    await context.store.put_record(
        Record(kind=ENDED, name=record.name, body_json=msgspec.json.encode(ended))
    )
    return ended if await context.store.delete_record(record) else None


def _next_at(context: Context, state: _State, jobs: int) -> datetime | None:
    rate = state.told.rate
    if rate is None:
        return None
    now = context.now()
    begun = max(state.next_at or now, now - timedelta(seconds=1))
    return begun + timedelta(seconds=jobs * rate.per_seconds / rate.jobs)


# --- what it is ----------------------------------------------------------------------------------


def _asked(
    context: Context,
    act: Act,
    where: Matching,
    *,
    rate: Rate | None = None,
    mode: CancelMode | None = None,
    reason: str | None = None,
    priority: int | None = None,
    patch: Any | UnsetType = UNSET,
) -> BulkAct:
    """Checked: only what is of use to the act may be said."""
    own = {
        Act.CANCEL: {"mode", "reason"},
        Act.REDRIVE: {"patch"},
        Act.PRIORITY: {"priority"},
        Act.DELETE: set(),
    }[act]
    given = {"mode": mode, "reason": reason, "priority": priority, "patch": patch}
    for name, value in given.items():
        if value not in (None, UNSET) and name not in own:
            raise InvalidInput(
                f"{name} is of no use to {act}: leave it out; {validation.UNCHANGED}"
            )
    if act is Act.PRIORITY and priority is None:
        raise InvalidInput(f"which priority was not said; {validation.UNCHANGED}")
    now = context.now()
    return BulkAct(
        id=new_id(),
        act=act,
        where=stored(where),
        tenant=context.tenant,
        actor=context.actor,
        created_at=now,
        updated_at=now,
        rate=rate,
        mode=mode,
        reason=reason,
        priority=priority,
        is_patched=patch is not UNSET,
    )


def stored(where: Matching) -> Where:
    """The filter with its lists gone through: what is wrong with them is said by whoever checks it."""
    if not isinstance(where, Matching):
        raise InvalidInput(f"{where!r} is not a Matching; {validation.UNCHANGED}")
    return Where(
        queues=validation.check_names(where.queues, "queue"),
        types=validation.check_names(where.types, "type"),
        states=None
        if where.states is None
        else tuple(validation.check_word(one, State) for one in where.states),
        tags=validation.check_tags(where.tags),
        codes=validation.check_names(where.codes, "code"),
        error=where.error,
        error_group=where.error_group,
        since=where.since,
        before=where.before,
    )


def _deed(context: Context, told: BulkAct, patch: Any | UnsetType) -> Deed:
    where = told.where.matching()
    match told.act:
        case Act.CANCEL:
            return bulk.Cancel(context, where, told.mode, told.reason)
        case Act.DELETE:
            return bulk.Delete(context, where)
        case Act.REDRIVE:
            return bulk.Redrive(context, where, tag=told.tag, patch=patch)
        case Act.PRIORITY:
            assert told.priority is not None  # checked when it was asked for
            return bulk.Prioritise(context, where, told.priority)


def _left(told: BulkAct, left: Mapping[str, int]) -> BulkAct:
    fresh = {reason: count for reason, count in left.items() if count}
    if not fresh:
        return told
    both = {**told.left}
    for reason, count in fresh.items():
        both[reason] = both.get(reason, 0) + count
    return replace(told, left=both)


def _with_groups(known: tuple[ErrorGroup, ...], done: Sequence[Job]) -> tuple[ErrorGroup, ...]:
    groups = {replace(one, jobs=0, example=""): one for one in known}
    for job in done:
        key = bulk.group_of(job)
        one = groups.get(key)
        if one is None and len(groups) >= GROUPS_MAX:
            continue
        groups[key] = replace(one or key, jobs=(one or key).jobs + 1, example=job.id)
    return tuple(sorted(groups.values(), key=lambda one: -one.jobs))


def _sealed(context: Context, told: BulkAct, patch: Any | UnsetType) -> bytes | None:
    if patch is UNSET:
        return None
    encoded = codec.encode(patch, what="patch")
    keys = context.sealing.keys
    return encoded if keys is None else envelope.pack(keys.seal(encoded, _place(told)))


def _opened(context: Context, state: _State) -> Any | UnsetType:
    if state.data is None:
        return UNSET
    if not envelope.is_sealed(state.data):
        return codec.decode(state.data)
    body = envelope.unpack(state.data)
    if context.sealing.keys is None:
        raise CannotDecrypt(
            f"the patch of bulk act {state.told.id} is encrypted with key {body.key}, and there is no key "
            "ring; it goes on where there is one",
            key_id=body.key,
            why="there is no key ring",
        )
    return codec.decode(context.sealing.keys.open(body, _place(state.told)))


def _place(told: BulkAct) -> Place:
    return Place(told.tenant or "*", told.id, OPEN)


def _written(record: Record, state: _State) -> Record:
    return replace(record, body_json=msgspec.json.encode(state))


def _read(record: Record) -> _State:
    try:
        return msgspec.json.decode(record.body_json, type=_State)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"bulk act {record.name} cannot be read ({error}); it was left as it is"
        ) from error
