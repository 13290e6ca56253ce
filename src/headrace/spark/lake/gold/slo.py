"""Gold: each hour against its objectives, and how fast the error budget burns.

A burn rate of 1 spends the budget exactly; 2 spends it twice as fast as was promised. Every row carries
the objective that it was judged by: a changed objective holds for the hours computed after the change, and
for all of them once the lake is rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.spark.lake.gold import window
from headrace.spark.lake.gold.objectives import DEFAULT, Objective
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_KEY = ("queue", "type", "hour")
_PROMISED = ("start_seconds", "start_ratio", "finish_seconds", "finish_ratio", "success_ratio")
_COUNTED = ("started", "started_in_time", "completed", "completed_in_time", "ended")


def transform(sources: Sources, objectives: Sequence[Objective] = DEFAULT) -> DataFrame:
    promised = [
        _promised(objectives, name).alias(name) for name in ("start_seconds", "finish_seconds")
    ]
    started = (
        window.attempts(sources)
        .where(window.within("leased_at", sources.hours))
        .where("attempt = 1")
        .select("queue", "type", "leased_at", "wait_us", promised[0])
        .selectExpr(
            *("queue", "type", f"{window.hour_of('leased_at')} AS hour", "1L AS started"),
            "bigint(coalesce(wait_us, 0) <= start_seconds * 1e6D) AS started_in_time",
            "0L AS completed",
            "0L AS completed_in_time",
            "0L AS ended",
        )
    )
    ended = (
        window.jobs(sources)
        .where(window.within("finalized_at", sources.hours))
        .where("state IN ('completed', 'failed', 'dead')")
        .select(
            *("queue", "type", "finalized_at", "state", promised[1]),
            # Not `run_at`, which is when it was last due.
            sf.expr("greatest(created_at, first_run_at) AS due_at"),
        )
        .selectExpr(
            *("queue", "type", f"{window.hour_of('finalized_at')} AS hour"),
            *("0L AS started", "0L AS started_in_time"),
            "bigint(state = 'completed') AS completed",
            "bigint(state = 'completed' AND unix_micros(finalized_at) - unix_micros(due_at)"
            " <= finish_seconds * 1e6D) AS completed_in_time",
            "1L AS ended",
        )
    )
    counted = started.unionByName(ended).groupBy(*_KEY).sum(*_COUNTED).toDF(*_KEY, *_COUNTED)
    return counted.select(
        "*", *(_promised(objectives, name).alias(name) for name in _PROMISED)
    ).selectExpr(
        *_KEY,
        f"{window.day_of('hour')} AS day",
        *_COUNTED,
        *_PROMISED,
        f"{_burn('started - started_in_time', 'started', 'start_ratio')} AS start_burn",
        f"{_burn('completed - completed_in_time', 'completed', 'finish_ratio')} AS finish_burn",
        f"{_burn('ended - completed', 'ended', 'success_ratio')} AS success_burn",
    )


def _burn(bad: str, all_of_them: str, ratio: str) -> str:
    return f"if({all_of_them} = 0, 0D, ({bad}) / {all_of_them} / (1 - {ratio}))"


def _promised(objectives: Sequence[Objective], name: str) -> Expression:
    """What the first objective that fits a row's queue and type says."""
    said = sf.lit(float(getattr(DEFAULT[0], name)))
    for one in reversed(objectives):
        fits = sf.lit(True)  # noqa: FBT003 - a literal of SQL
        if one.queue is not None:
            fits &= sf.col("queue") == one.queue
        if one.type is not None:
            fits &= sf.col("type") == one.type
        said = sf.when(fits, sf.lit(float(getattr(one, name)))).otherwise(said)
    return said


def table(objectives: Sequence[Objective] = DEFAULT) -> Table:
    """The table, judged by these objectives."""
    return Table(
        name="gold/slo",
        grain="One row per queue, type and hour in which a job first started, completed, failed or died.",
        key=_KEY,
        columns=_COLUMNS,
        partition_by=("day",),
        transform=partial(transform, objectives=tuple(objectives)),
        changes_with=("jobs", "attempts"),
        totals=(
            Total("attempts.first", ("started",)),
            Total("jobs.completed", ("completed",)),
            Total("jobs.finished", ("ended",)),
        ),
        checks=_CHECKS,
    )


_COLUMNS = (
    Column("queue", "string", "The queue."),
    Column("type", "string", "The type of the jobs."),
    window.HOUR,
    window.DAY,
    Column("started", "bigint", "Jobs whose first attempt started."),
    Column("started_in_time", "bigint", "Of those, within `start_seconds` of being due."),
    Column("completed", "bigint", "Jobs that completed."),
    Column(
        "completed_in_time", "bigint", "Of those, within `finish_seconds` of being due at first."
    ),
    Column("ended", "bigint", "Jobs that completed, failed or died; cancelled ones do not count."),
    Column("start_seconds", "double", "The objective: how soon jobs start."),
    Column("start_ratio", "double", "The objective: the part of them that does."),
    Column("finish_seconds", "double", "The objective: how soon jobs complete."),
    Column("finish_ratio", "double", "The objective: the part of them that does."),
    Column("success_ratio", "double", "The objective: the part of ended jobs that completed."),
    Column("start_burn", "double", "Burn rate of the budget for late starts; above 1 is too fast."),
    Column("finish_burn", "double", "Burn rate of the budget for late finishes."),
    Column("success_burn", "double", "Burn rate of the budget for jobs that failed or died."),
)
_CHECKS = (
    Check(
        "slo judges every first attempt and every ended job of silver",
        """SELECT * FROM
          (SELECT coalesce(sum(started), 0) AS told_started, coalesce(sum(completed), 0) AS told_completed,
             coalesce(sum(ended), 0) AS told_ended FROM gold_slo),
          (SELECT count_if(attempt = 1) AS started FROM silver_attempts),
          (SELECT count_if(state = 'completed') AS completed,
             count_if(state IN ('completed', 'failed', 'dead')) AS ended FROM silver_jobs)
        WHERE told_started <> started OR told_completed <> completed OR told_ended <> ended""",
    ),
    Check(
        "no more is in time than there is, and burn rates are never negative",
        """SELECT * FROM gold_slo WHERE started_in_time > started OR completed_in_time > completed
          OR completed > ended OR start_burn < 0 OR finish_burn < 0 OR success_burn < 0""",
    ),
)
