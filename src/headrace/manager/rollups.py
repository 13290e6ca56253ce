"""Recent history: the log rolled up into minutes and hours, by whoever comes first, and each event once.

The head is a record with the cursor up to which events are counted. A step reads on from there and puts, in
one write, the new cursor and what the events in between add. Then it adds that to the minutes and hours, a
record each, which remember the step: whoever finds it there already leaves it. So a step that was cut off
anywhere is finished by the next one that comes, and nothing is added twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from headrace import rollups, validation
from headrace.clock import from_us, to_us
from headrace.errors import InvalidTime, LogTrimmed, StoreCorrupt
from headrace.manager.context import Context
from headrace.manager.readers import Reader
from headrace.manager.records import change_record, find_record
from headrace.model import Event
from headrace.rollups import (
    HOUR_US,
    MINUTE_US,
    Bucket,
    Counts,
    ErrorGroup,
    ErrorTally,
    Rollup,
    Span,
)
from headrace.stores.base import EventQuery, Record

HEAD = "rollup"
MINUTE = "rollup-minute"
HOUR = "rollup-hour"
KEEP_US: Mapping[str, int] = {MINUTE: 48 * HOUR_US, HOUR: 30 * 24 * HOUR_US}
"""For how long minutes and hours can be asked for."""
_STEP_US = {MINUTE: MINUTE_US, HOUR: HOUR_US}
EVENTS_MAX = 10_000
"""Events that one step counts."""
MINUTES_MAX = 120
"""Minutes that one step adds to."""
SWEEP_MAX = 500
"""Minutes, or hours, that one step looks for to delete."""
RANGE_HOURS_MAX = 31 * 24
MINUTES_ASKED_MAX = timedelta(hours=6)
"""For a longer time than this hours are told, unless minutes are asked for."""
GROUPS = 100
_PAGE = 1000


class Head(msgspec.Struct, kw_only=True):
    """How far the log has been rolled up."""

    step: int = 0
    cursor: str = ""
    last_at: datetime | None = None
    """The time of the last event that is counted."""
    pending: dict[str, dict[int, Span]] = msgspec.field(default_factory=dict)
    """What this step adds, by kind and time, until it has been added."""
    swept: dict[str, int] = msgspec.field(default_factory=dict)
    """By kind, up to which time minutes and hours have been deleted."""
    since: datetime
    """When it was begun."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, by minute or hour; those in which nothing did are left out."""

    since: datetime
    until: datetime
    bucket_seconds: int
    """60 or 3600."""
    counted_until: datetime | None
    """The time of the last event that is counted. None: nothing has been counted yet."""
    buckets: tuple[Bucket, ...]
    """In order of time, tenant and queue."""

    def totals(self) -> Counts:
        """All of it together."""
        total = Counts(rollups.OTHERS, rollups.OTHERS)
        for one in self.buckets:
            total.merge(one.counts)
        return total


class ErrorGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of some time, those that mean the same together."""

    since: datetime
    until: datetime
    counted_until: datetime | None
    groups: tuple[ErrorGroup, ...]
    """The most frequent first."""
    total: int
    """How many groups there are."""


# --- rolling up ----------------------------------------------------------------------------------


async def roll(context: Context, limit: int = EVENTS_MAX) -> int:
    """Count the next events, `limit` at most; how many. The log is everybody's: not for one tenant."""
    if context.tenant is not None:
        return 0
    hour = to_us(context.now()) // HOUR_US
    if context.cache.counted == (await context.store.tail(), hour):
        return 0  # all of the log was counted when we looked last, and nothing has grown old since
    record = await find_record(context.store, HEAD, HEAD)
    head = _head(context, record)
    if head.pending:
        record = await _finish(context, record, head)
    events = await _events(context, head, limit)
    swept = _to_sweep(context, head)
    if not events and not swept:
        context.cache.counted = head.cursor, hour
        return 0
    rolled = rollups.roll(events, head.cursor, minutes_max=MINUTES_MAX)
    new = replace(
        head,
        step=head.step + 1,
        cursor=rolled.cursor,
        last_at=rolled.last_at or head.last_at,
        pending=_pending(context, rolled),
        swept=head.swept | {kind: until for kind, (_, until) in swept.items()},
    )
    # What is too old goes first: once the head has moved on, nobody looks for it any more.
    for kind, (since, until) in swept.items():
        await _delete(context, kind, since, until)
    body = msgspec.json.encode(new)
    if not await context.store.put_record(replace(record, body_json=body)):
        return 0  # somebody else counts them
    await _finish(context, replace(record, version=record.version + 1, body_json=body), new)
    return rolled.events


async def _events(context: Context, head: Head, limit: int) -> Sequence[Event]:
    try:
        return await context.store.events(EventQuery(after=head.cursor, limit=limit))
    except LogTrimmed:
        # Somebody has trimmed what was not counted yet: go on with what is left.
        return await context.store.events(EventQuery(limit=limit))


def _pending(context: Context, rolled: Rollup) -> dict[str, dict[int, Span]]:
    """What is to be added, but for what is too old to be kept."""
    oldest = {kind: to_us(context.now()) - keep for kind, keep in KEEP_US.items()}
    added = {MINUTE: rolled.minutes, HOUR: rolled.hours}
    fresh = {
        kind: {start: span for start, span in spans.items() if start >= oldest[kind]}
        for kind, spans in added.items()
    }
    return {kind: spans for kind, spans in fresh.items() if spans}


async def _finish(context: Context, record: Record, head: Head) -> Record:
    """Add what is pending, and say so; the record as it is then, if nobody else has said so first."""
    for kind, spans in head.pending.items():
        for start, span in spans.items():
            await _add(context, kind, start, span, head.step)
    head.pending = {}
    done = replace(record, body_json=msgspec.json.encode(head))
    if await context.store.put_record(done):
        return replace(done, version=record.version + 1)
    return record  # it has moved on, and so what is put next is refused


async def _add(context: Context, kind: str, start: int, span: Span, step: int) -> None:
    def decide(record: Record) -> tuple[Record, None]:
        known = _span(record) if record.version else Span()
        if known.step >= step:
            return record, None
        known.merge(span)
        known.step = step
        return replace(record, body_json=msgspec.json.encode(known)), None

    await change_record(context.store, kind, rollups.name_of(start), decide, what=f"{kind} {start}")


def _to_sweep(context: Context, head: Head) -> dict[str, tuple[int, int]]:
    """By kind, from when to when it is too old by now; an hour at least, and not too much at once."""
    found = {}
    for kind, keep in KEEP_US.items():
        begun = to_us(head.since) // HOUR_US * HOUR_US - keep
        since = head.swept.get(kind, begun)
        until = (to_us(context.now()) - keep) // HOUR_US * HOUR_US
        until = min(until, since + SWEEP_MAX * _STEP_US[kind])
        if until > since:
            found[kind] = since, until
    return found


async def _delete(context: Context, kind: str, since: int, until: int) -> None:
    names = [rollups.name_of(start) for start in range(since, until, _STEP_US[kind])]
    for record in await context.store.records(kind, names):
        await context.store.delete_record(record)


async def as_reader(context: Context) -> Reader | None:
    """The rollup among those for whom the log is kept; None where nobody has begun one."""
    record = await find_record(context.store, HEAD, HEAD)
    if not record.version:
        return None
    head = _head(context, record)
    return Reader(
        name="headrace-rollup",
        cursor=head.cursor,
        label="minutes and hours of recent history",
        since=head.since,
        reached_at=head.last_at or head.since,
    )


# --- asking --------------------------------------------------------------------------------------


async def history(
    context: Context,
    since: datetime,
    until: datetime | None,
    *,
    queues: Sequence[str] | None,
    minutes: bool | None,
) -> History:
    until, head = await _asked(context, since, until)
    if minutes is None:
        is_kept = to_us(since) >= to_us(context.now()) - KEEP_US[MINUTE]
        minutes = is_kept and until - since <= MINUTES_ASKED_MAX
    kind = MINUTE if minutes else HOUR
    spans = await _spans(context, kind, since, until)
    buckets = [
        Bucket(at=from_us(start), counts=row)
        for start, span in spans.items()
        for row in sorted(span.rows, key=lambda one: (one.tenant, one.queue))
        if (queues is None or row.queue in queues) and context.tenant in (None, row.tenant)
    ]
    return History(
        since=since,
        until=until,
        bucket_seconds=_STEP_US[kind] // 1_000_000,
        counted_until=head.last_at,
        buckets=tuple(buckets),
    )


async def error_groups(
    context: Context,
    since: datetime,
    until: datetime | None,
    *,
    queues: Sequence[str] | None,
    types: Sequence[str] | None,
    limit: int,
) -> ErrorGroups:
    until, head = await _asked(context, since, until)
    tally = ErrorTally(since, until)
    for start, span in (await _spans(context, HOUR, since, until)).items():
        for error in span.errors:
            if (
                context.tenant in (None, error.tenant)
                and (queues is None or error.queue in queues)
                and (types is None or error.type in types)
            ):
                tally.add(start, error)
    groups = tally.groups()
    return ErrorGroups(
        since=since,
        until=until,
        counted_until=head.last_at,
        groups=tuple(groups[:limit]),
        total=len(groups),
    )


async def cursor_at(context: Context, at: datetime) -> str:
    """Hours know where some of their events stand in the log; from the nearest one on events are read."""
    head = _head(context, await find_record(context.store, HEAD, HEAD))
    cursor = await _mark_before(context, to_us(at))
    if cursor is None and head.last_at is not None and head.last_at < at:
        cursor = head.cursor
    cursor = cursor or ""
    while True:
        try:
            page = await context.store.events(EventQuery(after=cursor, limit=_PAGE))
        except LogTrimmed:
            page = await context.store.events(EventQuery(limit=_PAGE))
        for event in page:
            if event.at >= at:
                return cursor
            cursor = event.cursor
        if len(page) < _PAGE:
            return cursor


async def _mark_before(context: Context, asked_us: int) -> str | None:
    """The last mark of its hour that is older or, if none is, the first of the first hour that has any."""
    now_us = to_us(context.now())
    if asked_us < now_us - KEEP_US[HOUR]:
        return None  # what was then is not known any more
    hours = range(asked_us // HOUR_US * HOUR_US, now_us + 1, HOUR_US)
    for some in (hours[:1], hours[1:RANGE_HOURS_MAX]):
        for record in await context.store.records(HOUR, [rollups.name_of(one) for one in some]):
            marks = sorted(_span(record).marks)
            if marks:
                older = [cursor for at_us, cursor in marks if at_us < asked_us]
                return older[-1] if older else marks[0][1]
    return None


async def _asked(
    context: Context, since: datetime, until: datetime | None
) -> tuple[datetime, Head]:
    """Checked, up to now if no end was given."""
    now = context.now()
    until = now if until is None else until
    longest = timedelta(hours=RANGE_HOURS_MAX)
    if not timedelta(0) < until - since <= longest:
        raise InvalidTime(
            f"the time from {since.isoformat()} to {until.isoformat()} must be more than none and at most "
            f"{longest.days} days; {validation.UNCHANGED}"
        )
    return until, _head(context, await find_record(context.store, HEAD, HEAD))


async def _spans(context: Context, kind: str, since: datetime, until: datetime) -> dict[int, Span]:
    """Those there are, in order of time."""
    starts = {
        rollups.name_of(start): start for start in rollups.starts(since, until, _STEP_US[kind])
    }
    found = await context.store.records(kind, list(starts))
    return {starts[record.name]: _span(record) for record in found}


def _head(context: Context, record: Record) -> Head:
    if not record.version:
        return Head(since=context.now())
    try:
        return msgspec.json.decode(record.body_json, type=Head)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"how far the log is rolled up cannot be read ({error}); it was left as it is"
        ) from error


def _span(record: Record) -> Span:
    try:
        return msgspec.json.decode(record.body_json, type=Span)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"the counts of {record.name} cannot be read ({error}); they were left as they are"
        ) from error
