"""Gold: how many jobs waited and ran at the end of each minute.

Silver tells by how much each batch moves a queue's levels: a level is their running sum. What comes late is
just more of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.model import CLAIMABLE, LEASED, State
from headrace.spark.folding import WAITING
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
_WAITING = _among(WAITING)
_LEASED = _among(LEASED)


def transform(sources: Sources) -> DataFrame:
    changes = (
        sources.levels.groupBy("queue", "minute")
        .agg(*(sf.expr(f"sum({name}) AS {name}") for name in (*_LEVELS, "changes")))
        # What was told and taken back again.
        .where("changes <> 0 OR waiting <> 0 OR ready <> 0 OR running <> 0")
    )
    levels = changes.selectExpr(
        "queue",
        "minute",
        *(
            f"sum({level}) OVER (PARTITION BY queue ORDER BY minute) AS {level}"
            for level in _LEVELS
        ),
    )
    return levels.where(window.within("minute", sources.hours)).selectExpr(
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
    changes_with=("levels",),
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
