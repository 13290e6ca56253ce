"""What each task of a fleet has done, counted from the event log: events name the worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from headrace.model import LEASED, Event, EventKind
from headrace.spark.fleet.names import place_of

_COLUMN_OF_KIND: Mapping[EventKind, str] = {
    EventKind.COMPLETED: "completed",
    EventKind.FAILED: "failed",
    EventKind.DEAD: "failed",
    EventKind.RETRYING: "failed",
    EventKind.LOST: "lost",
    EventKind.ABANDONED: "lost",
    EventKind.RELEASED: "given_back",
    EventKind.SNOOZED: "given_back",
    EventKind.CANCELLED: "given_back",
}


class TaskTally(msgspec.Struct, frozen=True, omit_defaults=True):
    """Claims by one task, over all its attempts, and how they ended."""

    attempt: int = 0
    """The latest that has claimed something."""
    leased: int = 0
    completed: int = 0
    failed: int = 0
    """Failed attempts of jobs, those that are tried again included."""
    lost: int = 0
    """Leases that lapsed."""
    given_back: int = 0
    """Released, snoozed or cancelled."""

    @property
    def holding(self) -> int:
        return self.leased - self.completed - self.failed - self.lost - self.given_back


def tallied(
    before: Mapping[int, TaskTally], events: Iterable[Event], fleet: str, run: str
) -> dict[int, TaskTally]:
    """The tallies with these events counted, which must not have been counted before."""
    tallies = dict(before)
    for event in events:
        place = place_of(event.worker, fleet, run)
        column = _column(event)
        if place is None or column is None:
            continue
        tally = tallies.get(place.task, TaskTally())
        tallies[place.task] = replace(
            tally,
            attempt=max(tally.attempt, place.attempt),
            **{column: getattr(tally, column) + 1},
        )
    return tallies


def _column(event: Event) -> str | None:
    if event.kind is EventKind.LEASED:
        return "leased"
    if event.before in LEASED and event.after not in LEASED:
        return _COLUMN_OF_KIND.get(event.kind)
    return None
