"""A job's attempts on one axis of time: who had the lease, how each ended, and what was refused. Pure.

Times stretch with the page, words do not: each attempt is a row of words with a bar beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from headrace import duration
from headrace.history import Attempt
from headrace.model import EventKind, State

_WIDTH_MIN = 0.4
"""Percent: what took no time can still be seen."""
_AT_NO_COST = frozenset({EventKind.SNOOZED, EventKind.RELEASED})


@dataclass(frozen=True)
class Refused:
    """A write that came too late: another worker had the lease, or the job had ended."""

    at: datetime
    worker: str | None
    attempt: int | None
    """Whose write it was; None, as the worker: the write did not say."""
    verb: str
    code: str
    held_by: str | None = None
    held_attempt: int | None = None
    """Who had the job by then, or had it last."""


@dataclass(frozen=True)
class Axis:
    """From the job's submission to its end, or to now."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin).total_seconds(), 0.001)

    def percent(self, at: datetime) -> float:
        share = (at - self.begin).total_seconds() / self.seconds
        return min(100.0, max(0.0, share * 100))


@dataclass(frozen=True)
class Lane:
    """One attempt and its place on the axis."""

    attempt: Attempt
    axis: Axis
    refused: Sequence[Refused] = ()

    @property
    def look(self) -> str:
        """The state whose colour it has."""
        one = self.attempt
        return State.PENDING if one.outcome in _AT_NO_COST else one.state

    @property
    def told(self) -> str:
        """How it ended, in a word."""
        one = self.attempt
        return one.state if one.outcome is None else one.outcome

    def draw(self) -> Markup:
        """Its wait, its lease, and a mark for each write of it that was refused."""
        one, axis = self.attempt, self.axis
        begin = axis.percent(one.leased_at)
        end = axis.percent(one.ended_at or axis.end)
        waited = timedelta(microseconds=one.wait_us or 0)
        before = axis.percent(one.leased_at - waited)
        title = f"attempt {one.attempt} of {one.worker}: {self.told}"
        drawn = [
            Markup('<rect class="wait" x="{:.3f}%" y="8" width="{:.3f}%" height="4"/>').format(
                before, max(0.0, begin - before)
            ),
            Markup(
                '<rect class="fill {}" x="{:.3f}%" y="3" width="{:.3f}%" height="14" rx="2">'
                "<title>{}</title></rect>"
            ).format(self.look, min(begin, 100 - _WIDTH_MIN), max(_WIDTH_MIN, end - begin), title),
        ]
        drawn += (
            _mark(
                axis.percent(late.at),
                f"{late.worker or 'a worker'} tried to {late.verb} at {duration.stamp_ms(late.at)}: "
                f"refused, {late.code}",
            )
            for late in self.refused
        )
        return Markup(
            '<svg class="attempt" height="20" role="img" aria-label="{}">{}</svg>'
        ).format(title, Markup("").join(drawn))


def strays(refused: Sequence[Refused], shown: Sequence[Lane]) -> list[Refused]:
    """Those that stand with no attempt."""
    known = {lane.attempt.attempt for lane in shown}
    return [late for late in refused if late.attempt not in known]


def lanes(
    created: datetime, found: Sequence[Attempt], until: datetime, refused: Sequence[Refused] = ()
) -> list[Lane]:
    """One for each attempt, all on one axis that ends with the last thing that happened, or at `until`."""
    ends = [one.ended_at or until for one in found] + [late.at for late in refused]
    is_over = bool(found) and found[-1].ended_at is not None
    axis = Axis(created, max(ends) if is_over and ends else max([until, *ends]))
    return [
        Lane(one, axis, [late for late in refused if late.attempt == one.attempt]) for one in found
    ]


def _mark(percent: float, told: str) -> Markup:
    return Markup(
        '<svg x="{:.3f}%" y="0" width="1" height="20" overflow="visible"><g class="refused"><title>{}</title>'
        '<path d="M0 1V19"/><path d="M-4 1H4L0 6Z"/></g></svg>'
    ).format(percent, told)
