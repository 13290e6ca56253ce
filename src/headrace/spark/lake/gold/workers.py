"""Gold: how busy each worker was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.spark.lake.gold import window
from headrace.spark.lake.gold.endings import FAILED, LOST
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HOURS = f"""explode(sequence({window.hour_of("leased_at")},
    {window.hour_of("coalesce(ended_at, leased_at)")}, INTERVAL 1 HOUR)) AS hour"""
_IN_HOUR = "hour <= {0} AND {0} < hour + INTERVAL 1 HOUR"
_STARTED = _IN_HOUR.format("leased_at")
_ENDED = f"ended_at IS NOT NULL AND {_IN_HOUR.format('ended_at')}"
_BUSY_US = """if(ended_at IS NULL, 0L, unix_micros(least(ended_at, hour + INTERVAL 1 HOUR))
    - unix_micros(greatest(leased_at, hour)))"""


def transform(sources: Sources) -> DataFrame:
    return (
        window.attempts(sources)
        # Clocks that were set back may have an attempt end before it began: no time passed.
        .selectExpr(
            *("worker", "leased_at", "outcome", "code"),
            "if(ended_at IS NULL, NULL, greatest(ended_at, leased_at)) AS ended_at",
        )
        .selectExpr("*", _HOURS)
        .where(window.within("hour", sources.hours))
        .groupBy("worker", "hour")
        .agg(
            sf.expr(f"{window.day_of('first(hour)')} AS day"),
            sf.expr(f"count_if({_STARTED}) AS attempts"),
            sf.expr(f"count_if({_ENDED} AND outcome = 'completed') AS completed"),
            sf.expr(f"count_if({_ENDED} AND {FAILED}) AS failures"),
            sf.expr(f"count_if({_ENDED} AND {LOST}) AS losses"),
            sf.expr(f"sum({_BUSY_US}) / 1e6D AS busy_seconds"),
        )
        .selectExpr("*", f"busy_seconds / {window.HOUR_SECONDS} AS utilisation")
    )


TABLE = Table(
    name="gold/workers",
    grain="One row per worker and hour in which it held a job; of an attempt that still runs, the hour in "
    "which it began.",
    key=("worker", "hour"),
    columns=(
        Column("worker", "string", "The worker's name."),
        window.HOUR,
        window.DAY,
        Column("attempts", "bigint", "Attempts it started in this hour."),
        Column("completed", "bigint", "Attempts that completed in this hour."),
        Column("failures", "bigint", "Attempts that failed in this hour."),
        Column("losses", "bigint", "Attempts it lost: it vanished, or its lease lapsed."),
        Column(
            "busy_seconds",
            "double",
            "The parts of its attempts that lie in this hour, together; attempts count once they ended.",
        ),
        Column(
            "utilisation",
            "double",
            "Jobs it held at once, on average over the hour: above 1 when it runs several.",
        ),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("workers",),
    totals=(
        Total("attempts.rows", ("attempts",)),
        Total("attempts.busy_us", ("busy_seconds",), 1e6),
    ),
    checks=(
        Check(
            "workers started every attempt of silver, and were busy as long as attempts ran",
            """SELECT * FROM
              (SELECT coalesce(sum(attempts), 0) AS told, coalesce(sum(busy_seconds), 0) AS told_busy
               FROM gold_workers),
              (SELECT count(*) AS held, coalesce(sum(greatest(unix_micros(ended_at)
                 - unix_micros(leased_at), 0L)), 0) / 1e6D AS busy
               FROM silver_attempts)
            WHERE told <> held OR abs(told_busy - busy) > 1e-6 * (1 + busy)""",
        ),
        Check(
            "no worker was busy for less than no time",
            "SELECT * FROM gold_workers WHERE busy_seconds < 0",
        ),
    ),
)
