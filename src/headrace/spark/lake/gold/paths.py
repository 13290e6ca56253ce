"""Gold: the chain of jobs that determined when a job with dependencies ended.

A job's critical predecessor is the dependency that ended last, if it ended after the job was submitted:
otherwise nothing held the job up. Following predecessors back gives the critical path. Only the past of a
job's end is looked at, so that what happens later never changes a row.

The walk is a loop of joins, one per step back, each on the paths that still have a step to go; it ends with
the longest path. The store allows chains of 100 jobs, and so many steps are walked at most. What a FAN_IN
waits for beyond the jobs it names (those that they spawned) is not looked at.
"""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.spark.lake.gold import window
from headrace.spark.lake.table import Check, Column, Sources, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STEPS_MAX = 100
_BROADCAST_ROWS = 100_000
"""Up to here the paths of a step are handed to every task, and the table of jobs need not be shuffled."""

_STEP = f"""struct(job_id, type, {window.seconds("wait_us")} AS wait_seconds,
    {window.seconds("run_us")} AS run_seconds)"""
_LAST = ("job_id", "born_seq", "tenant", "queue", "type", "state", "finalized_at")


def transform(sources: Sources) -> DataFrame:
    paths = (
        window.jobs(sources)
        .where(window.within("finalized_at", sources.hours))
        .where("size(dependencies) > 0")
        .selectExpr(
            f"struct({', '.join(_LAST)}) AS last",
            f"array({_STEP}) AS steps",
            "dependencies.job_id AS needs",
            "coalesce(born_seq, 0L) AS head_born_seq",
            "created_at AS head_created_at",
            "finalized_at AS head_finalized_at",
        )
    )
    walked = []
    for _ in range(STEPS_MAX):
        # Kept, not computed again at each further step; dropped with the DataFrame.
        paths = paths.localCheckpoint(eager=False)
        walked.append(paths)
        rows, oldest = _left(paths)
        if not rows:
            break
        ended = sources.all_jobs.where(sf.col("finalized_at") > sf.lit(oldest))
        on = paths.where("size(needs) > 0")
        paths = _step_back(sf.broadcast(on) if rows <= _BROADCAST_ROWS else on, ended)
    if not walked[1:]:
        return sources.jobs.sparkSession.createDataFrame([], TABLE.ddl)
    return _longest(reduce(lambda one, other: one.unionByName(other), walked[1:]))


def _left(paths: DataFrame) -> tuple[int, datetime | None]:
    """How many paths may have a step to go, and since when nothing can have held them up."""
    counted = paths.where("size(needs) > 0").agg(sf.count("*"), sf.min("head_created_at"))
    rows, oldest = counted.collect()[0]
    return rows, oldest


def _step_back(paths: DataFrame, ended: DataFrame) -> DataFrame:
    """Each path with its critical predecessor put before it; paths that have none are left out."""
    parents = ended.selectExpr(
        "job_id AS parent_id",
        f"""struct(finalized_at, job_id, coalesce(born_seq, 0L) AS born_seq, created_at,
            {_STEP} AS step, dependencies.job_id AS needs) AS parent""",
    )
    return (
        paths.selectExpr("*", "explode(array_distinct(needs)) AS need")
        .join(parents, sf.col("need") == sf.col("parent_id"))
        .where("parent.finalized_at > head_created_at AND parent.finalized_at <= head_finalized_at")
        # An id may have later lives. Jobs of one batch, which are of one moment, may come in any order.
        .where("parent.born_seq < head_born_seq OR parent.created_at = head_created_at")
        .groupBy("last.job_id", "last.born_seq")
        .agg(
            sf.expr("any_value(last) AS last"),
            sf.expr("any_value(steps) AS steps"),
            sf.expr("max_by(parent, struct(parent.finalized_at, parent.job_id)) AS parent"),
        )
        .selectExpr(
            "last",
            "concat(array(parent.step), steps) AS steps",
            "parent.needs AS needs",
            "parent.born_seq AS head_born_seq",
            "parent.created_at AS head_created_at",
            "parent.finalized_at AS head_finalized_at",
        )
    )


def _longest(walked: DataFrame) -> DataFrame:
    """Of the stages of each walk the last, as rows of the table."""
    return (
        walked.groupBy("last.job_id", "last.born_seq")
        .agg(sf.expr("max_by(struct(last, steps, head_created_at), size(steps)) AS path"))
        .selectExpr("path.last.*", "path.steps", "path.head_created_at")
        .selectExpr(
            *("job_id", "born_seq", "tenant", "queue", "type", "state"),
            f"{window.hour_of('finalized_at')} AS hour",
            f"{window.day_of('finalized_at')} AS day",
            "finalized_at",
            "size(steps) AS length",
            "(unix_micros(finalized_at) - unix_micros(head_created_at)) / 1e6D AS elapsed_seconds",
            f"{_total('wait_seconds')} AS wait_seconds",
            f"{_total('run_seconds')} AS run_seconds",
            "steps",
        )
    )


def _total(field: str) -> str:
    return f"aggregate(steps.{field}, 0D, (total, one) -> total + one)"


TABLE = Table(
    name="gold/paths",
    grain="One row per ended job that a dependency held up: its critical path.",
    key=("job_id", "born_seq"),
    columns=(
        Column("job_id", "string", "The job at the end of the path."),
        Column("born_seq", "bigint", "Which life of that id, as in silver.", nullable=True),
        Column("tenant", "string", "Its tenant."),
        Column("queue", "string", "Its queue."),
        Column("type", "string", "Its type."),
        Column("state", "string", "How it ended."),
        window.HOUR,
        window.DAY,
        Column("finalized_at", "timestamp", "When it ended; `hour` is the hour of this time."),
        Column("length", "int", "Jobs on the path, this one included; at least 2."),
        Column(
            "elapsed_seconds",
            "double",
            "From the submission of the first job to the end of the last.",
        ),
        Column(
            "wait_seconds", "double", "How long the jobs of the path waited for a worker, together."
        ),
        Column("run_seconds", "double", "How long they ran, together, all attempts counted."),
        Column(
            "steps",
            "array<struct<job_id: string, type: string, wait_seconds: double, run_seconds: double>>",
            "The jobs of the path, the first one first.",
        ),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("paths",),
    checks=(
        Check(
            "a path ends with its own job, and has as many steps as it says",
            """SELECT * FROM gold_paths WHERE length <> size(steps) OR length < 2
              OR element_at(steps, -1).job_id <> job_id OR elapsed_seconds < 0""",
        ),
        Check(
            "every path belongs to an ended job of silver that has dependencies",
            """SELECT path.* FROM gold_paths path LEFT ANTI JOIN silver_jobs job
              ON job.job_id = path.job_id AND job.born_seq <=> path.born_seq
              AND job.finalized_at = path.finalized_at AND size(job.dependencies) > 0""",
        ),
    ),
)
