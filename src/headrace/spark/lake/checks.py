"""What must hold of the lake, in three tiers.

Free, on every run: the layers' ledgers against each other, against what the Delta log says of the files, and
against sums over gold; what must be there is. Cheap, on every run: one count of the store's log, and a sample
of the jobs that changed (`reconciliation`). All of it, on demand: SQL over whole tables, and every job of the
store.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.errors import HeadraceError
from headrace.spark.lake import ledger
from headrace.spark.lake.bronze import EVENTS_TABLE
from headrace.spark.lake.delta import Snapshot
from headrace.spark.lake.silver import ATTEMPTS_TABLE, JOBS_TABLE
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import SAMPLE_ROWS, Check, Table
from headrace.spark.lake.tasks import Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 12
"""Checks in one query: Spark plans them once, and runs them side by side."""
_NEAR = 1e-6
"""How far sums of seconds may be from each other, by the order of adding."""


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


class Checked(NamedTuple):
    made: int
    """How many checks there were."""
    failed: tuple[Offence, ...]


# --- free: nothing is read but gold's sums -------------------------------------------------------


def check_ledgers(tables: Mapping[Table, Snapshot]) -> Checked:
    """The layers against each other, and each against its files, by what their commits say."""
    bronze, jobs, attempts = (
        tables[table].note.get("ledger", {}) for table in (EVENTS_TABLE, JOBS_TABLE, ATTEMPTS_TABLE)
    )
    found = [
        _equal(
            EVENTS_TABLE,
            "it holds as many rows as were committed",
            tables[EVENTS_TABLE].rows,
            bronze.get("events", 0),
        ),
        *(
            _equal(table, "it holds as many rows as were committed", tables[table].rows, told)
            for table, told in (
                (JOBS_TABLE, jobs.get("rows", 0)),
                (ATTEMPTS_TABLE, attempts.get("rows", 0)),
            )
        ),
        *(
            _equal(table, name, one, other)
            for table, name, one, other in (
                (
                    JOBS_TABLE,
                    "silver holds every event of bronze once",
                    jobs.get("events", 0),
                    bronze.get("events", 0),
                ),
                (
                    JOBS_TABLE,
                    "silver holds every life that bronze tells of",
                    jobs.get("lives", 0),
                    bronze.get("lives", 0),
                ),
                (
                    ATTEMPTS_TABLE,
                    "there are as many attempts as lease events",
                    attempts.get("rows", 0),
                    bronze.get("leases", 0),
                ),
                (
                    ATTEMPTS_TABLE,
                    "jobs wait as long as their attempts do",
                    jobs.get("wait_us", 0),
                    attempts.get("wait_us", 0),
                ),
                (
                    ATTEMPTS_TABLE,
                    "jobs run as long as their attempts do",
                    jobs.get("run_us", 0),
                    attempts.get("run_us", 0),
                ),
            )
        ),
    ]
    return Checked(len(found), tuple(one for one in found if one is not None))


def check_gaps(tables: Mapping[Table, Snapshot]) -> Checked:
    """What must be there is, by the statistics of the files."""
    failed = [
        Offence(table.name, f"{column.name} must be there", missing, (file.path,))
        for table, held in tables.items()
        for file in held.files
        for column in table.columns
        if not column.nullable and (missing := file.nulls.get(column.name))
    ]
    return Checked(len(tables), tuple(failed))


def check_totals(tasks: Tasks, tables: Mapping[Table, Snapshot]) -> Checked:
    """Sums over gold against silver's ledger. Tasks add up."""
    counts = ledger.silver_counts(
        tables[JOBS_TABLE].note.get("ledger", {}), tables[ATTEMPTS_TABLE].note.get("ledger", {})
    )
    asked = [
        (
            table,
            held,
            tuple(dict.fromkeys(name for total in table.totals for name in total.columns)),
        )
        for table, held in tables.items()
        if table.totals
    ]
    size = -(-len(asked) // max(tasks.parallelism, 1)) or 1
    parts = [
        tuple(
            _Summed(held.storage, tuple(file.path for file in held.files), names)
            for _, held, names in asked[start : start + size]
        )
        for start in range(0, len(asked), size)
    ]
    sums = [one for part in tasks.run(_sums, parts) for one in part]
    found = [
        _equal(
            table,
            f"its {' and '.join(total.columns)} add up to silver's {total.name}",
            sum(told[name] for name in total.columns),
            counts.get(total.name, 0) / total.divided_by
            if total.divided_by != 1
            else counts.get(total.name, 0),
        )
        for (table, _, _), told in zip(asked, sums, strict=True)
        for total in table.totals
    ]
    return Checked(len(found), tuple(one for one in found if one is not None))


class _Summed(NamedTuple):
    storage: Storage
    paths: tuple[str, ...]
    columns: tuple[str, ...]


def _sums(asked: Sequence[_Summed]) -> list[dict[str, float]]:
    return [_sums_of(one) for one in asked]


def _sums_of(asked: _Summed) -> dict[str, float]:

    sums = dict.fromkeys(asked.columns, 0.0)
    for path in asked.paths:
        with asked.storage.open_input(path) as source:
            rows = pq.read_table(source, columns=list(asked.columns))
        for name in asked.columns:
            sums[name] += pc.sum(rows[name], min_count=0).as_py()
    return sums


def _equal(table: Table, name: str, told: float, wanted: float) -> Offence | None:
    near = _NEAR if wanted % 1 or told % 1 else 0
    if math.isclose(told, wanted, rel_tol=near, abs_tol=near):
        return None
    return Offence(
        table.name,
        name,
        max(1, round(abs(told - wanted))),
        (f"{told:,} where {wanted:,} is right",),
    )


# --- all of it -----------------------------------------------------------------------------------


def audit(
    spark: SparkSession, tables: Sequence[Table], tell: Callable[[int, int], None]
) -> Checked:
    """Every check of every table, by SQL over whole tables. Their views must be there.

    `tell` is told how many are done, and how many there are.
    """
    failed: list[Offence] = []
    every = [(table, check) for table in tables for check in (*_of_any(table), *table.checks)]
    for start in range(0, len(every), _AT_ONCE):
        tell(start, len(every))
        some = every[start : start + _AT_ONCE]
        counts = " UNION ALL ".join(
            f"SELECT {place} AS place, count(*) AS offending FROM ({check.sql})"  # noqa: S608 - our own words
            for place, (_, check) in enumerate(some)
        )
        for row in spark.sql(counts).collect():
            if row.offending:
                table, check = some[row.place]
                failed.append(offence(spark, table.name, check, row.offending))
    return Checked(len(every), tuple(failed))


def _of_any(table: Table) -> Iterator[Check]:
    """What must hold of every table."""
    key = ", ".join(table.key)
    yield Check(
        "its key is unique",
        f"SELECT {key}, count(*) AS rows FROM {table.view} GROUP BY {key} HAVING count(*) > 1",  # noqa: S608 - our own words
    )
    if needed := [column.name for column in table.columns if not column.nullable]:
        missing = " OR ".join(f"`{name}` IS NULL" for name in needed)
        yield Check(
            "what must be there is",
            f"SELECT {key} FROM {table.view} WHERE {missing}",  # noqa: S608 - our own words
        )


def offence(spark: SparkSession, table: str, check: Check, rows: int) -> Offence:
    """A failed check, with some of the rows that offend."""
    found = spark.sql(check.sql).limit(SAMPLE_ROWS).collect()
    # Not as JSON: a check may give two columns of one name.
    return Offence(table, check.name, rows, tuple(str(row) for row in found))


def together(*checked: Checked) -> Checked:
    """All of them."""
    return functools.reduce(
        lambda one, other: Checked(one.made + other.made, (*one.failed, *other.failed)), checked
    )
