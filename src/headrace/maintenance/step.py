"""One kind of upkeep: what it does, and how often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from headrace.manager import JobManager


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a step did."""

    count: int
    """How many jobs it changed, deleted or submitted, or how many events."""
    rest_seconds: float | None = None
    """Run again after so long. None: after the step's own interval."""
    troubles: frozenset[str] = frozenset()
    """What could not be done, in words; each is logged once, for as long as it lasts."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A part of maintenance. It does only what is due, so any number of hosts may run it at once."""

    name: str
    interval_seconds: float
    spread_seconds: float
    """Each rest is longer by up to this, at random, so that hosts do not all come at once."""
    run: Callable[[JobManager], Awaitable[Done]]
