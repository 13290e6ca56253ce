"""Gold: how long jobs waited and ran."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.histograms import BUCKET_US
from headrace.spark.lake.gold import window
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

_SPANS = {"wait": "started", "run": "ended"}
"""Each span, and what counts the attempts that have one."""
_SPREAD = """inline(array(
    struct(leased_at AS at, wait_us, CAST(NULL AS bigint) AS run_us),
    struct(ended_at AS at, CAST(NULL AS bigint) AS wait_us, run_us)))"""


def transform(sources: Sources) -> DataFrame:
    spread = (
        window.attempts(sources)
        .selectExpr("queue", "type", _SPREAD)
        .where(window.within("at", sources.hours))
        .where("wait_us IS NOT NULL OR run_us IS NOT NULL")
        .selectExpr("queue", "type", f"{window.hour_of('at')} AS hour", "wait_us", "run_us")
    )
    # One sorted list gives every figure, in half the time of `percentile` and a count per bucket.
    sorted_lists = [sf.expr(f"array_sort(collect_list({span}_us)) AS {span}") for span in _SPANS]
    return (
        spread.groupBy("queue", "type", "hour")
        .agg(*sorted_lists)
        .selectExpr(
            "queue",
            "type",
            "hour",
            f"{window.day_of('hour')} AS day",
            *(one for span in _SPANS for one in _figures(span)),
        )
    )


def _figures(span: str) -> Iterator[str]:
    """SQL: all that a row says, from the sorted microseconds of the span."""
    yield f"bigint(size({span})) AS {_SPANS[span]}"
    for name, fraction in PERCENTILES.items():
        yield f"{_percentile(span, fraction)} / 1e6D AS {span}_{name}_seconds"
    yield f"try_element_at({span}, -1) / 1e6D AS {span}_max_seconds"
    yield f"aggregate({span}, 0L, (total, one) -> total + one) / 1e6D AS {span}_sum_seconds"
    bounds = ", ".join(f"{one}L" for one in BUCKET_US)
    below = f"transform(array({bounds}), bound -> size(filter({span}, one -> one <= bound)))"
    lows, highs = f"concat(array(0), {below})", f"concat({below}, array(size({span})))"
    yield f"zip_with({highs}, {lows}, (high, low) -> bigint(high - low)) AS {span}_buckets"


def _percentile(span: str, fraction: float) -> str:
    """SQL: linear between the two nearest, as Spark's own `percentile`; NULL of an empty list."""
    rank = f"({fraction}D * (size({span}) - 1))"
    low, high = (f"{span}[int({side}({rank}))]" for side in ("floor", "ceil"))
    return f"if(size({span}) = 0, NULL, {low} + ({high} - {low}) * ({rank} - floor({rank})))"


def _columns(span: str, told: str) -> Iterator[Column]:
    yield Column(_SPANS[span], "bigint", f"Attempts that {_SPANS[span]} in this hour.")
    for name, fraction in PERCENTILES.items():
        yield Column(
            f"{span}_{name}_seconds",
            "double",
            f"{fraction:.0%} of them {told} no longer than this; exact.",
            nullable=True,
        )
    yield Column(f"{span}_max_seconds", "double", "The longest of them.", nullable=True)
    yield Column(f"{span}_sum_seconds", "double", "All of them together.")
    yield Column(
        f"{span}_buckets",
        "array<bigint>",
        "How many lie in each bucket, with upper bounds of 1, 2, 5, 10 … milliseconds up to 5000 s, "
        "and one bucket above; these may be added up over rows.",
    )


def _falling() -> str:
    """SQL: the rows with a percentile above the next one, by more than the last digit of its arithmetic."""
    named = [*PERCENTILES, "max"]
    falls = [
        f"{span}_{low}_seconds > {span}_{high}_seconds * (1 + 1e-9D)"
        for span in _SPANS
        for low, high in itertools.pairwise(named)
    ]
    return f"SELECT * FROM gold_latency WHERE {' OR '.join(falls)}"  # noqa: S608 - our own words


TABLE = Table(
    name="gold/latency",
    grain="One row per queue, type and hour in which an attempt started or ended.",
    key=("queue", "type", "hour"),
    columns=(
        Column("queue", "string", "The queue."),
        Column("type", "string", "The type of the jobs."),
        window.HOUR,
        window.DAY,
        *_columns("wait", "had waited, since they were due,"),
        *_columns("run", "ran"),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("attempts",),
    totals=(
        Total("attempts.waits", ("started",)),
        Total("attempts.runs", ("ended",)),
        Total("attempts.wait_us", ("wait_sum_seconds",), 1e6),
        Total("attempts.run_us", ("run_sum_seconds",), 1e6),
    ),
    checks=(
        Check(
            "latency sums every wait and run of silver",
            """SELECT * FROM
              (SELECT coalesce(sum(started), 0) AS told_waits, coalesce(sum(ended), 0) AS told_runs,
                 coalesce(sum(wait_sum_seconds), 0) AS told_wait,
                 coalesce(sum(run_sum_seconds), 0) AS told_run FROM gold_latency),
              (SELECT count(wait_us) AS waits, count_if(ended_at IS NOT NULL AND run_us IS NOT NULL) AS runs,
                 coalesce(sum(wait_us), 0) / 1e6D AS wait,
                 coalesce(sum(run_us) FILTER (WHERE ended_at IS NOT NULL), 0) / 1e6D AS run
               FROM silver_attempts)
            WHERE told_waits <> waits OR told_runs <> runs
              OR abs(told_wait - wait) > 1e-6 * (1 + wait) OR abs(told_run - run) > 1e-6 * (1 + run)""",
        ),
        Check("percentiles rise up to the longest", _falling()),
        Check(
            "buckets hold every attempt of the row",
            """SELECT * FROM gold_latency
            WHERE aggregate(wait_buckets, 0L, (total, one) -> total + one) <> started
               OR aggregate(run_buckets, 0L, (total, one) -> total + one) <> ended""",
        ),
    ),
)
