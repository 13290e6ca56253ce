"""Gold: how attempts ended, and how jobs did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.spark.lake.gold import window
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY = ("queue", "type", "outcome", "category", "hour")


def transform(sources: Sources) -> DataFrame:
    attempts = (
        window.attempts(sources)
        .where(window.within("ended_at", sources.hours))
        .selectExpr(
            "queue",
            "type",
            "outcome",
            "coalesce(category, 'none') AS category",
            f"{window.hour_of('ended_at')} AS hour",
            "1L AS attempt",
            "coalesce(run_us, 0L) AS run_us",
            "0L AS job",
        )
    )
    jobs = (
        window.jobs(sources)
        .where(window.within("finalized_at", sources.hours))
        .selectExpr(
            "queue",
            "type",
            "state AS outcome",
            # A job remembers its last failure, also once it has completed.
            "CASE WHEN state = 'completed' THEN 'none' ELSE coalesce(category, 'none') END AS category",
            f"{window.hour_of('finalized_at')} AS hour",
            "0L AS attempt",
            "0L AS run_us",
            "1L AS job",
        )
    )
    grouped = attempts.unionByName(jobs).groupBy(*_KEY).sum("attempt", "run_us", "job")
    return grouped.selectExpr(
        *_KEY,
        f"{window.day_of('hour')} AS day",
        "`sum(attempt)` AS attempts",
        f"{window.seconds('`sum(run_us)`')} AS run_seconds",
        "`sum(job)` AS jobs",
    )


TABLE = Table(
    name="gold/outcomes",
    grain="One row per queue, type, outcome, category and hour in which an attempt or a job ended so.",
    key=_KEY,
    columns=(
        Column("queue", "string", "The queue."),
        Column("type", "string", "The type of the jobs."),
        Column(
            "outcome",
            "string",
            "The event that ended the attempt (completed, failed, dead, retrying, snoozed, released, "
            "cancelled, lost, abandoned), or the state in which the job came to rest.",
        ),
        Column("category", "string", "Why it did not succeed; `none` where nothing says so."),
        window.HOUR,
        window.DAY,
        Column("attempts", "bigint", "Attempts that ended so."),
        Column("run_seconds", "double", "How long those attempts ran, together."),
        Column(
            "jobs", "bigint", "Jobs that came to rest so, whether or not an attempt ended them."
        ),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("jobs", "attempts"),
    totals=(
        Total("attempts.ended", ("attempts",)),
        Total("jobs.ended", ("jobs",)),
    ),
    checks=(
        Check(
            "outcomes count every ended attempt and job of silver",
            """SELECT * FROM
              (SELECT coalesce(sum(attempts), 0) AS told_attempts, coalesce(sum(jobs), 0) AS told_jobs
               FROM gold_outcomes),
              (SELECT count(ended_at) AS attempts FROM silver_attempts),
              (SELECT count(finalized_at) AS jobs FROM silver_jobs)
            WHERE told_attempts <> attempts OR told_jobs <> jobs""",
        ),
    ),
)
