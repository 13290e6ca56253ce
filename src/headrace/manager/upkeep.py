"""What keeps a store healthy: the one list of steps, each a verb of the manager, safe together."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import NoReaders
from headrace.manager import rollups
from headrace.manager.changes import Changed
from headrace.manager.schedules import Fired
from headrace.model import State
from headrace.policy import Policies

if TYPE_CHECKING:
    from headrace.manager.manager import JobManager

LIMIT = 10_000
"""So many jobs, or events, does one run of a step concern at most."""

REAP_SECONDS = 5.0
REAP_SECONDS_MIN = 1.0
REAPS_PER_LEASE = 6
LIFETIME_SECONDS = 10.0
SWEEP_SECONDS = 10.0
SCHEDULE_SECONDS = 10.0
"""How long a new schedule may go unnoticed; ticks of those that are known are waited for."""
RETENTION_SECONDS = 60.0
BULK_SECONDS = 15.0
"""How long a new bulk act may go unnoticed by each host."""
HISTORY_SECONDS = 5.0
HISTORY_IDLE_SECONDS = 30.0
"""Where nothing has happened."""
HISTORY_PART = 0.1
"""While there are more events to count, counting them takes no larger part of the time than this."""


class Maintained(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of maintenance did."""

    reaped: Changed
    outlived: Changed
    swept: int
    fired: Fired
    restamped: int
    """Jobs whose times had been stamped by a clock that was set back since."""
    deleted: Mapping[State, int]
    trimmed: int = 0
    """Events of the log: none unless the policies say for how long they are kept."""
    bulk_jobs: int = 0
    """Jobs to which bulk acts have done what was asked for."""
    counted: int = 0
    """Events that were counted into the minutes and hours of recent history."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a step did."""

    count: int
    """How many jobs it changed, deleted or submitted, or how many events."""
    rest_seconds: float | None = None
    """Run again after so long. None: after the step's own interval."""
    troubles: frozenset[str] = frozenset()
    """What could not be done, in words; each is logged once, for as long as it lasts."""
    results: Mapping[str, Any] = {}
    """Its part of `Maintained`, by field."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A part of maintenance. It does only what is due, so any number of hosts may run it at once."""

    name: str
    interval_seconds: float
    spread_seconds: float
    """Each rest is longer by up to this, at random, so that hosts do not all come at once."""
    run: Callable[[JobManager], Awaitable[Done]]
    counts: str = "job"
    """What its count is of, in the singular."""


async def reap(manager: JobManager) -> Done:
    """Take back lapsed leases; and those, and other times, that a clock stamped which was set back since."""
    restamped = await manager.restamp()
    changed = await manager.reap(LIMIT)
    return _done(
        restamped + len(changed.jobs),
        rest_seconds=reap_interval(manager.policies),
        restamped=restamped,
        reaped=changed,
    )


async def end_lifetimes(manager: JobManager) -> Done:
    """Let jobs past their lifetime die."""
    changed = await manager.end_lifetimes(LIMIT)
    return _done(len(changed.jobs), outlived=changed)


async def sweep(manager: JobManager) -> Done:
    """Release what a crash left waiting for jobs that have ended."""
    swept = await manager.sweep(LIMIT)
    return _done(swept, swept=swept)


async def fire_schedules(manager: JobManager) -> Done:
    """Submit what schedules have due, and rest until the next tick."""
    fired = await manager.fire_schedules(LIMIT)
    rest = SCHEDULE_SECONDS
    if fired.next_due is not None:
        until = (fired.next_due - manager.clock.now()).total_seconds()
        rest = min(max(until, 0.0), SCHEDULE_SECONDS)
    troubles = frozenset(
        f"schedule {one.name} was not fired: {one.error.message}" for one in fired.unfired
    )
    return Done(
        count=len(fired.jobs), rest_seconds=rest, troubles=troubles, results={"fired": fired}
    )


async def roll_up(manager: JobManager) -> Done:
    """Count what happened into minutes and hours. Behind a busy log it rests for less, but rests."""
    start = time.perf_counter()
    count = await manager.roll_up()
    rest = HISTORY_SECONDS if count else HISTORY_IDLE_SECONDS
    if count >= rollups.EVENTS_MAX:
        spent = time.perf_counter() - start
        rest = min(HISTORY_SECONDS, spent * (1 / HISTORY_PART - 1))
    return Done(count=count, rest_seconds=rest, results={"counted": count})


async def carry_on_bulk_acts(manager: JobManager) -> Done:
    """Some chunks of each act on many jobs that goes on."""
    done = await manager.run_bulk_acts()
    rest = None
    if done.next_at is not None:
        until = (done.next_at - manager.clock.now()).total_seconds()
        rest = min(max(until, 0.0), BULK_SECONDS)
    return Done(count=done.jobs, rest_seconds=rest, results={"bulk_jobs": done.jobs})


async def trim_events(manager: JobManager) -> Done:
    """Trim the log of what is older than the policies say, and held by every reader."""
    try:
        events = (await manager.trim_events(limit=LIMIT)).events
    except NoReaders as error:
        return Done(count=0, troubles=frozenset({error.message}))
    return _done(events, trimmed=events)


async def retain(manager: JobManager) -> Done:
    """Delete ended jobs that are past their keep time."""
    deleted = await manager.cleanup(limit=LIMIT)
    return _done(sum(deleted.values()), deleted=deleted)


def reap_interval(policies: Policies) -> float:
    """A sixth of the shortest lease of any queue, within bounds: how late a lost job may be noticed."""
    leases = [policy.lease_seconds for policy in (policies.default, *policies.queues.values())]
    often = [seconds / REAPS_PER_LEASE for seconds in leases if seconds is not None]
    return max(min(REAP_SECONDS, *often), REAP_SECONDS_MIN) if often else REAP_SECONDS


def _done(count: int, rest_seconds: float | None = None, **results: Any) -> Done:
    """A run that was ended by its limit goes on at once."""
    rest = 0.0 if count >= LIMIT else rest_seconds
    return Done(count=count, rest_seconds=rest, results=results)


DEFAULT_STEPS = (
    Step(name="reap", interval_seconds=REAP_SECONDS, spread_seconds=0.5, run=reap),
    Step(
        name="lifetimes", interval_seconds=LIFETIME_SECONDS, spread_seconds=1.0, run=end_lifetimes
    ),
    Step(name="sweep", interval_seconds=SWEEP_SECONDS, spread_seconds=1.0, run=sweep),
    Step(
        name="schedules", interval_seconds=SCHEDULE_SECONDS, spread_seconds=0.25, run=fire_schedules
    ),
    Step(name="bulk", interval_seconds=BULK_SECONDS, spread_seconds=1.0, run=carry_on_bulk_acts),
    Step(
        name="history",
        interval_seconds=HISTORY_SECONDS,
        spread_seconds=1.0,
        run=roll_up,
        counts="event",
    ),
    Step(name="retention", interval_seconds=RETENTION_SECONDS, spread_seconds=6.0, run=retain),
)

TRIM_EVENTS = Step(
    name="events",
    interval_seconds=RETENTION_SECONDS,
    spread_seconds=6.0,
    run=trim_events,
    counts="event",
)


def steps_under(policies: Policies) -> tuple[Step, ...]:
    """What is to be done under these policies: the log is trimmed only if they say how long it is kept."""
    return DEFAULT_STEPS if policies.keep_events_seconds is None else (*DEFAULT_STEPS, TRIM_EVENTS)


async def run(manager: JobManager) -> Maintained:
    """Each step once, in order."""
    results: dict[str, Any] = {}
    for step in steps_under(manager.policies):
        results |= (await step.run(manager)).results
    return Maintained(**results)
