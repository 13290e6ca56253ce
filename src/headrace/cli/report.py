"""`headrace report`: what the gold tables of a lake say, as text, as JSON, or as a page with charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace import duration
from headrace.cli import values
from headrace.cli.exits import Exit
from headrace.cli.output import Output
from headrace.cli.progress import progress
from headrace.cli.report_view import show
from headrace.cli.session import current_settings, refuse_tenant
from headrace.cli.settings import command
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.report import Report


class FigureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One of the figures at the head, as a person reads it."""

    name: str
    value: str
    detail: str
    before: str
    """The same of as much time before; empty if the lake does not know all of it."""
    is_bad: bool


class AdviceRecord(msgspec.Struct, frozen=True, kw_only=True):
    advice: str
    evidence: str


class CommandRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What to run about some jobs."""

    title: str
    command: str


class SectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One section: `rows` are figures as they are, durations in seconds, shares from 0 to 1."""

    section: str
    title: str
    says: str
    rows: Sequence[Mapping[str, Any]]
    commands: Sequence[CommandRecord]


class ReportRecord(msgspec.Struct, frozen=True, kw_only=True):
    since: datetime
    until: datetime
    note: str
    queues: Sequence[str]
    figures: Sequence[FigureRecord]
    advice: Sequence[AdviceRecord]
    sections: Sequence[SectionRecord]


def since_when(text: str) -> datetime | timedelta:
    """A time, or so long before the last event."""
    try:
        return timedelta(seconds=duration.parse(text))
    except (ValueError, OverflowError):
        pass
    try:
        return values.moment(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a duration nor a time: write 24h, 7d or 2026-12-01T09:00:00Z"
        ) from None


@command(
    "report",
    examples=(
        "headrace report --lake lake",
        "headrace report --lake lake --since 7d --queue mail --html report.html",
    ),
)
@click.option(
    "--lake",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    help="The lake's folder.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a page with charts: one file that needs nothing else.",
)
@click.option(
    "--since",
    type=values.Written("time", since_when),
    help="From this time on, or so long before the last event.  [default: 24h]",
)
@click.option("--queue", "queues", multiple=True, help="Of this queue; may be repeated.")
def report(
    lake: Path, html: Path | None, since: datetime | timedelta | None, queues: tuple[str, ...]
) -> Exit:
    """Report on what the pipeline's tables hold. Starts no Spark."""
    settings = current_settings()
    refuse_tenant(settings)
    out = Output(as_json=settings.json)
    if html is not None and not html.parent.is_dir():
        raise InvalidInput(
            f"{html} cannot be written: there is no folder {html.parent}; nothing was written"
        )
    built = _built(lake, since, queues)
    if html is not None:
        size = _write(built, html)
        if not out.as_json:
            out.text(f"wrote {html} ({size / 1000:,.0f} kB)")
    if out.as_json:
        out.document(_record(built))
    elif html is None:
        show(out, built)
    return Exit.OK


def _built(lake: Path, since: datetime | timedelta | None, queues: Sequence[str]) -> Report:
    try:
        from headrace.report import build, read
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return build(read(lake, since=since, queues=queues))


def _write(built: Report, html: Path) -> int:
    """How many bytes were written."""
    try:
        from headrace.report.page import page
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    with progress("drawing", "charts"):
        written = page(built).encode()
    try:
        html.write_bytes(written)
    except OSError as error:
        raise InvalidInput(
            f"{html} cannot be written: {error.strerror}; nothing was written"
        ) from error
    return len(written)


def _missing(error: ModuleNotFoundError) -> InvalidInput:
    return InvalidInput(
        f"reports need {error.name}, which is not installed: pip install 'headrace[report]'"
    )


def _record(built: Report) -> ReportRecord:
    return ReportRecord(
        since=built.since,
        until=built.until,
        note=built.note,
        queues=built.queues,
        figures=[
            FigureRecord(
                name=one.name,
                value=one.value,
                detail=one.detail,
                before=one.before,
                is_bad=one.is_bad,
            )
            for one in built.figures
        ],
        advice=[AdviceRecord(advice=one.advice, evidence=one.evidence) for one in built.advice],
        sections=[
            SectionRecord(
                section=one.key,
                title=one.title,
                says=one.says,
                rows=[
                    {column.name: value for column, value in zip(one.columns, row, strict=True)}
                    for row in one.rows
                ],
                commands=[
                    CommandRecord(title=each.title, command=each.command) for each in one.commands
                ],
            )
            for one in built.sections
        ],
    )
