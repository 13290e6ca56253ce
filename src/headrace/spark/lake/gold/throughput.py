"""Gold: what happened in each minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.spark.lake.gold import window
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNTED = {
    "submitted": "Jobs submitted.",
    "started": "Attempts started.",
    "retried": "Attempts that failed and will be tried again.",
    "lost": "Attempts whose worker vanished, with budget left.",
    "completed": "Jobs that completed.",
    "failed": "Jobs that failed for good.",
    "dead": "Jobs whose attempts or lifetime were exhausted.",
    "cancelled": "Jobs that were cancelled.",
    "abandoned": "Jobs given up with their outcome unknown.",
}
_OF_ATTEMPTS = """inline(array(
    struct(leased_at AS at, 'started' AS what),
    struct(ended_at AS at,
        CASE outcome WHEN 'retrying' THEN 'retried' WHEN 'lost' THEN 'lost' END AS what)))"""
_OF_JOBS = """inline(array(
    struct(created_at AS at, 'submitted' AS what),
    struct(finalized_at AS at, state AS what)))"""


def transform(sources: Sources) -> DataFrame:
    where = ("tenant", "queue", "type")
    happened = (
        window.attempts(sources)
        .selectExpr(*where, _OF_ATTEMPTS)
        .unionByName(window.jobs(sources).selectExpr(*where, _OF_JOBS))
        .where(window.within("at", sources.hours))
        .where("what IS NOT NULL")
        .selectExpr(*where, "what", f"{window.minute_of('at')} AS minute")
    )
    counts = (sf.expr(f"count_if(what = '{name}') AS {name}") for name in _COUNTED)
    counted = happened.groupBy(*where, "minute").agg(*counts)
    return counted.selectExpr(
        *where,
        "minute",
        f"{window.hour_of('minute')} AS hour",
        f"{window.day_of('minute')} AS day",
        *_COUNTED,
    )


_HELD = ("completed", "failed", "dead", "cancelled", "abandoned")
_COUNT_HELD = """SELECT count(*) AS submitted, count_if(state = 'completed') AS completed,
    count_if(state = 'failed') AS failed, count_if(state = 'dead') AS dead,
    count_if(state = 'cancelled') AS cancelled, count_if(state = 'abandoned') AS abandoned
  FROM silver_jobs"""

TABLE = Table(
    name="gold/throughput",
    grain="One row per tenant, queue, type and minute in which any of what it counts happened.",
    key=("tenant", "queue", "type", "minute"),
    columns=(
        Column("tenant", "string", "The tenant."),
        Column("queue", "string", "The queue."),
        Column("type", "string", "The type of the jobs."),
        window.MINUTE,
        window.HOUR,
        window.DAY,
        *(Column(name, "bigint", meaning) for name, meaning in _COUNTED.items()),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("jobs", "attempts"),
    totals=(
        Total("jobs.rows", ("submitted",)),
        *(Total(f"jobs.{state}", (state,)) for state in _HELD),
        Total("attempts.rows", ("started",)),
    ),
    checks=(
        Check(
            "throughput counts every job of silver once",
            f"""WITH held AS ({_COUNT_HELD}), told AS (SELECT coalesce(sum(submitted), 0) AS submitted,
                coalesce(sum(completed), 0) AS completed, coalesce(sum(failed), 0) AS failed,
                coalesce(sum(dead), 0) AS dead, coalesce(sum(cancelled), 0) AS cancelled,
                coalesce(sum(abandoned), 0) AS abandoned FROM gold_throughput)
            SELECT * FROM told, held WHERE told.submitted <> held.submitted
                OR told.completed <> held.completed OR told.failed <> held.failed
                OR told.dead <> held.dead OR told.cancelled <> held.cancelled
                OR told.abandoned <> held.abandoned""",  # noqa: S608 - our own words, no input
        ),
        Check(
            "throughput counts every attempt of silver once",
            """SELECT * FROM (SELECT coalesce(sum(started), 0) AS told FROM gold_throughput),
                (SELECT count(*) AS held FROM silver_attempts) WHERE told <> held""",
        ),
    ),
)
