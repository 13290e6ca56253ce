"""`headrace schedule`: jobs that come by themselves, added, listed, paused, resumed, run and removed."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from typing import Any, TypeVar

import click
import msgspec
from msgspec import UNSET, UnsetType
from rich.text import Text

from headrace import duration, schedules
from headrace.cli.exits import Ended, Exit, one_line
from headrace.cli.output import id_text
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command, group
from headrace.cli.table import Column
from headrace.cli.values import ATTEMPTS, MOMENT, PAYLOAD, PRIORITY, SECONDS
from headrace.errors import ScheduleNotFound
from headrace.job_record import job_record
from headrace.model import DEFAULT_QUEUE, DEFAULT_TENANT, Priority
from headrace.schedules import GRACE_SECONDS_DEFAULT, Cron, Every, Misfire, Schedule, When
from headrace.spec import JobSpec

_T = TypeVar("_T")

NEXT_TICKS = 3
COLUMNS = (
    Column(name="name"),
    Column(name="when"),
    Column(name="type"),
    Column(name="queue", rank=3, usual=DEFAULT_QUEUE),
    Column(name="next"),
    Column(name="last", rank=1),
    Column(name="missed", rank=2, usual=Misfire.ONCE.value),
    Column(name="tenant", rank=4, usual=DEFAULT_TENANT),
)


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule. What `job` leaves out has its default; `next_ticks` are empty while it is paused."""

    name: str
    tenant: str
    when: When
    job: msgspec.Raw
    misfire: Misfire
    grace_seconds: float
    paused: bool
    created_at: datetime
    last_tick: datetime | None
    next_ticks: tuple[datetime, ...]


class ListRecord(msgspec.Struct, frozen=True, kw_only=True):
    schedules: tuple[ScheduleRecord, ...]


class RemovedRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    tenant: str
    removed: bool


@group(
    "schedule",
    examples=(
        "headrace schedule add nightly --cron '0 3 * * *' --zone Europe/Berlin --type report",
        "headrace schedule list",
    ),
)
def schedule() -> None:
    """Submit jobs at given times: add, list, pause, resume, run and remove schedules.

    Workers fire them, and so does headrace maintenance. However many there are, each tick is one job.
    """


def _check(
    *,
    cron: str | None,
    zone: str | None,
    every: float | None,
    start: datetime | None,
    misfire: str,
    grace: float | None,
    **_: object,
) -> None:
    if (cron is None) == (every is None):
        raise click.UsageError("give --cron EXPRESSION or --every DURATION, one of the two")
    if zone is not None and cron is None:
        raise click.UsageError("--zone is for --cron: an interval knows no time zone")
    if start is not None and every is None:
        raise click.UsageError("--start is for --every")
    if grace is not None and misfire != Misfire.SKIP:
        raise click.UsageError("--grace is for --misfire skip: the others fire however late")
    _when(cron, zone, every, start)


def _when(cron: str | None, zone: str | None, every: float | None, start: datetime | None) -> When:
    if cron is not None:
        return Cron(cron, zone or "UTC")
    assert every is not None  # checked before
    return Every(every, start)


@command(
    "add",
    examples=(
        "headrace schedule add nightly --cron '0 3 * * *' --zone Europe/Berlin --type report",
        "headrace schedule add poll --every 15m --type fetch --payload '{\"feed\": 7}' --misfire skip",
        "headrace schedule add poll --every 30m --type fetch --replace",
    ),
)
@click.argument("name")
@click.option("--type", "type", required=True, help="The type of the jobs.")
@click.option(
    "--cron",
    metavar="EXPRESSION",
    help="Minute, hour, day, month and weekday; or a second before them.",
)
@click.option("--zone", metavar="ZONE", help="The time zone of --cron: Europe/Berlin.  [UTC]")
@click.option("--every", type=SECONDS, metavar="DURATION", help="At this interval, 1s or more.")
@click.option(
    "--start", type=MOMENT, metavar="TIME", help="Count the interval from this time.  [now]"
)
@click.option("--payload", type=PAYLOAD, metavar="JSON|@FILE|-", help="What each job gets.  [null]")
@click.option("--queue", default=DEFAULT_QUEUE, show_default=True, help="Where the jobs wait.")
@click.option(
    "--priority",
    type=PRIORITY,
    default="normal",
    show_default=True,
    metavar="NAME|0-4",
    help="critical, high, normal, low, bulk, or 0 to 4; smaller runs first.",
)
@click.option("--tag", "tags", multiple=True, help="A tag of the jobs; may be repeated.")
@click.option(
    "--max-attempts",
    type=ATTEMPTS,
    default=UNSET,
    metavar="N|unlimited",
    help="How often a job may be tried.  [default: the queue's policy]",
)
@click.option(
    "--misfire",
    type=click.Choice([rule.value for rule in Misfire]),
    default=Misfire.ONCE.value,
    show_default=True,
    help="Ticks that were missed: skip them, one job for all, or a job for each.",
)
@click.option(
    "--grace",
    type=SECONDS,
    metavar="DURATION",
    help=f"With --misfire skip: how late a tick may be fired.  [{GRACE_SECONDS_DEFAULT:.0f}s]",
)
@click.option("--replace", is_flag=True, help="Put it in the place of one with the same name.")
@in_session(check=_check)
async def add(
    session: Session,
    *,
    name: str,
    type: str,
    cron: str | None,
    zone: str | None,
    every: float | None,
    start: datetime | None,
    payload: Any,
    queue: str,
    priority: int,
    tags: tuple[str, ...],
    max_attempts: int | UnsetType | None,
    misfire: str,
    grace: float | None,
    replace: bool,
) -> Exit:
    """Submit a job at every tick from now on.

    The same schedule again changes nothing. Another one under the same name is refused; with --replace
    it takes the place of the old, paused if that was paused.
    """
    made = await session.jobs.schedule(
        name,
        _when(cron, zone, every, start),
        JobSpec(
            type=type,
            payload=payload,
            queue=queue,
            priority=Priority(priority),
            tags=tags,
            max_attempts=max_attempts,
        ),
        misfire=Misfire(misfire),
        grace_seconds=GRACE_SECONDS_DEFAULT if grace is None else grace,
        replace=replace,
    )
    _print_one(session, made)
    return Exit.OK


@command("list", examples=("headrace schedule list", "headrace schedule list --json"))
@in_session()
async def list_schedules(session: Session) -> Exit:
    """List schedules with their next and last ticks."""
    found = await session.jobs.schedules()
    if session.out.as_json:
        records = tuple(_record(session, one) for one in found)
        session.out.document(ListRecord(schedules=records))
    elif not found:
        session.out.text("no schedules")
    else:
        session.out.table(COLUMNS, [_row(session, one) for one in found])
    return Exit.OK


@command("pause", examples=("headrace schedule pause nightly",))
@click.argument("name")
@in_session()
async def pause(session: Session, name: str) -> Exit:
    """Fire no tick of a schedule until it is resumed."""
    _print_one(session, await _named(session, name, session.jobs.pause_schedule(name)))
    return Exit.OK


@command("resume", examples=("headrace schedule resume nightly",))
@click.argument("name")
@in_session()
async def resume(session: Session, name: str) -> Exit:
    """Let a paused schedule go on.

    Ticks that it missed are passed over if it was added with --misfire skip; with once the last of them is
    fired now, with all each of them.
    """
    _print_one(session, await _named(session, name, session.jobs.resume_schedule(name)))
    return Exit.OK


@command("run", examples=("headrace schedule run nightly",))
@click.argument("name")
@in_session()
async def run(session: Session, name: str) -> Exit:
    """Submit what a schedule submits, now and beside its ticks. Each call makes one job."""
    job = await _named(session, name, session.jobs.run_schedule(name))
    if session.out.as_json:
        session.out.document(job_record(job))
    else:
        session.out.text(f"schedule {one_line(name)}: submitted ", id_text(job.id))
    return Exit.OK


@command("remove", examples=("headrace schedule remove nightly",))
@click.argument("name")
@in_session()
async def remove(session: Session, name: str) -> Exit:
    """Remove a schedule. The jobs it has submitted stay."""

    async def gone() -> None:
        if not await session.jobs.unschedule(name):
            raise ScheduleNotFound(name)

    await _named(session, name, gone())
    if session.out.as_json:
        tenant = session.jobs.tenant or DEFAULT_TENANT
        session.out.document(RemovedRecord(name=name, tenant=tenant, removed=True))
    else:
        session.out.text(f"schedule {name} is removed; the jobs it has submitted stay")
    return Exit.OK


for _command in (add, list_schedules, pause, resume, run, remove):
    schedule.add_command(_command)


async def _named(session: Session, name: str, call: Awaitable[_T]) -> _T:
    """The answer; if there is no such schedule here, but a tenant has one, the error says whose."""
    try:
        return await call
    except ScheduleNotFound as error:
        others = [one.tenant for one in await session.jobs.schedules() if one.name == name]
        if not others:
            raise
        raise Ended(
            Exit.NOT_FOUND,
            error.code,
            f"{error.message}; tenant {others[0]} has one: add --tenant {others[0]}",
        ) from error


def _print_one(session: Session, made: Schedule) -> None:
    if session.out.as_json:
        session.out.document(_record(session, made))
        return
    ticks = schedules.upcoming(made, session.jobs.clock.now())
    if made.paused:
        told = "is paused"
    elif ticks:
        told = f"is next due at {duration.stamp(ticks[0])}"
    else:
        told = "is never due again"
    session.out.text(
        ("schedule ", ""),
        (one_line(made.name), "bold"),
        f" ({_when_text(made.when)}, {made.job.type}, queue {made.job.queue}) {told}",
    )


def _row(session: Session, one: Schedule) -> tuple[Text | str, ...]:
    """The cells in the order of COLUMNS."""
    now = session.jobs.clock.now()
    ticks = schedules.upcoming(one, now)
    upcoming: Text | str = duration.age(ticks[0], now) if ticks else "never"
    return (
        Text(one.name, "bold"),
        _when_text(one.when),
        one.job.type,
        one.job.queue,
        Text("paused", "yellow") if one.paused else upcoming,
        "" if one.last_tick is None else duration.ago(one.last_tick, now),
        one.misfire.value,
        one.tenant,
    )


def _when_text(when: When) -> str:
    if isinstance(when, Cron):
        return f"{when.expression} {when.zone}"
    return f"every {duration.exact(when.seconds)}"


def _record(session: Session, one: Schedule) -> ScheduleRecord:
    now = session.jobs.clock.now()
    return ScheduleRecord(
        name=one.name,
        tenant=one.tenant,
        when=one.when,
        job=msgspec.Raw(schedules.encode_job(one.job)),
        misfire=one.misfire,
        grace_seconds=one.grace_seconds,
        paused=one.paused,
        created_at=one.created_at,
        last_tick=one.last_tick,
        next_ticks=() if one.paused else schedules.upcoming(one, now, NEXT_TICKS),
    )
