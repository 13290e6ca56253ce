"""Percentiles of several gold rows together: estimated from what each knows, and how far off they may be.

A row knows exactly how many lie at or below each bucket's bound, a few percentiles of its own, and the
longest. Percentiles of rows cannot be added up; how many lie below a time can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from headrace.histograms import BUCKET_SECONDS

KNOWN = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
"""The percentiles that each row of gold/latency has of its own."""
CLOSE = 0.1
"""An estimate whose bounds lie no further apart, as a part of the larger, may be told as it is."""


class Estimate(NamedTuple):
    """About `seconds`, and certainly from `least` to `most`."""

    seconds: float
    least: float
    most: float

    @property
    def is_close(self) -> bool:
        return self.most - self.least <= CLOSE * self.most


class Knot(NamedTuple):
    """Of a row: at least `least` lie at or below that time, at most `most` below it, about `about`."""

    seconds: float
    least: int
    about: float
    most: int


class Spread:
    """How the waits or runs of some rows of gold/latency lie. `span` is `wait` or `run`."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], span: str) -> None:
        self._rows = [row for row in rows if sum(row[f"{span}_buckets"])]
        self._span = span
        self.count = sum(sum(row[f"{span}_buckets"]) for row in self._rows)
        lines = [_knots(row, span) for row in self._rows]
        self._line = _added(lines)
        self._surely = _steps(
            (knot.seconds, knot.least) for line in lines for knot in _rising(line)
        )
        self._at_most = _steps(
            (before.seconds, after.most - before.most)
            for line in lines
            for before, after in pairwise((Knot(0.0, 0, 0.0, 0), *line))
        )

    @property
    def longest(self) -> float | None:
        tops = [row[f"{self._span}_max_seconds"] for row in self._rows]
        return max((one for one in tops if one is not None), default=None)

    def percentile(self, name: str) -> Estimate | None:
        """One of KNOWN. Of a single row it is that row's own, and exact. None of none."""
        if not self.count:
            return None
        if len(self._rows) == 1:
            own = self._rows[0][f"{self._span}_{name}_seconds"]
            if own is not None:
                return Estimate(own, own, own)
        wanted = KNOWN[name] * (self.count - 1) + 1
        least = next((at for at, count in self._at_most if count >= math.floor(wanted)), 0.0)
        most = next(at for at, count in self._surely if count >= math.ceil(wanted))
        about = min(max(self._about(wanted), least), most)
        return Estimate(about, least, most)

    def _about(self, wanted: float) -> float:
        for (low, below), (high, reached) in pairwise(self._line):
            if reached >= wanted:
                part = (wanted - below) / (reached - below) if reached > below else 1.0
                return low + (high - low) * max(part, 0.0)
        return self._line[-1][0]


def _knots(row: Mapping[str, Any], span: str) -> list[Knot]:
    """In the order of time; the last one holds all."""
    buckets: Sequence[int] = row[f"{span}_buckets"]
    total = sum(buckets)
    longest = row[f"{span}_max_seconds"]
    cumulated = list(accumulate(buckets))
    if longest is None:  # a bound stands in for it
        last = next(index for index, count in enumerate(cumulated) if count == total)
        longest = BUCKET_SECONDS[min(last, len(BUCKET_SECONDS) - 1)]
    knots = [
        Knot(bound, count, count, count)
        for bound, count in zip(BUCKET_SECONDS, cumulated, strict=False)
        if bound < longest
    ]
    for name, fraction in KNOWN.items():
        seconds = row[f"{span}_{name}_seconds"]
        if seconds is not None and seconds <= longest:
            rank = fraction * (total - 1)
            knots.append(Knot(seconds, math.floor(rank) + 1, rank + 1, math.ceil(rank)))
    knots.sort()
    return [*knots, Knot(longest, total, total, total)]


def _rising(line: Sequence[Knot]) -> Iterable[Knot]:
    """Each with how many more it surely holds than the one before."""
    held = 0
    for knot in line:
        if knot.least > held:
            yield knot._replace(least=knot.least - held)
            held = knot.least


def _steps(rises: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """Times in their order, each with the sum of the rises up to it."""
    ordered = sorted(rises)
    sums = accumulate(rise for _, rise in ordered)
    return [(at, total) for (at, _), total in zip(ordered, sums, strict=True)]


def _added(lines: Iterable[Sequence[Knot]]) -> list[tuple[float, float]]:
    """How many of all rows lie at or below each time, straight from knot to knot."""
    slopes: dict[float, float] = {}
    jumps: dict[float, float] = {}
    for line in lines:
        held = 0.0
        at = 0.0
        for knot in line:
            rise = max(knot.about - held, 0.0)
            held += rise
            if knot.seconds > at:
                slopes[at] = slopes.get(at, 0.0) + rise / (knot.seconds - at)
                slopes[knot.seconds] = slopes.get(knot.seconds, 0.0) - rise / (knot.seconds - at)
            else:
                jumps[at] = jumps.get(at, 0.0) + rise
            at = knot.seconds
    points = [(0.0, 0.0)]
    count = slope = last = 0.0
    for at in sorted(slopes.keys() | jumps.keys()):
        count += slope * (at - last)
        points.append((at, count))
        if at in jumps:
            count += jumps[at]
            points.append((at, count))
        slope += slopes.get(at, 0.0)
        last = at
    return points
