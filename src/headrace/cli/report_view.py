"""A report as text that fits the terminal: sentences, sparklines and tables."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from rich.text import Text

from headrace.cli.exits import visible
from headrace.cli.output import Output
from headrace.cli.table import Column

if TYPE_CHECKING:
    from headrace.report import Report
    from headrace.report.section import Section

_LINE_MAX = 100
"""Longer lines are hard to read."""
_PIPE = 1000
"""No terminal is as wide: what is printed goes to a program, one line each."""
_SPARKS_MAX = 96
_WIDE = 120
"""From here on a table with long text has room for all its columns."""
_MORE_RANK = 2


def show(out: Output, report: Report) -> None:
    """Print the whole report."""
    from headrace.report import wording

    of = f", queue {wording.listed(report.queues)}" if report.queues else ""
    out.text(("Headrace report", "bold"), f"  {wording.span(report.since, report.until)}{of}")
    if report.note:
        _sentences(out, visible(report.note))
    out.text()
    width = max(len(one.name) for one in report.figures)
    worth = max(len(one.value) for one in report.figures)
    for one in report.figures:
        style = "bold red" if one.is_bad else "bold"
        told = f"{one.detail} ({one.before})" if one.before else one.detail
        detail = _cut(visible(told), out.width - width - worth - 4)
        out.text((f"{one.name:<{width}}  ", "dim"), (f"{one.value:>{worth}}", style), f"  {detail}")
    _head(out, "Advice")
    if not report.advice:
        _sentences(out, visible(report.verdict))
    else:
        for found in report.advice:
            _sentences(out, visible(found.advice), first="- ", rest="  ")
            _sentences(out, visible(found.evidence), first="  ", rest="  ", style="dim")
    for section in report.sections:
        _section(out, section)


def _section(out: Output, section: Section) -> None:
    from headrace.report import wording
    from headrace.report.section import COMMANDS_SAY
    from headrace.report.wording import Unit

    _head(out, section.title)
    _sentences(out, visible(section.says))
    # Of a single step there is nothing to see over time.
    trends = [trend for trend in section.trends if len(trend.values) > 1]
    width = max((len(trend.name) for trend in trends), default=0)
    for trend in trends:
        room = min(out.width - width - 2, _SPARKS_MAX)
        drawn = wording.sparkline(_fitted(trend.values, room))
        out.text((f"{visible(trend.name):<{width}}  ", "dim"), (drawn, "cyan"))
    if section.is_empty:
        return
    # Long text is worth more than what stands beside it.
    crowded = section.is_wide and out.width < _WIDE
    shown = [not crowded or column.rank < _MORE_RANK for column in section.columns]
    columns = [
        Column(
            name=column.name,
            right=column.unit.is_figure,
            rank=column.rank,
            cut=column.unit is Unit.TEXT,
        )
        for column in compress(section.columns, shown)
    ]
    rows = [
        [
            visible(wording.told(value, column.unit))
            for column, value in compress(zip(section.columns, row, strict=True), shown)
        ]
        for row in section.rows
    ]
    out.table(columns, rows)
    if section.commands:
        _sentences(out, COMMANDS_SAY)
        for one in section.commands:
            out.text(f"  {visible(one.title)}")
            for line in _command(one.command, out.width - 4):
                out.text((f"    {line}", "dim"))


def _command(command: str, width: int) -> Iterator[str]:
    """Lines that a shell takes as one, none broken within a word."""
    line = ""
    for word in map(shlex.quote, shlex.split(visible(command))):
        if line and len(line) + len(word) + 3 > width:
            yield f"{line} \\"
            line = ""
        line = f"{line} {word}" if line else word
    yield line


def _head(out: Output, title: str) -> None:
    out.text()
    out.text((title, "bold"))


def _sentences(out: Output, text: str, *, first: str = "", rest: str = "", style: str = "") -> None:
    width = out.width if out.width >= _PIPE else min(out.width, _LINE_MAX)
    for line in textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest):
        out.text(Text(line, style))


def _fitted(values: Sequence[float | None], room: int) -> list[float | None]:
    """As many as there is room for, each the largest of those it stands for: a peak is never lost."""
    each = max(-(-len(values) // max(room, 1)), 1)
    groups = [values[index : index + each] for index in range(0, len(values), each)]
    return [max((one for one in group if one is not None), default=None) for group in groups]


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: max(chars - 1, 0)] + "…"
