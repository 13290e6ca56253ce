"""After the store's clock was set back: what was stamped ahead of it is brought back.

A stamp is what no caller asked for: a job due when it was submitted, the next try by a backoff, the end of a
lease. What a caller asked for (a time to run at, a retry at a time, a snooze) stays. How far the clock was
ahead is known from the latest time that any maintenance has seen, kept in a record; so nothing becomes due
before its time, and what is brought back comes late by no more than it took to notice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from headrace import lifecycle
from headrace.clock import STEP_SECONDS, seconds_ahead
from headrace.manager import limits, settlement
from headrace.manager.context import Context
from headrace.model import LEASED, Change, Job, State
from headrace.stores.base import Commit, Fence, Query, Record

KIND = "clock"
NAME = "latest"
CHECK_SECONDS = 60.0
"""The record is read, and moved on, at most this often while nothing tells of a step."""
SETTLE_SECONDS = 15.0
"""For so long after a step other processes may not have noticed it, and may still stamp ahead."""
BATCH_JOBS = 1000

_STEP = timedelta(seconds=STEP_SECONDS)


class Seen(msgspec.Struct, frozen=True):
    """The record: how far the store's clock has come, for those who were not there."""

    latest: datetime


class ClockRecovery:
    """Notices that the store's clock was set back, and mends what it had stamped ahead."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._latest: datetime | None = None
        self._checked_at: datetime | None = None
        self._set_back_at: datetime | None = None

    async def run(self) -> int:
        """Bring back what is stamped ahead; how many jobs. Costs nothing while the clock keeps its course."""
        context = self._context
        await context.synchronise(at_once=True)
        if context.tenant is not None:
            return 0  # the clock is everybody's, and the record the operator's
        now = context.now()
        if not self._has_stepped(now) and not await self._others_saw_it_ahead(now):
            self._latest = now if self._latest is None else max(self._latest, now)
            return 0
        assert self._latest is not None  # it is ahead
        if self._set_back_at is None or self._set_back_at > now:
            self._set_back_at = now
            await _remember(context, await _record(context), self._latest)
        count = await _bring_back(context, now, self._latest - now)
        await limits.catch_up(context, now)
        if seconds_ahead(now, self._set_back_at) >= SETTLE_SECONDS:
            self._latest, self._set_back_at, self._checked_at = now, None, now
            await _remember(context, await _record(context), now)
        return count

    def _has_stepped(self, now: datetime) -> bool:
        """As far as this process has seen itself."""
        clock = self._context.store_clock
        if clock is not None and clock.set_back_from is not None:
            self._latest = max(self._latest or now, clock.set_back_from)
            clock.set_back_from = None
        return self._latest is not None and seconds_ahead(self._latest, now) > STEP_SECONDS

    async def _others_saw_it_ahead(self, now: datetime) -> bool:
        """By the record or, if there is none yet, by the newest job."""
        if self._checked_at is not None and seconds_ahead(now, self._checked_at) < CHECK_SECONDS:
            return False
        record = await _record(self._context)
        if record.version:
            latest = msgspec.json.decode(record.body_json, type=Seen).latest
        else:
            newest = await self._context.store.find(Query(newest_first=True, limit=1))
            latest = max((job.created_at for job in newest), default=now)
        if seconds_ahead(latest, now) > STEP_SECONDS:
            self._latest = latest
            return True
        self._checked_at = now
        await _remember(self._context, record, now)
        return False


async def _record(context: Context) -> Record:
    found = await context.store.records(KIND, [NAME])
    return found[0] if found else Record(kind=KIND, name=NAME)


async def _remember(context: Context, record: Record, latest: datetime) -> None:
    """Put it into the record. Whoever has done so since it was read knows as much."""
    body = msgspec.json.encode(Seen(latest))
    await context.store.put_record(replace(record, body_json=body))


async def _bring_back(context: Context, now: datetime, ahead: timedelta) -> int:
    count = 0
    new = Query(states=(State.BLOCKED, State.PENDING), created_from=now + _STEP)
    for query in (new, Query(states=(State.RETRYING, State.LOST)), Query(states=tuple(LEASED))):
        async for jobs in _pages(context, query):
            due = {job.id: run_at for job in jobs if (run_at := _due(context, job, now, ahead))}
            ends = await _shorten(context, jobs, now, ahead)
            count += await _commit(
                context,
                [
                    lifecycle.apply(
                        job,
                        lifecycle.Retime(run_at=due.get(job.id), lease_until=ends.get(job.id)),
                        now,
                    )
                    for job in jobs
                    if job.id in due or job.id in ends
                ],
            )
    return count


async def _pages(context: Context, query: Query) -> AsyncIterator[Sequence[Job]]:
    jobs = await context.store.find(replace(query, limit=BATCH_JOBS))
    while jobs:
        yield jobs
        jobs = await context.store.find(replace(query, limit=BATCH_JOBS, after_seq=jobs[-1].seq))


def _due(context: Context, job: Job, now: datetime, ahead: timedelta) -> datetime | None:
    """When a job is to run that was stamped ahead. None: it was not, or somebody asked for that time.

    One that was due when it was submitted is due now. A try that a backoff put off comes when the longest
    wait that this backoff could have chosen is over: the same however often it is looked at, and by whom.
    (A leased one, too: its worker may be lost.)
    """
    if job.run_at <= now:
        return None
    if job.run_at == job.created_at:
        return now
    if job.last_failed_at is None or job.last_failed_at <= now + _STEP:
        return None
    backoff = settlement.backoff_of(job, context.policy(job.queue))
    least, most = (timedelta(seconds=backoff.delay(job.failures, draw)) for draw in (0.0, 1.0))
    if not job.last_failed_at + least <= job.run_at <= job.last_failed_at + most:
        return None
    due = max(min(job.last_failed_at - ahead, now) + most, now)  # it did not fail after now
    return due if due < job.run_at else None


async def _shorten(
    context: Context, jobs: Sequence[Job], now: datetime, ahead: timedelta
) -> Mapping[str, datetime]:
    """Leases that reach further than they could from now; none ends before one that begins now would.

    The store keeps a lease out of changes: a heartbeat in the holder's name writes it.
    """
    fences = {
        Fence(job.id, job.token): seconds_ahead(end, now)
        for job in jobs
        if job.token is not None and (end := _end(job, now, ahead)) is not None
    }
    extended = await context.store.extend(fences, now) if fences else ()
    return {one.job_id: one.lease_until for one in extended if one.lease_until is not None}


def _end(job: Job, now: datetime, ahead: timedelta) -> datetime | None:
    """When a lease is to end that was stamped ahead; None: it was not, as far as one can tell."""
    if job.lease_until is None or job.lease_seconds is None:
        return None
    longest = now + timedelta(seconds=job.lease_seconds)
    if job.lease_until <= longest + _STEP:
        return None
    return max(longest, job.lease_until - ahead)


async def _commit(context: Context, changes: Sequence[Change]) -> int:
    if not changes:
        return 0
    return sum((await context.store.commit(Commit(changes=changes))).applied)
