"""What must hold of the lake, looked at after every run: by SQL over its tables, and against the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headrace.errors import HeadraceError
from headrace.spark.lake.table import SAMPLE_ROWS, Check, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 12
"""Checks in one query: Spark plans them once, and runs them side by side."""


class Offence(NamedTuple):
    """A check that failed."""

    table: str
    check: str
    rows: int
    sample: tuple[str, ...]


class ChecksFailed(HeadraceError):
    """The tables are written, and something that must hold of them does not."""

    code = "CHECKS_FAILED"

    def __init__(self, offences: Sequence[Offence], lake: str) -> None:
        self.offences = tuple(offences)
        told = "; ".join(
            f"{one.table}: {one.check} ({one.rows} rows, such as {', '.join(one.sample[:2])})"
            for one in offences
        )
        count = len(self.offences)
        super().__init__(
            f"{count} {'check' if count == 1 else 'checks'} of the lake at {lake} failed: {told}. The run's "
            "tables are committed and stay readable, but do not trust these. Rebuild them with "
            "`headrace pipeline run --full`; if that fails, too, the store and its log disagree"
        )


def checks_of(table: Table) -> Iterator[Check]:
    """The table's own, and what holds of every table: keys are unique, and nothing needed is missing."""
    key = ", ".join(f"`{name}`" for name in table.key)
    brought = _BROUGHT.get(table.name, "true")
    yield Check(
        "its key is unique",
        f"SELECT {key}, count(*) AS rows FROM {table.view} WHERE {brought} GROUP BY {key} "  # noqa: S608 - our own words
        "HAVING count(*) > 1",
    )
    needed = [f"`{column.name}` IS NULL" for column in table.columns if not column.nullable]
    if needed:
        yield Check(
            "nothing that must be there is missing",
            f"SELECT * FROM {table.view} WHERE {brought} AND ({' OR '.join(needed)})",  # noqa: S608 - our own words
        )
    yield from table.checks


_BROUGHT = {
    "bronze/events": "seq >= :seq",
    "silver/jobs": "last_seq >= :seq",
    "silver/attempts": "coalesce(ended_seq, leased_seq) >= :seq",
}
"""The rows of the large tables that a run may have written."""


def run_checks(spark: SparkSession, tables: Sequence[Table], seq: int) -> tuple[int, list[Offence]]:
    """How many checks there were, and those that failed. The tables' views must be there."""
    every = [(table, check) for table in tables for check in checks_of(table)]
    failed: list[Offence] = []
    for start in range(0, len(every), _AT_ONCE):
        some = every[start : start + _AT_ONCE]
        counts = " UNION ALL ".join(
            f"SELECT {place} AS place, count(*) AS offending FROM ({check.sql})"  # noqa: S608 - our own words
            for place, (_, check) in enumerate(some)
        )
        for row in spark.sql(counts, args={"seq": seq}).collect():
            if row.offending:
                table, check = some[row.place]
                failed.append(offence(spark, table.name, check, row.offending, seq))
    return len(every), failed


def offence(spark: SparkSession, table: str, check: Check, rows: int, seq: int) -> Offence:
    """A failed check, with some of the rows that offend."""
    found = spark.sql(check.sql, args={"seq": seq}).limit(SAMPLE_ROWS).collect()
    # Not as JSON: a check may give two columns of one name.
    return Offence(table, check.name, rows, tuple(str(row) for row in found))
