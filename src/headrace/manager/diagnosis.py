"""The health of a store: what it says of itself, and whether its jobs are looked after."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from headrace.manager import presence, readers, schedules
from headrace.manager.context import Context, read_clock
from headrace.manager.explanation import PRESENT_SECONDS
from headrace.manager.queries import stats
from headrace.model import State
from headrace.stores.base import Finding, Health

LOOK_MAX = 1000
"""Leftovers are counted up to this: past it the number says no more."""
CLOCK_OFFSET_SECONDS_MAX = 5.0
SILENT_SECONDS_MAX = 7 * 86_400.0
"""A reader of the log that was not heard of for longer is told of."""


async def diagnose(
    context: Context, runs: Callable[[str], bool] | None = None, *, quick: bool = False
) -> tuple[Finding, ...]:
    """Every finding, the store's own first. `quick` leaves those out: they may read all there is."""
    return (
        *(() if quick else await context.store.diagnose()),
        await _clock(context),
        *await _jobs(context),
        *await _leftovers(context),
        *await _readers(context),
        *await _schedules(context, runs),
        *[
            Finding(
                Health.WARNING,
                f"queue {pause.queue}",
                f"paused since {pause.since.isoformat()}",
                f"headrace resume {pause.queue}",
            )
            for pause in await context.store.pauses()
            if context.concerns(pause.tenant)
        ],
    )


async def _clock(context: Context) -> Finding:
    store_time, round_trip = await read_clock(context.store)
    seconds = (store_time - datetime.now(UTC)).total_seconds() + round_trip / 2
    far = abs(seconds) > CLOCK_OFFSET_SECONDS_MAX
    return Finding(
        Health.WARNING if far else Health.OK,
        "clock",
        f"the store's is {seconds:+.3f} s from this host's",
        "leases follow the store's clock and are safe; set this host's clock all the same"
        if far
        else None,
    )


async def _jobs(context: Context) -> list[Finding]:
    counted = await stats(context, queues=None, tags=())
    since = context.now() - timedelta(seconds=PRESENT_SECONDS)
    seen = await presence.workers(context.store, since)
    workers = sum(context.concerns(one.tenant) for one in seen)
    slots = presence.slots(one for one in seen if context.tenant in (None, one.tenant))
    taken = "" if slots is None else f", {slots} slots taken"
    unattended = counted.ready > 0 and workers == 0
    dead = counted.states[State.DEAD]
    return [
        Finding(
            Health.WARNING if unattended else Health.OK,
            "backlog",
            f"{counted.ready} ready, {counted.delayed} delayed, {counted.states[State.BLOCKED]} blocked",
            f"no worker has asked for jobs in the last {PRESENT_SECONDS:.0f} seconds: start one"
            if unattended
            else None,
        ),
        Finding(
            Health.OK, "workers", f"{workers} seen in the last {PRESENT_SECONDS:.0f} seconds{taken}"
        ),
        Finding(
            Health.WARNING if dead else Health.OK,
            "dead letters",
            str(dead),
            "headrace list --state dead; headrace redrive" if dead else None,
        ),
    ]


async def _schedules(context: Context, runs: Callable[[str], bool] | None) -> list[Finding]:
    """Those that go on firing though no task is left for what they submit, where that can be known."""
    if runs is None:
        return []
    found = await schedules.find_all(context)
    undeclared = [one for one in found if not one.paused and not runs(one.job.type)]
    return [
        Finding(
            Health.OK,
            "schedules",
            f"{len(found) - len(undeclared)} of {len(found)} submit what the application has a task for",
        ),
        *(
            Finding(
                Health.WARNING,
                f"schedule {one.name}",
                f"submits {one.job.type!r}, for which the application has no task",
                "if no other application runs it, its jobs are never run: headrace schedule remove "
                f"{one.name}",
            )
            for one in undeclared
        ),
    ]


async def _readers(context: Context) -> list[Finding]:
    """Those of the log; one that has fallen silent holds all of it back."""
    if context.tenant is not None:
        return []
    now = context.now()
    return [
        Finding(
            Health.WARNING if silent else Health.OK,
            f"reader {reader.name}",
            f"last heard of at {reader.reached_at.isoformat()}",
            f"no event is trimmed that it does not hold: run it again, or headrace events forget "
            f"{reader.name}"
            if silent
            else None,
        )
        for reader in await readers.find_all(context)
        for silent in ((now - reader.reached_at).total_seconds() > SILENT_SECONDS_MAX,)
    ]


async def _leftovers(context: Context) -> list[Finding]:
    """What maintenance would take care of, if it ran."""
    now = context.now()
    lapsed = len(await context.store.lapsed(now, LOOK_MAX, tenant=context.tenant))
    outlived = len(await context.store.outlived(now, LOOK_MAX, tenant=context.tenant))
    # Which tenant's they are is not told by the edge: only the operator is shown the number.
    unseen = len(await context.store.unseen(LOOK_MAX)) if context.tenant is None else 0
    return [
        Finding(
            Health.WARNING if count else Health.OK,
            what,
            f"{count} or more" if count == LOOK_MAX else str(count),
            "maintenance takes them back: is a worker running?" if count else None,
        )
        for what, count in (
            ("expired leases", lapsed),
            ("outlived jobs", outlived),
            ("dependencies to sweep", unseen),
        )
    ]
