"""Tallies as the pages show them: one row for each queue, and sums. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace.manager import Overview
from headrace.model import CLAIMABLE, LEASED, TERMINAL, State
from headrace.stores.base import Pause, Tally


@dataclass
class Depth:
    """How many jobs there are, of one queue of one tenant or of all."""

    tenant: str | None = None
    queue: str | None = None
    states: Counter[State] = field(default_factory=Counter)
    delayed: int = 0
    oldest_ready: datetime | None = None
    """Since when the first of those that are due has been."""
    paused: Pause | None = None
    is_limited: bool = False

    def add(self, tally: Tally) -> None:
        self.states[tally.state] += tally.jobs
        self.delayed += tally.delayed

    @property
    def total(self) -> int:
        return self.states.total()

    @property
    def ready(self) -> int:
        """Claimable now."""
        return sum(self.states[state] for state in CLAIMABLE) - self.delayed

    @property
    def running(self) -> int:
        return sum(self.states[state] for state in LEASED)

    @property
    def open(self) -> int:
        """Not ended."""
        return self.total - sum(self.states[state] for state in TERMINAL)

    @property
    def bad(self) -> int:
        return self.states[State.FAILED] + self.states[State.DEAD]


def by_queue(
    overview: Overview, pauses: Iterable[Pause] = (), limited: Iterable[str] = ()
) -> list[Depth]:
    """One for each tenant and queue; those with the most to do first."""
    rows: dict[tuple[str, str], Depth] = {}
    for tally in overview.tallies:
        place = (tally.tenant, tally.queue)
        rows.setdefault(place, Depth(tally.tenant, tally.queue)).add(tally)
    for place, seconds in overview.oldest_ready.items():
        row = rows.setdefault(place, Depth(*place))
        row.oldest_ready = overview.at - timedelta(seconds=seconds)
    held_back = {pause.queue: pause for pause in pauses}
    gated = frozenset(limited)
    for row in rows.values():
        assert row.queue is not None
        row.paused = held_back.get(row.queue)
        row.is_limited = row.queue in gated
    return sorted(rows.values(), key=lambda row: (-row.open, -row.total, row.queue, row.tenant))


def together(rows: Sequence[Depth]) -> Depth:
    whole = Depth()
    for row in rows:
        whole.states.update(row.states)
        whole.delayed += row.delayed
    oldest = [row.oldest_ready for row in rows if row.oldest_ready is not None]
    whole.oldest_ready = min(oldest, default=None)
    return whole


def tenants_of(rows: Iterable[Depth]) -> list[str]:
    return sorted({row.tenant for row in rows if row.tenant is not None})
