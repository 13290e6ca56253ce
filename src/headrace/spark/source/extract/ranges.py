"""Cutting ranges of numbers into pieces, evenly by length or evenly by rows."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from headrace.spark.source.extract.base import Pieces

PROBES = 128
PROBE_ROWS = 32
"""How many rows a probe looks at."""

Range = tuple[int, int]
"""Those above the first number, up to and including the second."""


class Probe(NamedTuple):
    """So many rows lie at `start` and after it, up to `end`."""

    start: int
    end: int
    rows: int


def even_cuts(after: int, upto: int, parts: int) -> list[Range]:
    """So many ranges of equal length, or fewer if there are not so many numbers."""
    parts = max(1, min(parts, upto - after))
    places = [after + (upto - after) * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(places))


def probe_starts(after: int, upto: int) -> list[int]:
    """Where to probe: evenly over the range."""
    return [start + 1 for start, _ in even_cuts(after, upto, PROBES)]


def cut_by_probes(after: int, upto: int, probes: Sequence[Probe], pieces: Pieces) -> list[Range]:
    """Ranges with about the same number of rows, where rows lie as densely as the probes tell.

    Numbers may be sparse: old jobs are deleted, some kinds sooner than others.
    """
    ends = [*(probe.start - 1 for probe in probes[1:]), upto]
    totals = list(
        itertools.accumulate(
            probe.rows / (probe.end - probe.start + 1) * (end - probe.start + 1)
            for probe, end in zip(probes, ends, strict=True)
        )
    )
    whole = totals[-1]
    parts = max(1, min(pieces.count(whole), upto - after))
    cuts = [_place(whole * part / parts, probes, ends, totals) for part in range(1, parts)]
    places = [after, *sorted({cut for cut in cuts if after < cut < upto}), upto]
    return list(itertools.pairwise(places))


def _place(
    rows: float, probes: Sequence[Probe], ends: Sequence[int], totals: Sequence[float]
) -> int:
    """Up to where about so many rows lie."""
    at = min(bisect_left(totals, rows), len(probes) - 1)
    before = totals[at - 1] if at else 0.0
    inside = totals[at] - before
    share = (rows - before) / inside if inside else 0.0
    return probes[at].start + round(share * (ends[at] - probes[at].start))
