"""The steps that every worker runs. Each is one verb of the manager, and all of them are safe together."""

from __future__ import annotations

from headrace.errors import NoReaders
from headrace.maintenance.step import Done, Step
from headrace.manager import JobManager
from headrace.manager.verbs.base import MAINTENANCE_LIMIT
from headrace.policy import Policies

REAP_SECONDS = 5.0
REAP_SECONDS_MIN = 1.0
REAPS_PER_LEASE = 6
LIFETIME_SECONDS = 10.0
SWEEP_SECONDS = 10.0
SCHEDULE_SECONDS = 10.0
"""How long a new schedule may go unnoticed; ticks of those that are known are waited for."""
RETENTION_SECONDS = 60.0


async def reap(manager: JobManager) -> Done:
    """Take back lapsed leases; and those, and other times, that a clock stamped which was set back since."""
    restamped = await manager.restamp()
    changed = await manager.reap(MAINTENANCE_LIMIT)
    return _done(restamped + len(changed.jobs), rest_seconds=reap_interval(manager.policies))


async def end_lifetimes(manager: JobManager) -> Done:
    """Let jobs past their lifetime die."""
    return _done(len((await manager.end_lifetimes(MAINTENANCE_LIMIT)).jobs))


async def sweep(manager: JobManager) -> Done:
    """Release what a crash left waiting for jobs that have ended."""
    return _done(await manager.sweep(MAINTENANCE_LIMIT))


async def fire_schedules(manager: JobManager) -> Done:
    """Submit what schedules have due, and rest until the next tick."""
    fired = await manager.fire_schedules(MAINTENANCE_LIMIT)
    rest = SCHEDULE_SECONDS
    if fired.next_due is not None:
        until = (fired.next_due - manager.clock.now()).total_seconds()
        rest = min(max(until, 0.0), SCHEDULE_SECONDS)
    troubles = frozenset(
        f"schedule {one.name} was not fired: {one.error.message}" for one in fired.unfired
    )
    return Done(count=len(fired.jobs), rest_seconds=rest, troubles=troubles)


async def trim_events(manager: JobManager) -> Done:
    """Trim the log of what is older than the policies say, and held by every reader."""
    try:
        return _done((await manager.trim_events(limit=MAINTENANCE_LIMIT)).events)
    except NoReaders as error:
        return Done(count=0, troubles=frozenset({error.message}))


async def retain(manager: JobManager) -> Done:
    """Delete ended jobs that are past their keep time."""
    return _done(sum((await manager.cleanup(limit=MAINTENANCE_LIMIT)).values()))


def reap_interval(policies: Policies) -> float:
    """A sixth of the shortest lease of any queue, within bounds: how late a lost job may be noticed."""
    leases = [policy.lease_seconds for policy in (policies.default, *policies.queues.values())]
    often = [seconds / REAPS_PER_LEASE for seconds in leases if seconds is not None]
    return max(min(REAP_SECONDS, *often), REAP_SECONDS_MIN) if often else REAP_SECONDS


def _done(count: int, rest_seconds: float | None = None) -> Done:
    """A run that was ended by its limit goes on at once."""
    return Done(count=count, rest_seconds=0.0 if count >= MAINTENANCE_LIMIT else rest_seconds)


DEFAULT_STEPS = (
    Step(name="reap", interval_seconds=REAP_SECONDS, spread_seconds=0.5, run=reap),
    Step(
        name="lifetimes", interval_seconds=LIFETIME_SECONDS, spread_seconds=1.0, run=end_lifetimes
    ),
    Step(name="sweep", interval_seconds=SWEEP_SECONDS, spread_seconds=1.0, run=sweep),
    Step(
        name="schedules", interval_seconds=SCHEDULE_SECONDS, spread_seconds=0.25, run=fire_schedules
    ),
    Step(name="retention", interval_seconds=RETENTION_SECONDS, spread_seconds=6.0, run=retain),
)

TRIM_EVENTS = Step(
    name="events", interval_seconds=RETENTION_SECONDS, spread_seconds=6.0, run=trim_events
)


def steps_under(policies: Policies) -> tuple[Step, ...]:
    """What is to be done under these policies: the log is trimmed only if they say how long it is kept."""
    return DEFAULT_STEPS if policies.keep_events_seconds is None else (*DEFAULT_STEPS, TRIM_EVENTS)
