"""Gold: how many jobs waited and ran at the end of each minute.

A job's events say where it stood from each to the next: so a level is a running sum of what they changed.
Between two events it changes only when a job becomes due. A job's own time never runs back. What was
changed by jobs that ended before the first hour asked for comes to nothing by then, so those that are open
or ended since suffice to carry the level on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.model import CLAIMABLE, LEASED, TERMINAL, State
from headrace.spark.lake.gold import window
from headrace.spark.lake.table import Check, Column, Sources, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEVELS = ("waiting", "ready", "running")


def _among(states: frozenset[State]) -> str:
    """SQL: a list of states."""
    named = ", ".join(f"'{state.value}'" for state in sorted(states))
    return f"({named})"


_CLAIMABLE = _among(CLAIMABLE)
_WAITING = _among(frozenset(State) - TERMINAL - LEASED)
_LEASED = _among(LEASED)


def _entered(states: str) -> str:
    """SQL: 1 for an event that brought the job into one of these states, -1 for one that took it out."""
    return f"int(state IN {states}) - int(state_before IN {states})"


# Whole arrays beside each other, not a function per event: so Spark reads three fields of the timeline.
_EVENTS = """inline(arrays_zip(
    timeline.at, timeline.after, timeline.run_at, slice(timeline.at, 2, size(timeline.at)),
    concat(array(''), timeline.after),
    concat(array(timeline.run_at[0]), timeline.run_at)))"""
_OF_EVENTS = ("at", "state", "run_at", "left_at", "state_before", "run_at_before")
_CHANGES = f"""inline(array(
    struct(at,
        {_entered(_WAITING)} AS waiting,
        int(state IN {_CLAIMABLE} AND run_at <= at)
            - int(state_before IN {_CLAIMABLE} AND run_at_before <= at) AS ready,
        {_entered(_LEASED)} AS running),
    struct(run_at AS at, 0 AS waiting,
        int(state IN {_CLAIMABLE} AND run_at > at AND run_at <= coalesce(left_at, run_at)) AS ready,
        0 AS running)))"""


def transform(sources: Sources) -> DataFrame:
    events = window.jobs(sources).selectExpr("queue", _EVENTS).toDF("queue", *_OF_EVENTS)
    changes = (
        # The arrays of what was before are longer by one.
        events.where("at IS NOT NULL")
        .selectExpr("queue", _CHANGES)
        .where(" OR ".join(f"{level} <> 0" for level in _LEVELS))
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
        *_LEVELS,
    )


TABLE = Table(
    name="gold/backlog",
    grain="One row per queue and minute in which jobs began or ceased to wait, to be ready or to run; until "
    "the next row the levels stay. A row may lie ahead of the last event: jobs become due then.",
    key=("queue", "minute"),
    columns=(
        Column("queue", "string", "The queue."),
        window.MINUTE,
        window.HOUR,
        window.DAY,
        Column(
            "waiting",
            "bigint",
            "Jobs at the end of the minute that have not ended and do not run: blocked, due later, or ready.",
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
                count_if(state IN {_WAITING}) AS waiting,
                count_if(state IN {_LEASED}) AS running,
                count_if(state IN {_CLAIMABLE}) AS ready FROM silver_jobs GROUP BY queue)
            SELECT * FROM told FULL JOIN held USING (queue)
            WHERE NOT (told.waiting <=> held.waiting AND told.running <=> held.running
                AND told.ready <=> held.ready)""",  # noqa: S608 - our own words, no input
        ),
    ),
)
