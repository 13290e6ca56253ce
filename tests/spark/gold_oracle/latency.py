"""How long jobs waited and ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from headrace.histograms import BUCKET_SECONDS
from headrace.spark.lake.gold.latency import PERCENTILES
from tests.spark.gold_oracle.grouping import Groups, hour_of
from tests.spark.oracle import Row


def rows(attempts: Iterable[Row]) -> list[Row]:
    groups = Groups(waits=[], runs=[])
    for attempt in attempts:
        where = {"queue": attempt["queue"], "type": attempt["type"]}
        groups.row(**where, hour=hour_of(attempt["leased_at"]))["waits"].append(attempt["wait_us"])
        if attempt["ended_at"] is not None:
            groups.row(**where, hour=hour_of(attempt["ended_at"]))["runs"].append(attempt["run_us"])
    found = groups.rows()
    for row in found:
        waits, runs = row.pop("waits"), row.pop("runs")
        row["started"] = len(waits)
        row["ended"] = len(runs)
        row.update(_figures("wait", sorted(waits)) | _figures("run", sorted(runs)))
    return found


def _figures(span: str, spans_us: Sequence[int]) -> Row:
    told: Row = {
        f"{span}_{name}_seconds": _percentile(spans_us, fraction)
        for name, fraction in PERCENTILES.items()
    }
    told[f"{span}_max_seconds"] = spans_us[-1] / 1_000_000 if spans_us else None
    told[f"{span}_sum_seconds"] = sum(spans_us) / 1_000_000
    told[f"{span}_buckets"] = _buckets(spans_us)
    return told


def _percentile(spans_us: Sequence[int], fraction: float) -> float | None:
    """Linear between the two nearest."""
    if not spans_us:
        return None
    place = fraction * (len(spans_us) - 1)
    low, high = spans_us[math.floor(place)], spans_us[math.ceil(place)]
    return (low + (high - low) * (place - math.floor(place))) / 1_000_000


def _buckets(spans_us: Iterable[int]) -> list[int]:
    """A bound belongs to the bucket below it; the last bucket has none."""
    counts = [0] * (len(BUCKET_SECONDS) + 1)
    for span_us in spans_us:
        bucket = 0
        while bucket < len(BUCKET_SECONDS) and span_us > round(BUCKET_SECONDS[bucket] * 1_000_000):
            bucket += 1
        counts[bucket] += 1
    return counts
