"""What a report is made of: figures and sentences, before anybody decides how they look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.report.wording import Unit

COMMANDS_SAY = "To run again what failed for good; without --dry-run it is done:"


class Column(NamedTuple):
    name: str
    unit: Unit = Unit.COUNT
    rank: int = 0
    """What goes first where there is little room; 0 never goes."""


class Trend(NamedTuple):
    """One line over time, for where no chart can be drawn."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Section:
    """One question and its answer."""

    key: str
    """The name of its chart in `headrace.report.charts.DRAWN`."""
    title: str
    says: str
    """What it shows, and what stands out: computed."""
    columns: Sequence[Column] = ()
    rows: Sequence[Sequence[Any]] = ()
    data: pa.Table | None = None
    """What the chart is drawn from; None: there is nothing to draw."""
    drawn: str = ""
    """What the chart shows, for those who do not see it."""
    trends: Sequence[Trend] = field(default=())
    commands: Sequence[Command] = field(default=())
    """What to run about it."""
    is_wide: bool = False
    """Its table needs the whole width of a page, and so its chart has it too."""

    @property
    def is_empty(self) -> bool:
        return not self.rows


class Figure(NamedTuple):
    """One of the figures at the head of the report."""

    name: str
    value: str
    detail: str
    is_bad: bool = False
    before: str = ""
    """The same figure of as much time before, if that is known."""


class Command(NamedTuple):
    """What to type in a shell, and for which jobs."""

    title: str
    command: str


class Advice(NamedTuple):
    """Something to consider, with what speaks for it. Nothing is ever changed by itself."""

    advice: str
    evidence: str
