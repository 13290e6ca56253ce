"""Trimming the log: what is old enough goes, once every reader holds it."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from headrace.errors import NoReaders
from headrace.manager import readers, rollups
from headrace.manager.context import Context
from headrace.manager.readers import Reader
from headrace.model import Event
from headrace.stores.base import EventQuery

BATCH_EVENTS = 2000
"""Deleted in one step: little enough that nobody who works meanwhile waits for long."""


class Trimmed(msgspec.Struct, frozen=True, kw_only=True):
    """What a trim did or, if it was a dry run, would do."""

    events: int
    """How many went."""
    held_back_by: tuple[str, ...] = ()
    """The readers that do not yet hold the first event that stayed, though it is old enough to go."""


async def trim_by_policy(context: Context, *, limit: int, dry_run: bool) -> Trimmed:
    """As the policies say: nothing unless they say for how long events are kept, nor for one tenant."""
    policies = context.policies
    if policies.keep_events_seconds is None or context.tenant is not None:
        return Trimmed(events=0)
    return await trim(
        context,
        policies.keep_events_seconds,
        without_readers=policies.trim_without_readers,
        limit=limit,
        dry_run=dry_run,
    )


async def trim(
    context: Context, keep_seconds: float, *, without_readers: bool, limit: int, dry_run: bool
) -> Trimmed:
    """Batch by batch, so that it can be stopped at any time; readers are asked again before each.

    A reader that comes, or goes back, in the middle of a batch is not waited for; it gets LogTrimmed when it
    reads on.
    """
    readers.check_operator(context)
    before = context.now() - timedelta(seconds=keep_seconds)
    if dry_run:
        return await _count(context, await _all(context, without_readers), before, limit)
    gone, goes_on = 0, True
    while goes_on and gone < limit:
        known = await _all_holding(context, without_readers)
        batch = min(BATCH_EVENTS, limit - gone)
        went = await context.store.trim([one.cursor for one in known], before, batch)
        gone += went
        goes_on = went == batch
    first = await context.store.events(EventQuery(limit=1))
    known = await _all_holding(context, without_readers=True)
    return Trimmed(
        events=gone,
        held_back_by=await _in_the_way(context, known, first[0], before) if first else (),
    )


async def _all(context: Context, without_readers: bool) -> tuple[Reader, ...]:  # noqa: FBT001 - private
    known = await readers.find_all(context)
    if not known and not without_readers:
        raise NoReaders
    return known


async def _all_holding(context: Context, without_readers: bool) -> tuple[Reader, ...]:  # noqa: FBT001 - private
    """With the rollup, if there is one: it counts what it can before it stands in the way."""
    known = await _all(context, without_readers)
    if await rollups.as_reader(context) is None:
        return known
    await rollups.roll(context)
    rollup = await rollups.as_reader(context)
    return known if rollup is None else (*known, rollup)


async def _in_the_way(
    context: Context, known: tuple[Reader, ...], kept: Event, before: datetime
) -> tuple[str, ...]:
    """Those without which this event, the first that stays, would go."""
    if kept.at >= before:
        return ()
    missing = {one.name: await readers.first_missing(context, one) for one in known}
    return tuple(name for name, event in missing.items() if event and event.seq == kept.seq)


async def _count(
    context: Context, known: tuple[Reader, ...], before: datetime, limit: int
) -> Trimmed:
    """What would go, found by reading it: a store counts nothing that it does not delete."""
    missing = [await readers.first_missing(context, one) for one in known]
    stops = {event.seq for event in missing if event is not None}
    count, cursor, page_events = 0, "", BATCH_EVENTS
    while page := await context.store.events(EventQuery(after=cursor, limit=page_events)):
        for event in page:
            if event.seq in stops or event.at >= before or count >= limit:
                held = await _in_the_way(context, known, event, before)
                return Trimmed(events=count, held_back_by=held)
            count += 1
        cursor = page[-1].cursor
    return Trimmed(events=count)
