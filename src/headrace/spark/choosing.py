"""Choosing jobs of the lake by SQL: those that ended badly, and were not redriven since."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.clock import from_us
from headrace.errors import InvalidInput
from headrace.manager.retention import REDRIVABLE
from headrace.spark.reasons import reason
from headrace.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.lake.storage import Storage

GROUPS_MAX = 1000
"""So many error groups are told, the largest first."""
_STATES = ", ".join(f"'{state.value}'" for state in sorted(REDRIVABLE))
_GROUP = ("queue", "type", "state", "category", "code", "message")
_REDRIVEN = "redriven"


class Choice(NamedTuple):
    """What is asked for."""

    where: str
    limit: int | None = None
    tenant: str | None = None
    again: bool = False
    """Also those that were redriven before."""
    recent: Sequence[str] = ()
    """Ids of jobs that were redriven, and of which the lake does not know it yet."""


class Row(NamedTuple):
    """A job as the lake knows it."""

    job_id: str
    version: int
    created_at: datetime | None
    """None: the lake does not know its beginning."""
    group: tuple[str, ...]
    """What it ended with: queue, type, state, category, code, message."""


@dataclass(frozen=True)
class Group:
    """Jobs that ended alike: with the same error, but for its variable parts."""

    queue: str
    type: str
    state: str
    category: str
    code: str
    message: str
    jobs: int
    example: str
    """The id of one of them."""


class Groups:
    """Jobs counted by what they ended with."""

    def __init__(self) -> None:
        self._jobs: Counter[tuple[str, ...]] = Counter()
        self._examples: dict[tuple[str, ...], str] = {}

    def add(self, row: Row) -> None:
        self._jobs[row.group] += 1
        self._examples.setdefault(row.group, row.job_id)

    def largest(self) -> tuple[Group, ...]:
        """The largest first."""
        ordered = sorted(self._jobs.items(), key=lambda one: (-one[1], one[0]))
        return tuple(
            Group(**dict(zip(_GROUP, group, strict=True)), jobs=jobs, example=self._examples[group])
            for group, jobs in ordered[:GROUPS_MAX]
        )


class Chosen:
    """The jobs that were chosen, in the order in which they were submitted."""

    def __init__(self, found: DataFrame, choice: Choice) -> None:
        self._found = found
        self._choice = choice
        counted = {
            row[_REDRIVEN]: row["count"] for row in found.groupBy(_REDRIVEN).count().collect()
        }
        self.before: int = 0 if choice.again else counted.get(True, 0)
        """For so many more the condition holds, but they were redriven before."""
        self.count: int = sum(counted.values()) - self.before
        if choice.limit is not None:
            self.count = min(self.count, choice.limit)

    def rows(self) -> Iterator[Row]:
        jobs = self._jobs().select("job_id", "version", "created_us", "born_seq", *_GROUP)
        for row in jobs.toLocalIterator(prefetchPartitions=True):
            job_id, version, created_us, born_seq, *group = row
            # The first known change of a job whose beginning was trimmed is not when it was created.
            created_at = None if born_seq is None else from_us(created_us)
            yield Row(job_id, version, created_at, tuple(group))

    def _jobs(self) -> DataFrame:
        jobs = self._found if self._choice.again else self._found.where(f"NOT {_REDRIVEN}")
        jobs = jobs.orderBy("created_us", "job_id")
        return jobs if self._choice.limit is None else jobs.limit(self._choice.limit)


@contextlib.contextmanager
def choosing(given: SparkSession | None, lake: Storage, choice: Choice) -> Iterator[Chosen]:
    """The choice from the lake as it is now. Raises InvalidInput where the condition is none."""
    from pyspark.errors import PySparkException

    if not choice.where.strip():
        raise InvalidInput(
            "the condition is empty; nothing was chosen: write true to mean every job"
        )
    spark = session(given)
    with _views(spark, lake) as views, _quiet():
        found: DataFrame | None = None
        try:
            try:
                found = _found(spark, views, choice).persist()
                chosen = Chosen(found, choice)  # counts, and so evaluates the condition
            except PySparkException as error:
                raise InvalidInput(
                    f"the condition cannot be used: {reason(error)}; nothing was submitted"
                ) from error
            yield chosen
        finally:
            if found is not None:
                found.unpersist()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PySpark logs the whole trace of a bad query, too: the one who wrote it needs a line, not a page."""
    logger = logging.getLogger("SQLQueryContextLogger")
    was, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was


@contextlib.contextmanager
def _views(spark: SparkSession, lake: Storage) -> Iterator[dict[str, str]]:
    """Silver as temporary views, under names that nobody else has."""
    from headrace.spark.lake.silver import ATTEMPTS_TABLE, JOBS_TABLE, silver_of
    from headrace.spark.lake.views import frame_of

    own = uuid.uuid4().hex
    views = {}
    for name, table in (("jobs", JOBS_TABLE), ("attempts", ATTEMPTS_TABLE)):
        views[name] = f"headrace_{name}_{own}"
        held = silver_of(lake, table).snapshot()
        frame_of(spark, table, held).createOrReplaceTempView(views[name])
    try:
        yield views
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _found(spark: SparkSession, views: dict[str, str], choice: Choice) -> DataFrame:
    """One row per job for which the condition holds, told whether it was redriven."""
    from pyspark.sql import functions as sf

    from headrace.spark.lake.gold.errors import collapsed

    # The words `jobs` and `attempts` mean the lake's tables here, whatever the session calls by them. The
    # lines around the condition keep a comment in it from swallowing ours.
    matching = spark.sql(
        f"WITH jobs AS (SELECT * FROM {views['jobs']}),"  # noqa: S608 - the caller's own condition
        f" attempts AS (SELECT * FROM {views['attempts']})"
        " SELECT job_id, version, born_seq, tenant, queue, type, state, created_at,"
        " coalesce(category, '') AS category, coalesce(code, '') AS code,"
        f" coalesce({collapsed('message')}, '') AS message"
        # With its own alias: WHERE itself would be taken for one.
        f" FROM jobs AS jobs WHERE (\n{choice.where}\n)"
    ).where(f"state IN ({_STATES})")
    if choice.tenant is not None:
        matching = matching.where(sf.col("tenant") == choice.tenant)
    successors = (
        spark.table(views["jobs"])
        .where("previous_id IS NOT NULL")
        .groupBy(sf.col("previous_id").alias("of"))
        .agg(sf.max("created_at").alias("at"))
    )
    told = matching.join(successors, sf.col("of") == sf.col("job_id"), "left")
    # An id that was used again: what followed the life before it does not count.
    redriven = sf.expr("coalesce(at >= created_at, false)")
    if choice.recent:
        recent = spark.createDataFrame(_listed(choice.recent), "recent string").distinct()
        told = told.join(recent, sf.col("recent") == sf.col("job_id"), "left")
        redriven = redriven | sf.col("recent").isNotNull()
    return (
        told.withColumn(_REDRIVEN, redriven)
        .withColumn("created_us", sf.expr("unix_micros(created_at)"))
        .select("job_id", "version", "born_seq", "created_us", *_GROUP, _REDRIVEN)
    )


def _listed(ids: Sequence[str]) -> list[Any]:
    return [(job_id,) for job_id in ids]
