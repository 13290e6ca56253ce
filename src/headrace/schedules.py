"""Jobs that come by themselves: when they are due, and what becomes of ticks that were missed. Pure.

A tick is a moment at which a schedule is due. What a schedule submits at a tick has an id that follows
from the schedule and the tick alone, so however many hosts submit it, there is one job.
"""

from __future__ import annotations

import enum
import functools
import itertools
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from headrace import codec, retry, validation
from headrace.clock import from_us, to_us
from headrace.errors import InvalidSchedule, StoreCorrupt
from headrace.model import DEFAULT_QUEUE, Priority
from headrace.spec import JobSpec

INTERVAL_SECONDS_MIN = 1.0
GRACE_SECONDS_DEFAULT = 60.0
MISSED_TICKS_MAX = 1000
PAYLOAD_BYTES_MAX = 64 << 10
"""Every worker reads every schedule again and again: what is large belongs elsewhere."""
EXPRESSION_CHARS_MAX = 256
TAG = "schedule"
"""The jobs of a schedule carry the tag `schedule=<its name>`."""

_NAMESPACE = uuid.UUID("0b3d4c5e-6f0a-5c1e-9a53-2f6b8d1c7e40")
_OF_ONE_JOB = ("id", "key", "run_at", "delay_seconds", "after")
"""What a description may say of one job, but not of the jobs of every tick."""
_HOOKS = ("on_success", "on_failure")


class Cron(msgspec.Struct, frozen=True, tag_field="kind", tag="cron"):
    """A cron expression, read in a time zone: minute, hour, day, month, weekday; or a second before them.

    When clocks are put forward, what falls into the gap comes at its end; when they are put back, it
    comes once, the first time. That is for expressions of five fields that name an hour and a minute:
    those that begin either with a star, or have seconds, follow the clock on the wall, so they come
    twice in the repeated hour and not at all in the one left out.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        validation.check_text(self.expression, "the cron expression", EXPRESSION_CHARS_MAX)
        _check_expression(self.expression)
        _zone(self.zone)

    def ticks(self, after: datetime, created_at: datetime) -> Iterator[datetime]:  # noqa: ARG002 - one signature for both
        """Every tick later than `after`, in order, in UTC."""
        latest = after
        for local in CronSim(self.expression, after.astimezone(_zone(self.zone))):
            moment = local.astimezone(UTC)
            # Begun in the second half of a repeated hour, it gives ticks of the first half.
            if moment > latest:
                latest = moment
                yield moment


class Every(msgspec.Struct, frozen=True, tag_field="kind", tag="every"):
    """An interval: at `start`, and whenever so many seconds have passed since. Knows no time zone.

    Without a start it counts from the creation of its schedule, and is first due one interval later.
    """

    seconds: float
    start: datetime | None = None

    def __post_init__(self) -> None:
        if validation.check_seconds(self.seconds, "the interval") < INTERVAL_SECONDS_MIN:
            raise InvalidSchedule(
                f"the interval is {self.seconds} seconds; the shortest is {INTERVAL_SECONDS_MIN:.0f}; "
                f"{validation.UNCHANGED}"
            )
        if self.start is not None:
            validation.check_time(self.start, "the start of the interval")

    def ticks(self, after: datetime, created_at: datetime) -> Iterator[datetime]:
        """Every tick later than `after`, in order, in UTC."""
        first = to_us(self.start or created_at)
        step = round(self.seconds * 1_000_000)
        number = max((to_us(after) - first) // step + 1, 0)
        return (from_us(first + count * step) for count in itertools.count(number))


When = Cron | Every


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
        raise InvalidSchedule(f"{when!r} is neither Cron nor Every; {validation.UNCHANGED}")
    checked = _check_job(job)
    return Schedule(
        name=validation.check_name(name, "name of the schedule"),
        tenant=validation.check_name(tenant if job.tenant is None else job.tenant, "tenant"),
        when=when,
        job=checked,
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


def is_same(one: Schedule, other: Schedule) -> bool:
    """Whether both submit the same at the same times, by the same rules."""
    return _definition(one) == _definition(other)


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


# --- as stored -----------------------------------------------------------------------------------


class _Template(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a description says of the jobs of every tick, under the same names."""

    type: str
    payload: msgspec.Raw = msgspec.Raw(b"null")
    queue: str = DEFAULT_QUEUE
    priority: int = Priority.NORMAL
    tags: tuple[str, ...] = ()
    limit_key: str | None = None
    max_attempts: int | UnsetType | None = UNSET
    lease_seconds: float | UnsetType | None = UNSET
    timeout_seconds: float | UnsetType | None = UNSET
    lifetime_seconds: float | UnsetType | None = UNSET
    backoff: retry.StoredBackoff | None = None
    correlation_id: str | None = None
    callback_url: str | None = None
    on_success: tuple[_Template, ...] = ()
    on_failure: tuple[_Template, ...] = ()


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as JSON."""

    name: str
    tenant: str
    when: When
    job: _Template
    misfire: Misfire
    grace_seconds: float
    paused: bool
    created_at: datetime
    done_until: datetime
    last_tick: datetime | None


_decoder = msgspec.json.Decoder(_Stored)


def encode(schedule: Schedule) -> bytes:
    fields = {name: getattr(schedule, name) for name in _Stored.__struct_fields__}
    return msgspec.json.encode(_Stored(**fields | {"job": _template(schedule.job)}))


def decode(encoded: bytes, name: str) -> Schedule:
    """What `encode` was given.

    Raises StoreCorrupt, which tells the name, or InvalidSchedule for a zone that this host does not know.
    """
    try:
        stored = _decoder.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreCorrupt(
            f"schedule {name} cannot be read: {error}; it was left as it is: "
            "remove it, or let the version of Headrace that wrote it read it"
        ) from error
    fields = {name: getattr(stored, name) for name in _Stored.__struct_fields__}
    return Schedule(**fields | {"job": _spec(stored.job)})


def _template(job: JobSpec) -> _Template:
    fields = {name: getattr(job, name) for name in _Template.__struct_fields__}
    fields["payload"] = msgspec.Raw(codec.encode(job.payload, limit=PAYLOAD_BYTES_MAX))
    for hooks in _HOOKS:
        fields[hooks] = tuple(map(_template, fields[hooks]))
    return _Template(**fields)


def _spec(template: _Template) -> JobSpec:
    fields = {name: getattr(template, name) for name in _Template.__struct_fields__}
    fields["payload"] = codec.decode(bytes(template.payload))
    for hooks in _HOOKS:
        fields[hooks] = tuple(map(_spec, fields[hooks]))
    return JobSpec(**fields)


def _definition(schedule: Schedule) -> bytes:
    """The part that its owner wrote, numbers as they are stored, the names of every object in order."""
    stored = _decoder.decode(encode(schedule))
    rules = msgspec.json.encode((stored.when, stored.misfire, stored.grace_seconds, stored.job))
    return msgspec.json.encode(msgspec.json.decode(rules), order="sorted")


# --- checks and search ---------------------------------------------------------------------------


def _check_job(job: object) -> JobSpec:
    """The description as it will come back from the store."""
    if not isinstance(job, JobSpec):
        raise InvalidSchedule(f"{job!r} is not a JobSpec; {validation.UNCHANGED}")
    for name in _OF_ONE_JOB:
        if getattr(job, name) not in (None, ()):
            raise InvalidSchedule(
                f"the job of a schedule is submitted at every tick: leave out {name}; "
                f"{validation.UNCHANGED}"
            )
    return replace(
        job,
        tenant=None,
        payload=codec.decode(codec.encode(job.payload, limit=PAYLOAD_BYTES_MAX)),
        tags=validation.check_tags(job.tags),
        on_success=_check_hooks(job.on_success),
        on_failure=_check_hooks(job.on_failure),
    )


def _check_hooks(hooks: object) -> tuple[JobSpec, ...]:
    if not isinstance(hooks, Iterable):
        raise InvalidSchedule(f"hooks are a list, not {hooks!r}; {validation.UNCHANGED}")
    return tuple(map(_check_job, hooks))


@functools.lru_cache(maxsize=4096)
def _check_expression(expression: str) -> None:
    try:
        first = next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)), None)
    except CronSimError as error:
        raise InvalidSchedule(
            f"{expression!r} is not a cron expression: {str(error).lower()} "
            f"(minute, hour, day, month, weekday: '0 3 * * MON'); {validation.UNCHANGED}"
        ) from error
    if first is None:
        raise InvalidSchedule(
            f"the cron expression {expression!r} is never due; {validation.UNCHANGED}"
        )


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise InvalidSchedule(
            f"this host knows no time zone {name!r}: write it like Europe/Berlin, "
            f"or install the package tzdata if all are missing; {validation.UNCHANGED}"
        ) from error


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
