"""`headrace errors`: the errors of the last hours or days, those that mean the same together."""

from __future__ import annotations

from datetime import datetime, timedelta

import click
import msgspec
from rich.text import Text

from headrace import duration
from headrace.cli.exits import Exit, one_line
from headrace.cli.output import id_text
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.table import Column
from headrace.cli.values import SECONDS
from headrace.model import Category
from headrace.rollups import ErrorGroup

DAY_SECONDS = 86_400.0
COLUMNS = (
    Column(name="group"),
    Column(name="errors", right=True),
    Column(name="type"),
    Column(name="category", rank=2),
    Column(name="code", rank=1, usual=""),
    Column(name="last", rank=3),
    Column(name="sample", rank=4),
    Column(name="message", cut=True, usual=""),
)


class ErrorGroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Errors that mean the same. `group` is what `redrive --error` takes; `fatal`: that ended the job."""

    group: str
    count: int
    fatal: int
    type: str
    category: Category | None
    code: str | None
    message: str | None
    queues: tuple[str, ...]
    first_at: datetime
    last_at: datetime
    sample: str
    trend: tuple[int, ...]


class ErrorsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`total`: how many groups there are; `counted_until`: the time of the last event that is counted."""

    since: datetime
    until: datetime
    counted_until: datetime | None
    total: int
    groups: tuple[ErrorGroupRecord, ...]


@command("errors", examples=("headrace errors", "headrace errors --since 2h --queue mail --json"))
@click.option(
    "--since",
    type=SECONDS,
    default=DAY_SECONDS,
    metavar="DURATION",
    help="Of so much time up to now, 31d at most.  [24h]",
)
@click.option("--queue", "queues", multiple=True, help="Of this queue; may be repeated.")
@click.option("--type", "types", multiple=True, help="Of this type; may be repeated.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="So many groups."
)
@in_session()
async def errors(
    session: Session, since: float, queues: tuple[str, ...], types: tuple[str, ...], limit: int
) -> Exit:
    """List the groups of errors that mean the same, the most frequent first.

    They are counted by the maintenance of any worker. GROUP is what redrive --error takes.
    """
    now = session.jobs.clock.now()
    found = await session.jobs.error_groups(
        now - timedelta(seconds=since), queues=queues or None, types=types or None, limit=limit
    )
    if session.out.as_json:
        session.out.document(
            ErrorsRecord(
                since=found.since,
                until=found.until,
                counted_until=found.counted_until,
                total=found.total,
                groups=tuple(map(_record, found.groups)),
            )
        )
    elif not found.groups:
        counted = (
            "" if found.counted_until else "; nothing has been counted yet: is a worker running?"
        )
        session.out.text("no errors", counted)
    else:
        session.out.table(COLUMNS, [_cells(one, now) for one in found.groups])
        if found.total > len(found.groups):
            session.out.text(f"and {found.total - len(found.groups)} other groups")
    return Exit.OK


def _cells(one: ErrorGroup, now: datetime) -> tuple[Text | str, ...]:
    return (
        one.fingerprint,
        str(one.count),
        one.type,
        one.category or "",
        one.code or "",
        duration.ago(one.last_at, now),
        id_text(one.sample),
        "(encrypted)" if one.message is None else one_line(one.message),
    )


def _record(one: ErrorGroup) -> ErrorGroupRecord:
    same = {
        name: getattr(one, name) for name in ErrorGroupRecord.__struct_fields__ if name != "group"
    }
    return ErrorGroupRecord(group=one.fingerprint, **same)
