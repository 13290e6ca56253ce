"""Percentiles of several rows: close to the truth, and between bounds that hold it."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.histograms import BUCKET_SECONDS
from headrace.report.percentiles import KNOWN, Spread


def exact(values: Sequence[float], fraction: float) -> float:
    ordered = sorted(values)
    rank = fraction * (len(ordered) - 1)
    low, high = ordered[int(rank)], ordered[min(int(rank) + 1, len(ordered) - 1)]
    return low + (high - low) * (rank - int(rank))


def row(values: Sequence[float]) -> dict[str, Any]:
    """What gold/latency says of these waits."""
    counts = [0] * (len(BUCKET_SECONDS) + 1)
    for value in values:
        counts[bisect_left(BUCKET_SECONDS, value)] += 1
    return {
        "wait_buckets": counts,
        "wait_max_seconds": max(values, default=None),
        **{
            f"wait_{name}_seconds": exact(values, fraction) if values else None
            for name, fraction in KNOWN.items()
        },
    }


def test_two_types_in_one_bucket_do_not_both_end_at_the_longest() -> None:
    """205,183 waits up to 288 s beside 100,000 up to 306 s: all in the bucket of 200 to 500 s."""
    mail = [10 + 278 * index / 20_518 for index in range(20_518)]
    price = [200 + 106 * index / 10_000 for index in range(10_000)]
    spread = Spread([row(mail), row(price)], "wait")
    for name in ("p50", "p95"):
        found = spread.percentile(name)
        assert found is not None
        truth = exact([*mail, *price], KNOWN[name])
        assert found.seconds == pytest.approx(truth, rel=0.03)
        assert found.least <= truth <= found.most
    assert spread.longest == pytest.approx(306.0, abs=0.1)


def test_a_burst_weighs_as_many_as_it_was() -> None:
    spread = Spread([row([0.01] * 10), row([300.0] * 990)], "wait")
    found = spread.percentile("p95")
    assert found == (300.0, 300.0, 300.0)


def test_one_row_is_told_as_it_is() -> None:
    values = [0.3, 0.4, 90.0]
    found = Spread([row(values), row([])], "wait").percentile("p95")
    assert found is not None
    assert found == (exact(values, 0.95),) * 3
    assert found.is_close


def test_of_nothing_there_is_no_percentile() -> None:
    assert Spread([row([])], "wait").percentile("p50") is None


@pytest.mark.parametrize("seed", range(40))
def test_the_truth_lies_between_the_bounds(seed: int) -> None:
    """Rows of all shapes and sizes, ties and times beyond the last bucket included."""
    rng = random.Random(seed)
    groups = []
    for _ in range(rng.randint(2, 8)):
        middle = 10 ** rng.uniform(-3, 4)
        size = rng.choice([1, 2, 3, 10, 200])
        groups.append([round(middle * rng.lognormvariate(0, 1), 4) for _ in range(size)])
    spread = Spread([row(group) for group in groups], "wait")
    everything = [value for group in groups for value in group]
    for name, fraction in KNOWN.items():
        found = spread.percentile(name)
        assert found is not None
        truth = exact(everything, fraction)
        assert found.least - 1e-9 <= truth <= found.most + 1e-9, (name, truth, found)
        assert found.least <= found.seconds <= found.most
