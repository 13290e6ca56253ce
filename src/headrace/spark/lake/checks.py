"""What must hold of the lake, looked at after every run: by SQL over its tables, and against the store."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import HeadraceError
from headrace.spark.lake.delta import Snapshot
from headrace.spark.lake.table import SAMPLE_ROWS, Check, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 12
"""Checks in one query: Spark plans them once, and runs them side by side."""
_OF_EACH = 2
"""Checks of every table besides its own: its key, and what must be there."""


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


_BROUGHT = {"bronze/events": "seq", "silver/jobs": "last_seq", "silver/attempts": "leased_seq"}
"""The column that tells which rows of a large table a run has brought."""


def keys_and_gaps(table: Table, held: Snapshot, seq: int) -> list[Offence]:
    """What must hold of every table: its key is unique, and nothing that must be there is missing.

    Of the large tables, what changed at or after `seq` is looked at. Without Spark: this is little work,
    and Spark would take longer to plan it.
    """
    since = _BROUGHT.get(table.name)
    where = None if since is None else pc.field(since) >= seq
    files = [file for file in held.files if since is None or file.high.get(since, seq) >= seq]
    found: list[Offence] = []
    rows = held.read(list(table.key), where=where, files=files).group_by(list(table.key))
    repeated = rows.aggregate([([], "count_all")])
    repeated = repeated.filter(pc.greater(repeated["count_all"], 1))
    if repeated.num_rows:
        found.append(_offence(table, "its key is unique", repeated))
    needed = [column.name for column in table.columns if not column.nullable]
    for file in files:
        part = held.read(needed, where=where, files=[file])
        gaps = [name for name in needed if part[name].null_count]
        if gaps:
            nulls = functools.reduce(pc.or_, (pc.is_null(part[name]) for name in gaps))
            missing = part.filter(nulls).select([*gaps, *(k for k in table.key if k in needed)])
            found.append(_offence(table, f"{', '.join(gaps)} must be there", missing))
    return found


def _offence(table: Table, check: str, rows: pa.Table) -> Offence:
    sample = rows.slice(0, SAMPLE_ROWS).to_pylist()
    return Offence(table.name, check, rows.num_rows, tuple(str(row) for row in sample))


def run_checks(
    spark: SparkSession,
    tables: Mapping[Table, Snapshot],
    seq: int,
    tell: Callable[[int, int], None],
) -> tuple[int, list[Offence]]:
    """How many checks there were, and those that failed. The tables' views must be there.

    `tell` is told how many are done, and how many there are.
    """
    failed: list[Offence] = []
    every = [(table, check) for table in tables for check in table.checks]
    total = _OF_EACH * len(tables) + len(every)
    for done, (table, held) in enumerate(tables.items()):
        tell(_OF_EACH * done, total)
        failed += keys_and_gaps(table, held, seq)
    for start in range(0, len(every), _AT_ONCE):
        tell(_OF_EACH * len(tables) + start, total)
        some = every[start : start + _AT_ONCE]
        counts = " UNION ALL ".join(
            f"SELECT {place} AS place, count(*) AS offending FROM ({check.sql})"  # noqa: S608 - our own words
            for place, (_, check) in enumerate(some)
        )
        for row in spark.sql(counts, args={"seq": seq}).collect():
            if row.offending:
                table, check = some[row.place]
                failed.append(offence(spark, table.name, check, row.offending, seq))
    return total, failed


def offence(spark: SparkSession, table: str, check: Check, rows: int, seq: int) -> Offence:
    """A failed check, with some of the rows that offend."""
    found = spark.sql(check.sql, args={"seq": seq}).limit(SAMPLE_ROWS).collect()
    # Not as JSON: a check may give two columns of one name.
    return Offence(table, check.name, rows, tuple(str(row) for row in found))
