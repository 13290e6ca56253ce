"""Gold rows put together: over longer steps of time, over types and queues, over hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 180, 360, 720, 1440, 10_080)
)
POINTS_MAX = 100
"""More of them than this no chart can show, nor a line of text."""

HOUR = timedelta(hours=1)
TIME = pa.timestamp("us", tz="UTC")

SHORT = timedelta(hours=3)
"""A shorter span has too few hours to show anything over time by the hour."""


def step_for(
    span: timedelta, *, least: timedelta = STEPS[0], points: int = POINTS_MAX
) -> timedelta:
    """The shortest step that shows a span in so many points."""
    fitting = (one for one in STEPS if one >= least and span / one <= points)
    return next(fitting, STEPS[-1])


def per(step: timedelta) -> str:
    """`minute`, `15 minutes`, `hour`, `6 hours`, `day`."""
    minutes = step // timedelta(minutes=1)
    for name, size in (("week", 10_080), ("day", 1440), ("hour", 60), ("minute", 1)):
        if minutes % size == 0:
            return name if minutes == size else f"{minutes // size} {name}s"
    raise AssertionError(step)


def stepped(table: pa.Table, column: str, step: timedelta) -> pa.Table:
    """The table with `at`: the step that a time lies in."""
    size = step // timedelta(microseconds=1)
    us = pc.cast(table[column], pa.int64())
    at = pc.cast(pc.multiply(pc.divide(us, size), size), TIME)
    return table.append_column("at", at)


def hourly(
    table: pa.Table, since: datetime, until: datetime, points: int = POINTS_MAX
) -> tuple[pa.Table, timedelta | None]:
    """The table with `at` and its step, for what the lake has by the hour; of a SHORT span one for the whole.

    No step: all of it is one.
    """
    if until - since < SHORT:
        whole = pa.array([since] * table.num_rows, TIME)
        return table.append_column("at", whole), None
    step = step_for(until - since, least=HOUR, points=points)
    return stepped(table, "hour", step), step


def over(step: timedelta | None) -> str:
    """For captions, of what `hourly` gave: by which step, or why by none."""
    if step is None:
        return "in the whole time: the lake has this by the hour only"
    return f"by {per(step)}"


def summed(table: pa.Table, by: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Sums by those columns, in their order."""
    if not by:
        return pa.table({name: [pc.sum(table[name]).as_py() or 0] for name in columns})
    grouped = table.group_by(list(by)).aggregate([(name, "sum") for name in columns])
    named = grouped.rename_columns(
        [name.removesuffix("_sum") if name not in by else name for name in grouped.column_names]
    )
    return named.select([*by, *columns]).sort_by([(name, "ascending") for name in by])


def totals(table: pa.Table, columns: Sequence[str]) -> dict[str, Any]:
    """Each column's sum; 0 of no rows."""
    if not table.num_rows:
        return dict.fromkeys(columns, 0)
    return {name: pc.sum(table[name]).as_py() or 0 for name in columns}


def longest(rows: Iterable[Mapping[str, Any]], *columns: str) -> list[dict[str, Any]]:
    """Rows by those columns, the largest first."""
    return sorted(
        (dict(row) for row in rows),
        key=lambda row: tuple(row[name] for name in columns),
        reverse=True,
    )


def labels(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What to call a type of a queue: its own name, with the queue's where others have the same."""
    known = set(pairs)
    named = Counter(type_name for _, type_name in known)
    return {pair: pair[1] if named[pair[1]] == 1 else "/".join(pair) for pair in known}


def steps_of(since: datetime, until: datetime, step: timedelta | None) -> list[datetime]:
    """The beginning of each step of a span, the first one on a whole step; of no step, of the whole span."""
    if step is None:
        return [since]
    begin = since - (since - datetime.min.replace(tzinfo=since.tzinfo)) % step
    count = -(-(until - begin) // step)
    return [begin + index * step for index in range(max(count, 1))]


def seconds_in(at: datetime, step: timedelta | None, since: datetime, until: datetime) -> float:
    """How much of a step lies within a span; of no step, the whole span."""
    if step is None:
        return (until - since).total_seconds()
    return (min(at + step, until) - max(at, since)).total_seconds()
