"""Gold: what trying again costs, and what it brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.spark.lake.gold import window
from headrace.spark.lake.gold.endings import FAILED, LOST, WASTED
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY = ("queue", "type", "hour")
_OF_ATTEMPTS = {
    "attempts": ("begins", "Attempts started in this hour."),
    "extra_attempts": ("begins AND attempt > 1", "Of those, attempts beyond a job's first."),
    "failed_attempts": (f"NOT begins AND {FAILED}", "Attempts that failed in this hour."),
    "lost_attempts": (f"NOT begins AND {LOST}", "Attempts lost in this hour."),
}
_OF_JOBS = {
    "retried_jobs": (
        "true",
        "Jobs that came to rest in this hour after more than one attempt.",
    ),
    "recovered_jobs": ("state = 'completed'", "Of those, jobs that completed."),
    "given_up_jobs": ("state IN ('failed', 'dead')", "Of those, jobs that ended failed or dead."),
    "stopped_jobs": (
        "state IN ('cancelled', 'abandoned')",
        "Of those, jobs that were cancelled or abandoned.",
    ),
}


def transform(sources: Sources) -> DataFrame:
    attempts = (
        window.attempts(sources)
        .selectExpr(
            *("queue", "type", "attempt", "outcome", "code", "run_us"),
            "inline(array(struct(leased_at AS at, true AS begins), struct(ended_at AS at, false AS begins)))",
        )
        .where(window.within("at", sources.hours))
        .selectExpr(
            *("queue", "type", f"{window.hour_of('at')} AS hour"),
            *(f"bigint({rule}) AS {name}" for name, (rule, _) in _OF_ATTEMPTS.items()),
            "if(begins, 0L, run_us) AS run_us",
            f"if(NOT begins AND {WASTED}, run_us, 0L) AS wasted_us",
            *(f"0L AS {name}" for name in _OF_JOBS),
        )
    )
    jobs = (
        window.jobs(sources)
        .where(window.within("finalized_at", sources.hours))
        .where("attempt > 1")
        .selectExpr(
            *("queue", "type", f"{window.hour_of('finalized_at')} AS hour"),
            *(f"0L AS {name}" for name in (*_OF_ATTEMPTS, "run_us", "wasted_us")),
            *(f"bigint({rule}) AS {name}" for name, (rule, _) in _OF_JOBS.items()),
        )
    )
    summed = (*_OF_ATTEMPTS, "run_us", "wasted_us", *_OF_JOBS)
    grouped = attempts.unionByName(jobs).groupBy(*_KEY).sum(*summed).toDF(*_KEY, *summed)
    return grouped.selectExpr(
        *_KEY,
        f"{window.day_of('hour')} AS day",
        *_OF_ATTEMPTS,
        f"{window.seconds('run_us')} AS run_seconds",
        f"{window.seconds('wasted_us')} AS wasted_seconds",
        *_OF_JOBS,
    )


TABLE = Table(
    name="gold/retries",
    grain="One row per queue, type and hour in which an attempt started or ended, or a retried job ended.",
    key=_KEY,
    columns=(
        Column("queue", "string", "The queue."),
        Column("type", "string", "The type of the jobs."),
        window.HOUR,
        window.DAY,
        *(Column(name, "bigint", meaning) for name, (_, meaning) in _OF_ATTEMPTS.items()),
        Column("run_seconds", "double", "How long the attempts ran that ended in this hour."),
        Column(
            "wasted_seconds", "double", "Of that, the time of attempts that failed or were lost."
        ),
        *(Column(name, "bigint", meaning) for name, (_, meaning) in _OF_JOBS.items()),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("jobs", "attempts"),
    totals=(
        Total("attempts.extra", ("extra_attempts",)),
        Total("attempts.failed", ("failed_attempts",)),
        Total("attempts.lost", ("lost_attempts",)),
    ),
    checks=(
        Check(
            "retries count every attempt beyond the first, and every failure and loss of silver",
            f"""SELECT * FROM
              (SELECT coalesce(sum(extra_attempts), 0) AS told_extra,
                 coalesce(sum(failed_attempts + lost_attempts), 0) AS told_wasted FROM gold_retries),
              (SELECT count_if(attempt > 1) AS extra,
                 count_if(ended_at IS NOT NULL AND {WASTED}) AS wasted FROM silver_attempts)
            WHERE told_extra <> extra OR told_wasted <> wasted""",  # noqa: S608 - our own words, no input
        ),
        Check(
            "every retried job recovered, was given up or was stopped",
            """SELECT * FROM gold_retries
            WHERE retried_jobs <> recovered_jobs + given_up_jobs + stopped_jobs
               OR extra_attempts > attempts OR wasted_seconds > run_seconds + 1e-6""",
        ),
    ),
)
