"""What a store counts of its own log against the lake's tables, over histories that a real manager made.

The tables are those of the oracle, which `test_gold_oracle` holds against what Spark makes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from headrace import rollups
from headrace.clock import to_us
from headrace.histograms import BUCKET_SECONDS
from headrace.model import Event
from headrace.rollups import COUNTED, HOUR_US, ErrorTally, Span
from tests.spark import gold_oracle
from tests.spark.test_folding import history

UNFENCED = "slow"
"""There a job that was given up may still complete: it is counted as both."""


def rolled(events: Sequence[Event], dice: random.Random) -> tuple[dict[int, Span], dict[int, Span]]:
    """Minutes and hours, from pages of any size, each from where the one before ended."""
    minutes: dict[int, Span] = {}
    hours: dict[int, Span] = {}
    cursor, start = "", 0
    while start < len(events):
        page = events[start : start + dice.randint(1, 40)]
        one = rollups.roll(page, cursor, minutes_max=dice.randint(1, 9))
        assert one.events > 0
        start += one.events
        cursor = one.cursor
        for known, added in ((minutes, one.minutes), (hours, one.hours)):
            for begin, span in added.items():
                known.setdefault(begin, Span()).merge(span)
    assert cursor == events[-1].cursor
    return minutes, hours


@pytest.mark.parametrize("seed", range(8))
def test_counts_equal_those_of_gold(seed: int) -> None:
    events = history(seed, 300)
    tables = gold_oracle.tables(events)
    for spans, step_us in zip(
        rolled(events, random.Random(seed)), (60_000_000, HOUR_US), strict=True
    ):
        gold: Counter[tuple[int, str, str, str]] = Counter()
        for row in tables["gold/throughput"]:
            begin = to_us(row["minute"]) // step_us * step_us
            for name in COUNTED:
                gold[begin, row["tenant"], row["queue"], name] += row[name]
        ours = Counter(
            {
                (begin, row.tenant, row.queue, name): getattr(row, name)
                for begin, span in spans.items()
                for row in span.rows
                for name in COUNTED
            }
        )
        assert _fenced(+ours) == _fenced(+gold)
        assert sum((+ours).values()) > 100


@pytest.mark.parametrize("seed", range(4))
def test_waits_and_runs_equal_those_of_gold(seed: int) -> None:
    events = history(seed, 300)
    _, hours = rolled(events, random.Random(seed))
    for span in ("wait", "run"):
        gold: Counter[tuple[Any, ...]] = Counter()
        for row in gold_oracle.tables(events)["gold/latency"]:
            for bucket, count in enumerate(row[f"{span}_buckets"]):
                gold[to_us(row["hour"]), row["queue"], bucket] += count
        ours: Counter[tuple[Any, ...]] = Counter()
        for begin, counted in hours.items():
            for one in counted.rows:
                for bucket, count in getattr(one, span).buckets.items():
                    assert 0 <= bucket <= len(BUCKET_SECONDS)
                    ours[begin, one.queue, bucket] += count
        assert +ours == +gold


@pytest.mark.parametrize("seed", range(4))
def test_error_groups_equal_those_of_gold(seed: int) -> None:
    events = history(seed, 300)
    _, hours = rolled(events, random.Random(seed))
    gold: Counter[tuple[str, str, str, str]] = Counter()
    fatal: Counter[tuple[str, str, str, str]] = Counter()
    for row in gold_oracle.tables(events)["gold/errors"]:
        if row["queue"] != UNFENCED:
            key = (row["type"], row["category"], row["code"], row["message"])
            gold[key] += row["occurrences"]
            fatal[key] += row["fatal"]
    tally = ErrorTally(events[0].at, events[-1].at.replace(year=2030))
    for begin, span in hours.items():
        for error in span.errors:
            if error.queue != UNFENCED:
                tally.add(begin, error)
    groups = {
        (one.type, one.category or "none", one.code or "", one.message or ""): one
        for one in tally.groups()
    }
    assert {key: one.count for key, one in groups.items()} == dict(gold)
    assert {key: one.fatal for key, one in groups.items()} == dict(fatal)
    assert all(sum(one.trend) == one.count for one in groups.values())


def _fenced(counts: Counter[tuple[int, str, str, str]]) -> dict[tuple[int, str, str, str], int]:
    return {key: count for key, count in counts.items() if key[2] != UNFENCED}
