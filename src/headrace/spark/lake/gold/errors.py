"""Gold: errors that mean the same, counted together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.error_groups import MESSAGE_CHARS_MAX, VARIABLE_PARTS
from headrace.spark.lake.gold import window
from headrace.spark.lake.gold.endings import WASTED
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GROUP = ("queue", "type", "category", "code", "message", "hour")
_ENDED_WAITING = "last_before IN ('blocked', 'pending', 'retrying', 'lost')"


def collapsed(message: str) -> str:
    """SQL: a message with its variable parts collapsed: equal for errors that mean the same."""
    for pattern, stand_in in VARIABLE_PARTS:
        message = f"regexp_replace({message}, r'{_quoted(pattern)}', '{stand_in}')"
    return f"left(trim({message}), {MESSAGE_CHARS_MAX})"


def transform(sources: Sources) -> DataFrame:
    columns = (
        "queue",
        "type",
        "coalesce(category, 'none') AS category",
        "coalesce(code, '') AS code",
        f"coalesce({collapsed('message')}, '') AS message",
        f"{window.hour_of('at')} AS hour",
        "at",
        "job_id",
        "born_seq",
        "run_us",
        "fatal",
    )
    of_attempts = (
        window.attempts(sources)
        .where(window.within("ended_at", sources.hours))
        .where(WASTED)
        .selectExpr("*", "ended_at AS at", "state_after IN ('failed', 'dead') AS fatal")
        .selectExpr(*columns)
    )
    # Ended by its lifetime or by a job it needed, with no attempt to tell of it.
    of_jobs = (
        window.jobs(sources)
        .where(window.within("finalized_at", sources.hours))
        .where("state IN ('failed', 'dead')")
        .where(_ENDED_WAITING)
        .selectExpr(
            *(
                "job_id",
                "born_seq",
                "queue",
                "type",
                "last_at AS at",
                "0L AS run_us",
                "true AS fatal",
            ),
            # An error that an earlier event told of did not end it.
            *(
                f"if(failed_seq <=> last_seq, {name}, NULL) AS {name}"
                for name in ("category", "code", "message")
            ),
        )
        .selectExpr(*columns)
    )
    return (
        of_attempts.unionByName(of_jobs)
        .groupBy(*_GROUP)
        .agg(
            sf.expr(f"{window.day_of('first(hour)')} AS day"),
            sf.expr("count(*) AS occurrences"),
            sf.expr("count(DISTINCT job_id, coalesce(born_seq, -1)) AS jobs"),
            sf.expr("count_if(fatal) AS fatal"),
            sf.expr(f"{window.seconds('sum(run_us)')} AS run_seconds"),
            sf.expr("min(at) AS first_seen"),
            sf.expr("max(at) AS last_seen"),
            sf.expr("max_by(job_id, struct(at, job_id)) AS example_job_id"),
        )
    )


def _quoted(pattern: str) -> str:
    """For SQL's raw string in single quotes, which knows no way to write one."""
    return pattern.replace("'", r"\x27")


TABLE = Table(
    name="gold/errors",
    grain="One row per error group (queue, type, category, code, collapsed message) and hour in which it "
    "occurred.",
    key=_GROUP,
    columns=(
        Column("queue", "string", "The queue."),
        Column("type", "string", "The type of the jobs."),
        Column("category", "string", "temporary, permanent, timeout or system; `none` if unknown."),
        Column("code", "string", "The error's code; empty where it has none."),
        Column(
            "message",
            "string",
            "The message with its variable parts collapsed: <uuid>, <time>, <text> (quoted), <hex>, <n>.",
        ),
        window.HOUR,
        window.DAY,
        Column("occurrences", "bigint", "How often it occurred."),
        Column("jobs", "bigint", "How many jobs it hit in this hour."),
        Column("fatal", "bigint", "How many jobs it ended as failed or dead."),
        Column("run_seconds", "double", "How long the attempts had run that it ended."),
        Column("first_seen", "timestamp", "Its first occurrence in this hour."),
        Column("last_seen", "timestamp", "Its last occurrence in this hour."),
        Column("example_job_id", "string", "The job that it hit last."),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("jobs", "attempts"),
    totals=(Total("errors", ("occurrences",)),),
    checks=(
        Check(
            "errors count every failed and lost attempt of silver",
            f"""SELECT * FROM
              (SELECT coalesce(sum(occurrences), 0) AS told, coalesce(sum(fatal), 0) AS told_fatal
               FROM gold_errors),
              (SELECT count_if({WASTED}) AS attempts FROM silver_attempts WHERE ended_at IS NOT NULL),
              (SELECT count_if({_ENDED_WAITING}) AS waiting
               FROM silver_jobs WHERE state IN ('failed', 'dead'))
            WHERE told <> attempts + waiting OR told_fatal > told""",  # noqa: S608 - our own words, no input
        ),
        Check(
            "an error group hits no more jobs than it occurs, and its times are those of its hour",
            """SELECT * FROM gold_errors WHERE jobs > occurrences OR jobs < 1 OR first_seen > last_seen
              OR first_seen < hour OR last_seen >= hour + INTERVAL 1 HOUR""",
        ),
    ),
)
