"""Jobs that come by themselves: what is due, and what becomes of ticks that were missed. Pure.

A tick is a moment at which a schedule is due. What a schedule submits at a tick has an id that follows
from the schedule and the tick alone, so however many hosts submit it, there is one job.
"""

from __future__ import annotations

import enum
import itertools
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from headrace import codec, input_checks, validation
from headrace.clock import to_us
from headrace.errors import InvalidSchedule
from headrace.schedules.when import Cron, Every, When
from headrace.spec import JobSpec, checked

GRACE_SECONDS_DEFAULT = 60.0
MISSED_TICKS_MAX = 1000
PAYLOAD_BYTES_MAX = 64 << 10
"""Every worker reads every schedule again and again: what is large belongs elsewhere."""
TAG = "schedule"
"""The jobs of a schedule carry the tag `schedule=<its name>`."""

_NAMESPACE = uuid.UUID("0b3d4c5e-6f0a-5c1e-9a53-2f6b8d1c7e40")
_OF_ONE_JOB = ("id", "key", "key_hold_seconds", "run_at", "delay_seconds", "after")
"""What a description may say of one job, but not of the jobs of every tick."""


class Misfire(enum.StrEnum):
    """What becomes of ticks that nobody fired in time, because no worker ran or the schedule was paused."""

    SKIP = "skip"
    """The last of them is fired if it is not older than the grace time; the others never are."""
    ONCE = "once"
    """The last of them is fired, however old: one job for all."""
    ALL = "all"
    """Each is fired, the last 1000 of them at most."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What is submitted at each tick. Names are unique within a tenant."""

    name: str
    tenant: str
    when: When
    job: JobSpec
    misfire: Misfire = Misfire.ONCE
    grace_seconds: float = GRACE_SECONDS_DEFAULT
    """Counts for Misfire.SKIP only."""
    paused: bool = False
    created_at: datetime
    """When it was added or, if that was later, its `when` was changed."""
    done_until: datetime
    """Ticks up to here have been dealt with: fired, or passed over."""
    last_tick: datetime | None = None
    """The last tick that was fired."""


class Due(msgspec.Struct, frozen=True):
    """What is to be done about a schedule now."""

    ticks: tuple[datetime, ...] = ()
    """To be fired, the oldest first."""
    done_until: datetime | None = None
    """The last tick that has passed, fired or not. None: none has."""


def declare(
    name: str,
    when: When,
    job: JobSpec,
    *,
    tenant: str,
    now: datetime,
    misfire: Misfire = Misfire.ONCE,
    grace_seconds: float = GRACE_SECONDS_DEFAULT,
) -> Schedule:
    """A checked schedule that begins now, of the job's tenant or else of the given one.

    Raises the InvalidInput that says what is wrong.
    """
    if not isinstance(when, Cron | Every):
        raise InvalidSchedule(
            f"{validation.told(when)} is neither Cron nor Every; {validation.UNCHANGED}"
        )
    template = _check_job(job)
    return Schedule(
        name=validation.check_name(name, "name of the schedule"),
        tenant=validation.check_name(tenant if job.tenant is None else job.tenant, "tenant"),
        when=when,
        job=template,
        misfire=validation.check_word(misfire, Misfire),
        grace_seconds=validation.check_seconds(grace_seconds, "grace_seconds", zero=True),
        created_at=now,
        done_until=now,
    )


def due_ticks(schedule: Schedule, now: datetime) -> Due:
    """The ticks to fire now, by the schedule's own rule for those that were missed."""
    if schedule.paused:
        return Due()
    most = MISSED_TICKS_MAX if schedule.misfire is Misfire.ALL else 1
    passed = _last_ticks(schedule, now, most)
    if not passed:
        return Due()
    late = now - passed[-1] > timedelta(seconds=schedule.grace_seconds)
    if schedule.misfire is Misfire.SKIP and late:
        return Due((), passed[-1])
    return Due(passed, passed[-1])


def upcoming(schedule: Schedule, now: datetime, count: int = 1) -> tuple[datetime, ...]:
    """The next ticks after now, paused or not; fewer than asked for when it ends."""
    after = max(now, schedule.done_until)
    return tuple(itertools.islice(schedule.when.ticks(after, schedule.created_at), count))


def resumed(schedule: Schedule, now: datetime) -> Schedule:
    """The schedule going on. What it missed while it was paused is passed over if its rule is to skip."""
    if not schedule.paused:
        return schedule
    skips = schedule.misfire is Misfire.SKIP
    done_until = max(now, schedule.done_until) if skips else schedule.done_until
    return replace(schedule, paused=False, done_until=done_until)


def replaced(old: Schedule, new: Schedule) -> Schedule:
    """The new schedule in the place of the old: still paused if that was, and at the same tick.

    With another `when` it begins anew.
    """
    if old.when != new.when:
        return replace(new, paused=old.paused)
    return replace(
        new,
        paused=old.paused,
        created_at=old.created_at,
        done_until=old.done_until,
        last_tick=old.last_tick,
    )


def tick_id(schedule: Schedule, tick: datetime) -> str:
    """The id of the job for a tick: the same wherever and whenever it is computed.

    A schedule that is added again under its old name is another one.
    """
    names = (schedule.tenant, schedule.name, to_us(schedule.created_at), to_us(tick))
    return str(uuid.uuid5(_NAMESPACE, msgspec.json.encode(names).decode()))


def tick_spec(schedule: Schedule, tick: datetime) -> JobSpec:
    """What is submitted for a tick."""
    return replace(
        schedule.job,
        id=tick_id(schedule, tick),
        tenant=schedule.tenant,
        run_at=tick,
        tags=(*schedule.job.tags, f"{TAG}={schedule.name}"),
    )


def _check_job(job: object) -> JobSpec:
    """The description as it will come back from the store."""
    if not isinstance(job, JobSpec):
        raise InvalidSchedule(f"{validation.told(job)} is not a JobSpec; {validation.UNCHANGED}")
    input_checks.check_fields(job)
    for name in _OF_ONE_JOB:
        if getattr(job, name) not in (None, (), []):
            raise InvalidSchedule(
                f"the job of a schedule is submitted at every tick: leave out {name}; "
                f"{validation.UNCHANGED}"
            )
    plain = replace(
        job,
        tenant=None,
        on_success=_check_hooks(job.on_success),
        on_failure=_check_hooks(job.on_failure),
    )
    payload = codec.decode(codec.encode(job.payload, limit=PAYLOAD_BYTES_MAX))
    return replace(checked(plain), payload=payload, after=())


def _check_hooks(hooks: object) -> tuple[JobSpec, ...]:
    if not isinstance(hooks, Iterable):
        raise InvalidSchedule(
            f"hooks are a list, not {validation.told(hooks)}; {validation.UNCHANGED}"
        )
    given = list(hooks)
    if any(isinstance(hook, JobSpec) and hook.tenant is not None for hook in given):
        raise InvalidSchedule(
            f"a hook belongs to the tenant of its schedule: leave out tenant; {validation.UNCHANGED}"
        )
    return tuple(map(_check_job, given))


def _last_ticks(schedule: Schedule, now: datetime, count: int) -> tuple[datetime, ...]:
    """The last `count` of the ticks not dealt with that have passed; all of them if they are fewer.

    Halves the time in question until what is left of it holds so many: after a year without a worker,
    a tick every second costs no more than a few thousand steps.
    """

    def first(after: datetime, most: int) -> tuple[datetime, ...]:
        ticks = itertools.islice(schedule.when.ticks(after, schedule.created_at), most)
        return tuple(itertools.takewhile(lambda tick: tick <= now, ticks))

    low, high = schedule.done_until, now
    ticks = first(low, count + 1)
    while len(ticks) > count:
        middle = low + (high - low) / 2
        later = first(middle, count + 1)
        if len(later) >= count:
            low, ticks = middle, later
        else:
            high = middle
    return ticks
