"""Which part of silver a gold table reads, and the minutes, hours and days its rows fall into.

An attempt touches the hours from its lease to its end, a job those from its submission to its end; what is
still open may touch any. So every table reads what lies across the hours asked for: one condition, which the
statistics of the files can answer before Spark opens any (`files_across`).

Times are cut by arithmetic on UTC microseconds rather than by `date_trunc`, which follows the zone of the
session: the caller may have brought one of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.spark.lake.hours import Hours
from headrace.spark.lake.table import Column, Sources

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

    from headrace.spark.lake.delta import File

HOUR_SECONDS = 3600

HOUR = Column("hour", "timestamp", "The hour that the row belongs to, UTC.")
DAY = Column("day", "date", "The day of that hour, UTC; the table is partitioned by it.")
MINUTE = Column("minute", "timestamp", "The minute that the row tells of, UTC.")

JOB_SPAN = ("created_at", "finalized_at")
ATTEMPT_SPAN = ("leased_at", "ended_at")
"""The columns that say when one began and when it ended."""

_MINUTE_US = 60_000_000
_HOUR_US = HOUR_SECONDS * 1_000_000
_DAY_US = 86_400_000_000


def minute_of(time: str) -> str:
    """SQL: the minute that a time lies in."""
    return _cut(time, _MINUTE_US)


def hour_of(time: str) -> str:
    """SQL: the hour that a time lies in."""
    return _cut(time, _HOUR_US)


def day_of(time: str) -> str:
    """SQL: the UTC date of a time."""
    return f"date_from_unix_date(cast(floor(unix_micros({time}) / {_DAY_US}) AS int))"


def seconds(microseconds: str) -> str:
    """SQL: whole microseconds as seconds; nothing is 0."""
    return f"coalesce({microseconds}, 0) / 1e6D"


def attempts(sources: Sources) -> DataFrame:
    """The attempts that run, or that lie across the hours asked for."""
    return _across(sources.attempts, *ATTEMPT_SPAN, sources.hours)


def jobs(sources: Sources) -> DataFrame:
    """The jobs that have not ended, or that lie across the hours asked for."""
    return _across(sources.jobs, *JOB_SPAN, sources.hours)


def files_across(files: Sequence[File], begin: str, end: str, hours: Hours | None) -> list[File]:
    """Those that may hold a row that is open, or lies across the hours."""
    if hours is None:
        return list(files)
    times = hours.times()
    return [
        file
        for file in files
        if file.high.get(end) is None
        or any(
            (until is None or file.may_begin_before(begin, end, until))
            and (file.may_reach(end, since) or file.may_reach(begin, since))
            for since, until in times
        )
    ]


def within(time: str, hours: Hours | None) -> Expression:
    """The condition that a time lies in the hours asked for; a row without that time never does."""
    known = sf.col(time).isNotNull()
    return known if hours is None else known & _any(_inside(sf.col(time), hours))


def _inside(time: Expression, hours: Hours) -> Iterator[Expression]:
    for since, until in hours.times():
        later = time >= sf.lit(since)
        yield later if until is None else later & (time < sf.lit(until))


def _across(table: DataFrame, begin: str, end: str, hours: Hours | None) -> DataFrame:
    if hours is None:
        return table
    # A clock that was set back may have it end before it began.
    first, last = sf.least(begin, end), sf.greatest(begin, end)
    spans = (
        (last >= sf.lit(since))
        if until is None
        else (last >= sf.lit(since)) & (first < sf.lit(until))
        for since, until in hours.times()
    )
    # What the next condition implies, in words that Spark hands on to the reader of the files.
    since = sf.lit(hours.first)
    table = table.where(sf.col(end).isNull() | (sf.col(end) >= since) | (sf.col(begin) >= since))
    return table.where(sf.col(end).isNull() | _any(spans))


def _any(conditions: Iterable[Expression]) -> Expression:
    return reduce(lambda one, other: one | other, conditions)


def _cut(time: str, unit_us: int) -> str:
    return f"timestamp_micros(unix_micros({time}) - pmod(unix_micros({time}), {unit_us}))"
