"""How many jobs at once would have started in time: arrivals by the minute, played again with more slots.

A model, and a careful one: what came in during a minute came at its beginning, first in is first out, and
a slot takes as many jobs as it took while jobs waited for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from headrace.report import rollup
from headrace.report.gold import Gold

IDLE = 0.5
"""Of the slots: where fewer were busy while jobs waited, more of them help nobody."""
SLOTS_MAX = 1_000_000
_MINUTE_SECONDS = 60.0


@dataclass(frozen=True)
class Minute:
    at: datetime
    came: int
    """Jobs that became due."""
    started: int
    ready: int
    """Due and unclaimed at its end."""
    running: int


@dataclass(frozen=True)
class Need:
    """What would have kept the promise."""

    slots: int
    had: int
    """The most that ran at once."""
    each: float
    """Jobs that one slot takes in a minute."""
    worst: Minute
    is_idle: bool
    """Jobs waited while most of the slots were free."""


def need(gold: Gold, start_seconds: float, start_ratio: float) -> Need | None:
    """For that part of all jobs to start in so many seconds. None: enough ran, or nothing tells."""
    minutes = minutes_of(gold)
    waited = [now for before, now in pairwise(minutes) if before.ready and now.ready]
    had = max((one.running for one in minutes), default=0)
    each = _each(waited, had, gold)
    if not had or not each:
        return None
    worst = max(minutes, key=lambda one: one.ready)
    idle = bool(waited) and sum(one.running for one in waited) < IDLE * had * len(waited)
    slots = _least(minutes, each, start_seconds, start_ratio, had)
    return None if slots is None else Need(slots, had, each, worst, idle)


def minutes_of(gold: Gold) -> list[Minute]:
    """Every minute, all queues together."""
    started = {
        row["minute"]: row["started"]
        for row in rollup.summed(gold["throughput"], ["minute"], ["started"]).to_pylist()
    }
    changes: dict[datetime, list[Mapping[str, Any]]] = {}
    levels: dict[str, Mapping[str, Any]] = {}
    for row in sorted(gold["backlog"].to_pylist(), key=lambda row: row["minute"]):
        if row["minute"] < gold.since:
            levels[row["queue"]] = row
        else:
            changes.setdefault(row["minute"], []).append(row)
    ready = sum(row["ready"] for row in levels.values())
    minutes: list[Minute] = []
    for at in rollup.steps_of(gold.since, gold.until, timedelta(minutes=1)):
        levels.update({row["queue"]: row for row in changes.get(at, ())})
        now = sum(row["ready"] for row in levels.values())
        running = sum(row["running"] for row in levels.values())
        begun = started.get(at, 0)
        came = max(begun + now - ready, 0) if minutes else begun + now
        minutes.append(Minute(at, came, begun, now, running))
        ready = now
    return minutes


def _each(waited: Sequence[Minute], had: int, gold: Gold) -> float:
    """Jobs that a slot takes in a minute: as it did while jobs waited, else as long as they ran."""
    if started := sum(one.started for one in waited):
        return started / len(waited) / (had or 1)
    ran = rollup.totals(gold["latency"], ["ended", "run_sum_seconds"])
    return (
        _MINUTE_SECONDS * ran["ended"] / ran["run_sum_seconds"] if ran["run_sum_seconds"] else 0.0
    )


def _least(
    minutes: Sequence[Minute], each: float, seconds: float, ratio: float, had: int
) -> int | None:
    low, high = had, 2 * had
    if _in_time(minutes, each * low, seconds) >= ratio:
        return None
    while high < SLOTS_MAX and _in_time(minutes, each * high, seconds) < ratio:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _in_time(minutes, each * middle, seconds) >= ratio:
            high = middle
        else:
            low = middle
    return high


def _in_time(minutes: Sequence[Minute], a_minute: float, seconds: float) -> float:
    """The part of all jobs that would have started in time, with so many starts a minute."""
    within = a_minute * seconds / _MINUTE_SECONDS
    line = kept = 0.0
    for minute in minutes:
        kept += min(max(within - line, 0.0), minute.came)
        line = max(line + minute.came - a_minute, 0.0)
    came = sum(minute.came for minute in minutes)
    return kept / came if came else 1.0
