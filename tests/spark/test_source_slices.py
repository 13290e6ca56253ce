"""Even slices: by length where numbers have no gaps, by rows where they do."""

from __future__ import annotations

import itertools
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.source.extract.base import Pieces
from headrace.spark.source.extract.ranges import (
    PROBE_ROWS,
    Probe,
    cut_by_probes,
    even_cuts,
    probe_starts,
)


def probes_of(numbers: list[int], after: int, upto: int) -> list[Probe]:
    probes = []
    for start in probe_starts(after, upto):
        seen = [number for number in numbers if number >= start][:PROBE_ROWS]
        probes.append(Probe(start, seen[-1], len(seen)))
    return probes


@given(after=st.integers(0, 100), length=st.integers(1, 300), parts=st.integers(1, 40))
def test_even_cuts_cover_the_range_once(after: int, length: int, parts: int) -> None:
    ranges = even_cuts(after, after + length, parts)
    covered = [number for low, high in ranges for number in range(low + 1, high + 1)]
    assert covered == list(range(after + 1, after + length + 1))
    sizes = [high - low for low, high in ranges]
    assert max(sizes) - min(sizes) <= 1
    assert len(ranges) == min(parts, length)


@given(
    numbers=st.lists(st.integers(1, 3_000), min_size=1, unique=True).map(sorted),
    parts=st.integers(1, 12),
)
def test_cuts_by_probes_cover_every_row_once(numbers: list[int], parts: int) -> None:
    after, upto = numbers[0] - 1, numbers[-1]
    ranges = cut_by_probes(after, upto, probes_of(numbers, after, upto), Pieces(parts, 1))
    assert ranges[0][0] == after
    assert ranges[-1][1] == upto
    assert all(low < high for low, high in ranges)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(ranges))
    assert len(ranges) <= parts


@pytest.mark.parametrize("parts", [2, 4, 7])
def test_rows_that_lie_unevenly_are_shared_out_evenly(parts: int) -> None:
    """Retention has left one job in fifty of the older half."""
    numbers = [*range(1, 50_000, 50), *range(50_001, 60_001)]
    ranges = cut_by_probes(0, numbers[-1], probes_of(numbers, 0, numbers[-1]), Pieces(parts, 1))
    rows = [bisect_right(numbers, high) - bisect_right(numbers, low) for low, high in ranges]
    assert sum(rows) == len(numbers)
    assert len(rows) == parts
    assert max(rows) < 1.25 * len(numbers) / parts


def test_as_many_slices_as_the_rows_make() -> None:
    numbers = list(range(1, 1_001))
    ranges = cut_by_probes(0, 1_000, probes_of(numbers, 0, 1_000), Pieces(None, 100))
    assert len(ranges) == 10
    assert cut_by_probes(0, 1_000, probes_of(numbers, 0, 1_000), Pieces(None, 5_000)) == [
        (0, 1_000)
    ]
