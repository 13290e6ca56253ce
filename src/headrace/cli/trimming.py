"""`headrace events trim`, `readers` and `forget`: the end of old events, and who they are kept for."""

from __future__ import annotations

from datetime import datetime

import click
import msgspec
from rich.text import Text

from headrace import duration
from headrace.cli.exits import Ended, Exit, one_line
from headrace.cli.progress import progress
from headrace.cli.selection import dry_run_option
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.table import Column
from headrace.cli.values import SECONDS
from headrace.manager import Lag, Reader, Trimmed
from headrace.validation import LIMIT_MAX

_ROUND = 2000
COLUMNS = (
    Column(name="reader"),
    Column(name="behind", right=True),
    Column(name="since"),
    Column(name="last heard of", rank=1),
    Column(name="label", rank=2, cut=True, usual=""),
)


class TrimmedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How many events went, or (dry run) would go; and the readers without which more would."""

    dry_run: bool
    trimmed: int
    held_back_by: tuple[str, ...]


class ReaderRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A reader, up to where it holds the log, and how far that is behind the log's end."""

    name: str
    label: str | None
    cursor: str
    since: datetime
    reached_at: datetime
    behind: Lag


class ReadersRecord(msgspec.Struct, frozen=True, kw_only=True):
    readers: tuple[ReaderRecord, ...]


class ForgottenRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    forgotten: bool


@command(
    "trim",
    examples=(
        "headrace events trim --keep 7d",
        "headrace events trim --keep 7d --dry-run",
        "headrace events trim --keep 30d --without-readers",
    ),
)
@click.option(
    "--keep",
    type=SECONDS,
    required=True,
    metavar="DURATION",
    help="Keep what is younger than this (90s, 5m, 2h, 30d).",
)
@click.option(
    "--without-readers",
    is_flag=True,
    help="Trim also where no reader is registered: what goes is gone for good.",
)
@dry_run_option
@in_session()
async def trim(session: Session, *, keep: float, without_readers: bool, dry_run: bool) -> Exit:
    """Delete old events from the log, once every reader holds them.

    Oldest first, up to the first that is younger than --keep or that a reader (such as the lake of a
    pipeline) does not hold yet. Jobs stay as they are.
    """
    gone = 0
    with progress("counting" if dry_run else "trimming", "events") as bar:
        while True:
            done = await session.jobs.trim_events(
                keep,
                without_readers=without_readers,
                limit=LIMIT_MAX if dry_run else _ROUND,
                dry_run=dry_run,
            )
            gone += done.events
            bar.show(gone)
            if dry_run or done.events < _ROUND:
                break
    _print_trimmed(session, Trimmed(events=gone, held_back_by=done.held_back_by), dry_run=dry_run)
    return Exit.OK


def _print_trimmed(session: Session, done: Trimmed, *, dry_run: bool) -> None:
    if session.out.as_json:
        record = TrimmedRecord(dry_run=dry_run, trimmed=done.events, held_back_by=done.held_back_by)
        session.out.document(record)
        return
    session.out.text(f"{_events(done.events)} {'would be ' if dry_run else ''}trimmed")
    for name in done.held_back_by:
        session.out.text("  the rest waits for reader ", (one_line(name), "bold"))


@command("readers", examples=("headrace events readers", "headrace events readers --json"))
@in_session()
async def readers(session: Session) -> Exit:
    """List who relies on the log, and how far each is behind.

    Nothing is trimmed that one of them does not hold.
    """
    found = [(one, await session.jobs.reader_lag(one)) for one in await session.jobs.readers()]
    if session.out.as_json:
        session.out.document(ReadersRecord(readers=tuple(_record(*one) for one in found)))
    elif not found:
        session.out.text("no readers")
    else:
        session.out.table(COLUMNS, [_row(session, *one) for one in found])
    return Exit.OK


@command("forget", examples=("headrace events forget lake:1f0c2f7e",))
@click.argument("name")
@in_session()
async def forget(session: Session, name: str) -> Exit:
    """Forget a reader: from now on the log is trimmed whatever it holds.

    One that still reads registers itself again.
    """
    if not await session.jobs.forget_reader(name):
        raise Ended(Exit.NOT_FOUND, "READER_NOT_FOUND", f"there is no reader {name}")
    if session.out.as_json:
        session.out.document(ForgottenRecord(name=name, forgotten=True))
    else:
        session.out.text(f"reader {one_line(name)} is forgotten")
    return Exit.OK


def _row(session: Session, reader: Reader, behind: Lag) -> tuple[Text | str, ...]:
    """The cells in the order of COLUMNS."""
    now = session.jobs.clock.now()
    if behind.trimmed:
        since: Text | str = Text("the log has lost what it needs next", "bold red")
    elif behind.oldest_at is None:
        since = "holds all"
    else:
        since = duration.ago(behind.oldest_at, now)
    return (
        Text(one_line(reader.name), "bold"),
        f"{_events(behind.events)}{' or more' if behind.at_least else ''}",
        since,
        duration.ago(reader.reached_at, now),
        one_line(reader.label or ""),
    )


def _record(reader: Reader, behind: Lag) -> ReaderRecord:
    return ReaderRecord(
        name=reader.name,
        label=reader.label,
        cursor=reader.cursor,
        since=reader.since,
        reached_at=reader.reached_at,
        behind=behind,
    )


def _events(count: int) -> str:
    return f"{count} event{'' if count == 1 else 's'}"
