"""What happened, counted: events into counts by minute and hour, and errors into groups. Pure.

A rollup is what a page of the event log adds to the counts of the minutes and hours that it tells of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from headrace.clock import from_us, to_us
from headrace.error_groups import collapsed, fingerprint
from headrace.histograms import Histogram
from headrace.model import ENCRYPTED, LEASED, TERMINAL, Category, Event, EventKind, State

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
SLOT_US = 5 * MINUTE_US
"""Errors are counted in slots of so much time."""
ROWS_MAX = 2000
"""So many tenants and queues are told apart in one minute, or hour; what is more is counted together."""
GROUPS_MAX = 500
"""So many error groups are told apart in one hour; what is more is counted together."""
MARK_EVENTS = 1000
"""Where a time lies in the log is remembered for one event out of so many …"""
MARKS_MAX = 1000
"""… and of so many in an hour; where there are more, of each other one."""
OTHERS = "*"
"""Stands for the tenant and queue, or the type, of what is not told apart any more."""

COUNTED = (
    "submitted",
    "started",
    "retried",
    "lost",
    "completed",
    "failed",
    "dead",
    "cancelled",
    "abandoned",
)
_WASTED = frozenset({EventKind.RETRYING, EventKind.FAILED, EventKind.DEAD, EventKind.LOST})
_LEASE_EXPIRED = "lease_expired"
_FATAL = frozenset({State.FAILED, State.DEAD})


class Counts(msgspec.Struct, array_like=True):
    """What happened to the jobs of one tenant and queue in one minute or hour."""

    tenant: str
    queue: str
    submitted: int = 0
    """Jobs submitted."""
    started: int = 0
    """Attempts started."""
    retried: int = 0
    """Attempts that failed and will be tried again."""
    lost: int = 0
    """Attempts whose worker vanished, with budget left."""
    completed: int = 0
    """Jobs that completed. One that had been given up before is counted as abandoned, too."""
    failed: int = 0
    """Jobs that failed for good."""
    dead: int = 0
    """Jobs whose attempts or lifetime were exhausted."""
    cancelled: int = 0
    """Jobs that were cancelled."""
    abandoned: int = 0
    """Jobs given up with their outcome unknown."""
    wait: Histogram = msgspec.field(default_factory=Histogram)
    """From ready to claimed, of the attempts that started."""
    run: Histogram = msgspec.field(default_factory=Histogram)
    """How long attempts held their lease, of those that ended."""

    def merge(self, other: Counts) -> None:
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.wait.merge(other.wait)
        self.run.merge(other.run)


class ErrorCounts(msgspec.Struct, array_like=True):
    """How often errors that mean the same happened in one hour, of one tenant and queue."""

    tenant: str
    queue: str
    type: str
    category: str | None
    code: str | None
    message: str | None
    """With its variable parts collapsed. None: it is encrypted."""
    first_us: int
    last_us: int
    sample: str
    """The job that it hit last."""
    fatal: int = 0
    """How often it ended the job."""
    slots: dict[int, int] = msgspec.field(default_factory=dict)
    """How often, by the number of five minutes since the hour began."""

    @property
    def key(self) -> tuple[str | None, ...]:
        return self.tenant, self.queue, self.type, self.category, self.code, self.message

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.type, self.category, self.code, self.message)

    def merge(self, other: ErrorCounts) -> None:
        self.first_us = min(self.first_us, other.first_us)
        if other.last_us >= self.last_us:
            self.last_us, self.sample = other.last_us, other.sample
        self.fatal += other.fatal
        for slot, count in other.slots.items():
            self.slots[slot] = self.slots.get(slot, 0) + count


class Span(msgspec.Struct, array_like=True):
    """The counts of one minute or hour, and what of it has been counted."""

    rows: list[Counts] = msgspec.field(default_factory=list)
    errors: list[ErrorCounts] = msgspec.field(default_factory=list)
    """Of an hour only."""
    marks: list[tuple[int, str]] = msgspec.field(default_factory=list)
    """Of an hour: of its first event, and of others at a distance, the time and the cursor before it."""
    step: int = 0
    """The last step of the rollup that is counted in."""

    def merge(self, other: Span) -> None:
        """Count the other in, within the limits on what is told apart."""
        rows = {(one.tenant, one.queue): one for one in self.rows}
        for row in other.rows:
            place = (row.tenant, row.queue)
            if place not in rows and len(rows) >= ROWS_MAX:
                place = (OTHERS, OTHERS)
            if place in rows:
                rows[place].merge(row)
            else:
                rows[place] = msgspec.structs.replace(row, tenant=place[0], queue=place[1])
        self.rows = list(rows.values())
        errors = {one.key: one for one in self.errors}
        for error in other.errors:
            named = error if error.key in errors or len(errors) < GROUPS_MAX else _other(error)
            if named.key in errors:
                errors[named.key].merge(named)
            else:
                errors[named.key] = named
        self.errors = list(errors.values())
        self.marks += other.marks
        if len(self.marks) > MARKS_MAX:
            self.marks = self.marks[::2]


class Rollup(msgspec.Struct):
    """What some events in a row add, by the time in microseconds at which each minute and hour begins."""

    minutes: dict[int, Span]
    hours: dict[int, Span]
    events: int
    cursor: str
    """Of the last event that is counted in."""
    last_at: datetime | None


def roll(events: Iterable[Event], cursor: str, *, minutes_max: int) -> Rollup:
    """Count events that come after the cursor in the log, up to the first of one minute too many."""
    rolled = Rollup({}, {}, 0, cursor, None)
    rows: dict[tuple[int, str, str], tuple[Counts, Counts]] = {}
    errors: dict[tuple[int, tuple[str | None, ...]], ErrorCounts] = {}
    for event in events:
        at_us = to_us(event.at)
        minute = at_us - at_us % MINUTE_US
        hour = at_us - at_us % HOUR_US
        if minute not in rolled.minutes:
            if len(rolled.minutes) >= minutes_max:
                break
            rolled.minutes[minute] = Span()
        if hour not in rolled.hours or rolled.events % MARK_EVENTS == 0:
            rolled.hours.setdefault(hour, Span()).marks.append((at_us, rolled.cursor))
        place = (minute, event.tenant, event.queue)
        pair = rows.get(place)
        if pair is None:
            pair = rows[place] = (
                Counts(event.tenant, event.queue),
                _row_of(rolled.hours[hour], event.tenant, event.queue),
            )
            rolled.minutes[minute].rows.append(pair[0])
        for counts in pair:
            _count(counts, event)
        if is_error(event):
            error = _error(event, at_us, hour)
            known = errors.get((hour, error.key))
            if known is None:
                errors[hour, error.key] = error
                rolled.hours[hour].errors.append(error)
            else:
                known.merge(error)
        rolled.events += 1
        rolled.cursor = event.cursor
        rolled.last_at = event.at
    return rolled


def _row_of(span: Span, tenant: str, queue: str) -> Counts:
    for row in span.rows:
        if row.tenant == tenant and row.queue == queue:
            return row
    span.rows.append(Counts(tenant, queue))
    return span.rows[-1]


def _count(counts: Counts, event: Event) -> None:
    kind = event.kind
    if kind is EventKind.LEASED:
        counts.started += 1
        if event.wait_us is not None:
            counts.wait.add(event.wait_us)
        return
    if kind is EventKind.ENQUEUED:
        counts.submitted += 1
    leaves = event.before in LEASED and event.after not in LEASED
    if leaves:
        if kind is EventKind.RETRYING:
            counts.retried += 1
        elif kind is EventKind.LOST:
            counts.lost += 1
        if event.run_us is not None:
            counts.run.add(event.run_us)
    if event.after in TERMINAL and event.before != event.after and not _is_no_news(event):
        name = event.after.value
        setattr(counts, name, getattr(counts, name) + 1)


def _is_no_news(event: Event) -> bool:
    return event.before in TERMINAL and event.after is not State.COMPLETED


def is_error(event: Event) -> bool:
    """It tells of an attempt that ran and brought nothing, or of a job that ended badly while it waited."""
    if event.before in LEASED:
        if event.kind is EventKind.ABANDONED:
            return event.code == _LEASE_EXPIRED
        return event.kind in _WASTED
    return event.after in _FATAL and event.before is not None and event.before not in TERMINAL


def _error(event: Event, at_us: int, hour: int) -> ErrorCounts:
    return ErrorCounts(
        tenant=event.tenant,
        queue=event.queue,
        type=event.type,
        category=None if event.category is None else event.category.value,
        code=event.code,
        message=None if event.message == ENCRYPTED else collapsed(event.message or ""),
        first_us=at_us,
        last_us=at_us,
        sample=event.job_id,
        fatal=int(event.after in _FATAL),
        slots={(at_us - hour) // SLOT_US: 1},
    )


def _other(error: ErrorCounts) -> ErrorCounts:
    return msgspec.structs.replace(
        error, type=OTHERS, queue=OTHERS, category=None, code=None, message=""
    )


# --- asking ---------------------------------------------------------------------------------------


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to the jobs of one tenant and queue in one minute, or one hour."""

    at: datetime
    """When it began."""
    counts: Counts


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Errors that mean the same."""

    fingerprint: str
    type: str
    category: Category | None
    code: str | None
    message: str | None
    """With numbers, times, ids and quoted text collapsed. None: it is encrypted."""
    queues: tuple[str, ...]
    tenants: tuple[str, ...]
    count: int
    fatal: int
    """How often it ended the job."""
    first_at: datetime
    last_at: datetime
    sample: str
    """The id of the job that it hit last."""
    trend: tuple[int, ...]
    """How often in each of 24 equal parts of the time that was asked for."""


TREND_PARTS = 24


class ErrorTally:
    """Error groups of several hours, added up."""

    def __init__(self, since: datetime, until: datetime) -> None:
        self._since_us, self._until_us = to_us(since), to_us(until)
        self._found: dict[str, ErrorGroup] = {}
        self._trends: dict[str, list[int]] = {}

    def add(self, hour_us: int, error: ErrorCounts) -> None:
        inside = {
            slot: count
            for slot, count in error.slots.items()
            if self._since_us < hour_us + (slot + 1) * SLOT_US
            and hour_us + slot * SLOT_US < self._until_us
        }
        count = sum(inside.values())
        if not count:
            return
        name = error.fingerprint
        trend = self._trends.setdefault(name, [0] * TREND_PARTS)
        for slot, times in inside.items():
            trend[self._part(hour_us + slot * SLOT_US)] += times
        known = self._found.get(name)
        first_at, last_at = from_us(error.first_us), from_us(error.last_us)
        if known is None:
            self._found[name] = ErrorGroup(
                fingerprint=name,
                type=error.type,
                category=None if error.category is None else Category(error.category),
                code=error.code,
                message=error.message,
                queues=(error.queue,),
                tenants=(error.tenant,),
                count=count,
                fatal=error.fatal,
                first_at=first_at,
                last_at=last_at,
                sample=error.sample,
                trend=(),
            )
            return
        self._found[name] = msgspec.structs.replace(
            known,
            queues=tuple(sorted({*known.queues, error.queue})),
            tenants=tuple(sorted({*known.tenants, error.tenant})),
            count=known.count + count,
            fatal=known.fatal + error.fatal,
            first_at=min(known.first_at, first_at),
            last_at=max(known.last_at, last_at),
            sample=error.sample if last_at >= known.last_at else known.sample,
        )

    def groups(self) -> list[ErrorGroup]:
        """The most frequent first."""
        told = [
            msgspec.structs.replace(one, trend=tuple(self._trends[name]))
            for name, one in self._found.items()
        ]
        return sorted(told, key=lambda one: (-one.count, one.fingerprint))

    def _part(self, at_us: int) -> int:
        span = max(self._until_us - self._since_us, 1)
        part = (at_us - self._since_us) * TREND_PARTS // span
        return min(max(part, 0), TREND_PARTS - 1)


def starts(since: datetime, until: datetime, step_us: int) -> Iterator[int]:
    """Where the minutes or hours begin that the time from `since` up to `until` has a part in."""
    first = to_us(since) // step_us * step_us
    return iter(range(first, to_us(until), step_us))


def name_of(start_us: int) -> str:
    """The name of a minute or hour: in order of time."""
    return from_us(start_us).astimezone(UTC).strftime("%Y-%m-%dT%H:%M")
