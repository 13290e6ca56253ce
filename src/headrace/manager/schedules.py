"""Schedules: kept as records of the store, fired by whoever comes first.

Each tick is an idempotent submission, so any number of hosts may fire at once. The job goes in before
the schedule moves on: a crash in between repeats a submission that is then refused as a duplicate.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace import schedules
from headrace.errors import (
    CannotDecrypt,
    DuplicateJob,
    DuplicateSchedule,
    HeadraceError,
    InvalidBatch,
    InvalidSchedule,
    ScheduleNotFound,
    StoreCorrupt,
    StoreError,
)
from headrace.manager import submission
from headrace.manager.context import Context
from headrace.manager.records import Again, retried
from headrace.manager.schedule_records import (
    find_record,
    find_records,
    is_under_old_key,
    named,
    read,
    written,
)
from headrace.model import DEFAULT_TENANT, Job, new_id
from headrace.schedules import Schedule, tick_spec
from headrace.spec import JobSpec
from headrace.stores.base import Record

UPCOMING_MAX = 1000


class Unfired(msgspec.Struct, frozen=True):
    """A schedule that could not be fired. It is as it was, and is tried again in the next round."""

    name: str
    tenant: str
    error: HeadraceError


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """What one round made of the schedules."""

    jobs: tuple[Job, ...] = ()
    """New ones only: what another host had submitted already does not count."""
    next_due: datetime | None = None
    """When the next tick comes. None: there is nothing to wait for."""
    unfired: tuple[Unfired, ...] = ()


class Upcoming(msgspec.Struct, frozen=True, kw_only=True):
    """A tick that is to come."""

    at: datetime
    name: str
    tenant: str


async def add(context: Context, wanted: Schedule, *, replace: bool) -> Schedule:
    """Store it. One of the same name stays as it is: the same is the answer, another is refused."""
    submission.check(context, tick_spec(wanted, wanted.created_at), own_ids=True)

    async def once() -> Schedule:
        record = await find_record(context, wanted.name, wanted.tenant)
        stored = _replaceable(context, record) if replace else _stored(context, record)
        if stored is not None and schedules.is_same(stored, wanted):
            return stored
        if record.version > 0 and not replace:
            raise DuplicateSchedule(
                f"there is another schedule {wanted.name}, and it was left as it is: "
                "replace it, or choose another name"
            )
        new = wanted if stored is None else schedules.replaced(stored, wanted)
        if not await context.store.put_record(written(context, record, new)):
            raise Again
        return new

    return await retried(once, _contention(wanted.name))


async def peek(context: Context, wanted: Schedule) -> Schedule | None:
    """What is stored under its name. None, too, for what cannot be read."""
    return _replaceable(context, await find_record(context, wanted.name, wanted.tenant))


def told(schedule: Schedule | None) -> dict[str, Any] | None:
    """For the audit: all but what its jobs hold."""
    if schedule is None:
        return None
    job = schedule.job
    return {
        "when": msgspec.to_builtins(schedule.when),
        "type": job.type,
        "queue": job.queue,
        "misfire": schedule.misfire,
        "grace_seconds": schedule.grace_seconds,
    }


async def find_all(context: Context) -> tuple[Schedule, ...]:
    """Those of the manager's tenant, or of all, in order of tenant and name."""
    found = [read(context, record) for record in await find_records(context)]
    return tuple(sorted(found, key=lambda one: (one.tenant, one.name)))


async def change(context: Context, name: str, decide: Callable[[Schedule], Schedule]) -> Schedule:
    """The schedule after the change, or ScheduleNotFound."""

    async def once() -> Schedule:
        record = await find_record(context, name, _own_tenant(context))
        stored = _stored(context, record)
        if stored is None:
            raise ScheduleNotFound(name)
        new = decide(stored)
        if new != stored and not await context.store.put_record(written(context, record, new)):
            raise Again
        return new

    return await retried(once, _contention(name))


async def remove(context: Context, name: str) -> bool:
    """True if there was one, readable or not. The jobs it has submitted stay."""

    async def once() -> bool:
        record = await find_record(context, name, _own_tenant(context))
        if record.version and not await context.store.delete_record(record):
            raise Again
        return bool(record.version)

    return await retried(once, _contention(name))


async def upcoming(context: Context, count: int, name: str | None) -> tuple[Upcoming, ...]:
    """The next ticks of all schedules that are not paused, or of one, paused or not, the soonest first."""
    if name is None:
        meant = [one for one in await find_all(context) if not one.paused]
    else:
        meant = [await _find_one(context, name)]
    now = context.now()
    ticks = (
        Upcoming(at=at, name=one.name, tenant=one.tenant)
        for one in meant
        for at in schedules.upcoming(one, now, count)
    )
    return tuple(heapq.nsmallest(count, ticks, key=lambda tick: (tick.at, tick.tenant, tick.name)))


async def run_now(context: Context, name: str) -> Job:
    """Submit what the schedule submits, beside its ticks: none of those is touched. Each call makes a job."""
    await context.synchronise()
    schedule = await _find_one(context, name)
    spec = msgspec.structs.replace(tick_spec(schedule, context.now()), id=new_id(), run_at=None)
    submitted = await submission.submit(context, [spec], own_ids=True)
    return submitted.job


async def _find_one(context: Context, name: str) -> Schedule:
    stored = _stored(context, await find_record(context, name, _own_tenant(context)))
    if stored is None:
        raise ScheduleNotFound(name)
    return stored


async def fire(context: Context, limit: int) -> Fired:
    """One round: submit what is due, at most `limit` jobs; what is left comes with the next round."""
    await context.synchronise()
    jobs: list[Job] = []
    unfired: list[Unfired] = []
    due_times: list[datetime] = []
    for record in await find_records(context):
        if len(jobs) >= limit:
            break
        try:
            now = context.now()
            schedule = read(context, record)
            jobs += await _fire_one(context, record, schedule, now, limit - len(jobs))
            if not schedule.paused:
                due_times += schedules.upcoming(schedule, now)
        except HeadraceError as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreCorrupt):
                raise  # the store's trouble is no schedule's fault
            tenant, name = named(record)
            unfired.append(Unfired(name, tenant, error))
    if len(jobs) >= limit:
        due_times.append(context.now())  # there may be more
    return Fired(jobs=tuple(jobs), next_due=min(due_times, default=None), unfired=tuple(unfired))


async def _fire_one(
    context: Context, record: Record, schedule: Schedule, now: datetime, limit: int
) -> Sequence[Job]:
    due = schedules.due_ticks(schedule, now)
    if due.done_until is None:
        if is_under_old_key(context, record, schedule):
            await context.store.put_record(written(context, record, schedule))
        return ()
    ticks = due.ticks[:limit]
    jobs = await _submit(context, [tick_spec(schedule, tick) for tick in ticks])
    moved = msgspec.structs.replace(
        schedule,
        done_until=ticks[-1] if ticks else due.done_until,
        last_tick=ticks[-1] if ticks else schedule.last_tick,
    )
    # Whoever wrote it meanwhile has fired the same ticks, or changed the schedule: the next round sees.
    await context.store.put_record(written(context, record, moved))
    return jobs


async def _submit(context: Context, specs: Sequence[JobSpec]) -> list[Job]:
    """The jobs that were not there yet."""
    try:
        submitted = await submission.submit(context, specs, own_ids=True)
    except DuplicateJob:
        return []
    except InvalidBatch as error:
        if not isinstance(error.cause, DuplicateJob):
            raise
        return [job for spec in specs for job in await _submit(context, [spec])]
    return [job for job, new in zip(submitted.jobs, submitted.created, strict=True) if new]


def _own_tenant(context: Context) -> str:
    """Names are looked up where an unbound manager's own submissions go."""
    return context.tenant or DEFAULT_TENANT


def _stored(context: Context, record: Record) -> Schedule | None:
    return read(context, record) if record.version else None


def _replaceable(context: Context, record: Record) -> Schedule | None:
    """None, too, for one that cannot be read: it can still be replaced."""
    try:
        return _stored(context, record)
    except (StoreCorrupt, InvalidSchedule, CannotDecrypt):
        return None


def _contention(name: str) -> str:
    return f"schedule {name} kept changing; nothing was changed, try again"
