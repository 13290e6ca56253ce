"""Gold: how many jobs waited and ran at the end of each minute.

A level is a running sum: +1 where a span begins, -1 where it ends. Spans that ended before the first hour
asked for come to nothing by then, so what is open or ended since suffices to carry the level on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.spark.lake.gold import window
from headrace.spark.lake.table import Check, Column, Sources, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEVELS = ("unfinished", "running", "ready")
_CLAIMABLE = "('pending', 'retrying', 'lost')"


def transform(sources: Sources) -> DataFrame:
    attempts = window.attempts(sources).selectExpr(
        "queue",
        _steps(
            ("running", "leased_at", "ended_at"),
            ("ready", "ready_at", "if(ready_at IS NULL, NULL, leased_at)"),
        ),
    )
    jobs = (
        window.jobs(sources)
        .selectExpr(
            *("queue", "state", "run_at", "updated_at", "created_at", "finalized_at"),
            "element_at(timeline.before, -1) AS ended_from",
            "try_element_at(timeline.at, -2) AS waited_from",
            "try_element_at(timeline.run_at, -2) AS due_at",
        )
        .selectExpr(
            "*",
            f"""CASE WHEN state IN {_CLAIMABLE} THEN greatest(run_at, updated_at)
                WHEN finalized_at IS NOT NULL AND ended_from IN {_CLAIMABLE}
                    AND greatest(due_at, waited_from) < finalized_at
                THEN greatest(due_at, waited_from) END AS ready_from""",
        )
        .selectExpr(
            "queue",
            _steps(
                ("unfinished", "created_at", "finalized_at"),
                ("ready", "ready_from", "if(ready_from IS NULL, NULL, finalized_at)"),
            ),
        )
    )
    changes = (
        attempts.unionByName(jobs)
        .where("at IS NOT NULL")
        .groupBy("queue", sf.expr(window.minute_of("at")).alias("minute"))
        .agg(*(sf.expr(f"sum({level}) AS {level}") for level in _LEVELS))
    )
    levels = changes.selectExpr(
        "queue",
        "minute",
        *(
            f"sum({level}) OVER (PARTITION BY queue ORDER BY minute) AS {level}"
            for level in _LEVELS
        ),
    )
    return levels.where(window.since("minute", sources.since)).selectExpr(
        "queue",
        "minute",
        f"{window.hour_of('minute')} AS hour",
        f"{window.day_of('minute')} AS day",
        "unfinished - running AS waiting",
        "ready",
        "running",
    )


def _steps(*spans: tuple[str, str, str]) -> str:
    """SQL: a step up and a step down per span, one row each."""
    steps = [
        "struct("
        + ", ".join(
            [f"{at} AS at", *(f"{step if one == level else 0}L AS {one}" for one in _LEVELS)]
        )
        + ")"
        for level, begin, end in spans
        # A clock that was set back may have a span end before it began: nothing was there then.
        for at, step in ((f"least({begin}, {end})", 1), (end, -1))
    ]
    return f"inline(array({', '.join(steps)}))"


TABLE = Table(
    name="gold/backlog",
    grain="One row per queue and minute in which a level changed; until the next row the levels stay. "
    "A row may lie ahead of the last event: jobs become due then.",
    key=("queue", "minute"),
    columns=(
        Column("queue", "string", "The queue."),
        window.MINUTE,
        window.HOUR,
        window.DAY,
        Column(
            "waiting",
            "bigint",
            "Jobs at the end of the minute that have neither ended nor run: blocked, due later, or ready.",
        ),
        Column("ready", "bigint", "Of those, jobs that are due and claimable."),
        Column("running", "bigint", "Jobs leased to a worker at the end of the minute."),
    ),
    partition_by=("day",),
    transform=transform,
    checks=(
        Check(
            "levels are never negative",
            "SELECT * FROM gold_backlog WHERE waiting < 0 OR running < 0 OR ready < 0",
        ),
        Check(
            "the last levels are what silver holds",
            f"""WITH told AS (SELECT queue, max_by(waiting, minute) AS waiting,
                max_by(running, minute) AS running, max_by(ready, minute) AS ready
                FROM gold_backlog GROUP BY queue),
              held AS (SELECT queue,
                count_if(state IN ('blocked', 'pending', 'retrying', 'lost')) AS waiting,
                count_if(state IN ('running', 'cancelling')) AS running,
                count_if(state IN {_CLAIMABLE}) AS ready FROM silver_jobs GROUP BY queue)
            SELECT * FROM told FULL JOIN held USING (queue)
            WHERE NOT (told.waiting <=> held.waiting AND told.running <=> held.running
                AND told.ready <=> held.ready)""",  # noqa: S608 - our own words, no input
        ),
    ),
)
