"""`headrace events`: the log of everything that happened, up to now or as it happens, and its trimming."""

from __future__ import annotations

from collections.abc import AsyncIterator

import click
from rich.text import Text

from headrace import duration
from headrace.cli.exits import Exit, one_line
from headrace.cli.output import state_style
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command_with_more
from headrace.cli.trimming import forget, readers, trim
from headrace.cli.values import SECONDS
from headrace.event_record import event_record
from headrace.model import Event, failure_told

LIMIT_DEFAULT = 100
_PAGE = 1000
_END = "end"
_KIND_WIDTH = 10


def _check(*, follow: bool, timeout: float | None, **_: object) -> None:
    if timeout is not None and not follow:
        raise click.UsageError("--timeout is for --follow: without it the command ends by itself")


@command_with_more(
    "events",
    examples=(
        "headrace events --job 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",
        "headrace events --after end --follow",
        "headrace events --follow --timeout 10s --json",
    ),
)
@click.option(
    "--after",
    default="",
    metavar="CURSOR",
    help="Only what came after this cursor; `end`: only what is new.  [default: from the beginning]",
)
@click.option("--job", metavar="ID", help="Only the events of this job.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new events as they come.")
@click.option(
    "--timeout",
    type=SECONDS,
    metavar="DURATION",
    help="With --follow: end when no event came for this long.  [default: never]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"End after this many.  [default: {LIMIT_DEFAULT}; with --follow none]",
)
@in_session(check=_check)
async def events(
    session: Session,
    *,
    after: str,
    job: str | None,
    follow: bool,
    timeout: float | None,
    limit: int | None,
) -> Exit:
    """Print the event log, oldest first. With --json each line is one event.

    Every event has a cursor: with --after CURSOR a reader goes on behind it, and misses nothing.
    """
    if after == _END:
        after = await session.jobs.tail()
    if job is not None:
        await session.jobs.get(job)  # a typing error would otherwise wait for ever
    most = limit if limit is not None or follow else LIMIT_DEFAULT
    stream = (
        session.jobs.follow(after=after, job_id=job, idle_seconds=timeout)
        if follow
        else _stored(session, after, job, most or LIMIT_DEFAULT)
    )
    last = await _print(session, stream, most)
    if not session.out.as_json and not follow:
        await _print_rest(session, last, job)
    return Exit.OK


for _command in (trim, readers, forget):
    events.add_command(_command)


async def _stored(
    session: Session, after: str, job: str | None, limit: int
) -> AsyncIterator[Event]:
    """What the log holds, page by page: a limit may be larger than what one read should bring."""
    left = limit
    while left > 0:
        page = await session.jobs.events(after=after, job_id=job, limit=min(left, _PAGE))
        for event in page:
            yield event
            after = event.cursor
        if len(page) < min(left, _PAGE):
            return
        left -= len(page)


async def _print(session: Session, stream: AsyncIterator[Event], most: int | None) -> Event | None:
    """Print each as it comes; the last one printed."""
    printed = 0
    last = None
    async for event in stream:
        if session.out.as_json:
            session.out.line(event_record(event))
        else:
            session.out.text(_line(event))
        last = event
        printed += 1
        if printed == most:
            break
    return last


async def _print_rest(session: Session, last: Event | None, job: str | None) -> None:
    if last is None:
        session.out.text("no events")
    elif await session.jobs.events(after=last.cursor, job_id=job, limit=1):
        session.out.text((f"more: add --after {last.cursor}", "dim"))


def _line(event: Event) -> Text:
    return Text.assemble(
        (duration.stamp_ms(event.at), "dim"),
        "  ",
        (f"{event.kind.value:<{_KIND_WIDTH}}", state_style(event.after)),
        "  ",
        (event.job_id, "bold"),
        f"  {event.type}",
        (_details(event), "dim"),
    )


def _details(event: Event) -> str:
    told = []
    if event.attempt:
        told.append(f"attempt {event.attempt}")
    if event.worker is not None and event.wait_us is not None:
        told.append(f"by {event.worker} after {duration.brief(event.wait_us / 1e6)}")
    if event.run_us is not None:
        told.append(f"ran {duration.brief(event.run_us / 1e6)}")
    if event.message is not None:
        told.append(one_line(failure_told(event.code, event.message)))
    return f"  {', '.join(told)}" if told else ""
