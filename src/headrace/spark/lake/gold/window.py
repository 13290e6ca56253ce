"""Which part of silver a gold table reads, and the minutes, hours and days its rows fall into.

Whatever has ended before the first hour asked for can no longer touch a row from that hour on. So every
table reads what is still open, or ended since: one condition, which the statistics of the files can answer
before Spark opens any (`files_since`).

Times are cut by arithmetic on UTC microseconds rather than by `date_trunc`, which follows the zone of the
session: the caller may have brought one of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

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
    """The attempts that run, or that ended since: no other starts or ends in the hours asked for."""
    return _open_or_since(sources.attempts, *ATTEMPT_SPAN, sources.since)


def jobs(sources: Sources) -> DataFrame:
    """The jobs that have not ended, or that ended since."""
    return _open_or_since(sources.jobs, *JOB_SPAN, sources.since)


def files_since(files: Sequence[File], begin: str, end: str, moment: datetime | None) -> list[File]:
    """Those that may hold a row that is open, or began or ended since."""
    if moment is None:
        return list(files)
    return [
        file
        for file in files
        if not file.partition["ended"]
        or file.may_reach(end, moment)
        or file.may_reach(begin, moment)
    ]


def since(time: str, moment: datetime | None) -> Expression:
    """The condition that a time lies in the hours asked for; a row without that time never does."""
    known = sf.col(time).isNotNull()
    return known if moment is None else known & (sf.col(time) >= _literal(moment))


def _open_or_since(table: DataFrame, begin: str, end: str, moment: datetime | None) -> DataFrame:
    if moment is None:
        return table
    # A clock that was set back may have it end before it began.
    return table.where(sf.col(end).isNull() | since(end, moment) | since(begin, moment))


def _literal(moment: datetime) -> Expression:
    return sf.lit(moment.astimezone(UTC))


def _cut(time: str, unit_us: int) -> str:
    return f"timestamp_micros(unix_micros({time}) - pmod(unix_micros({time}), {unit_us}))"
