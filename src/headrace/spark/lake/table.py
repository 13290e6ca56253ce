"""What a table of the lake is: its grain, its columns, how it is computed, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headrace.spark.lake.delta import Folder
from headrace.spark.lake.hours import Hours
from headrace.spark.lake.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE_ROWS = 5
"""Of what offends a check, this many rows are told."""


class Column(NamedTuple):
    """One column. The reference documentation is made from these."""

    name: str
    type: str
    """In the words of Spark's DDL: "string", "bigint", "timestamp", "array<string>"."""
    meaning: str
    nullable: bool = False


class Check(NamedTuple):
    """What must hold of the lake: a query that gives the rows that offend. None means passed.

    It may read the views `bronze_events`, `silver_jobs`, `silver_attempts`, `silver_levels` and
    `gold_<name>`, whole: `--full-check` asks them. What every run checks is `Total`.
    """

    name: str
    sql: str


class Total(NamedTuple):
    """What the sum of some columns over a whole gold table must be, by silver's ledger. Checked every run."""

    name: str
    """Of a count in the ledger: "jobs.completed"."""
    columns: tuple[str, ...]
    divided_by: float = 1
    """Microseconds in the ledger are seconds in gold: 1e6, and then sums of floats are near enough."""


@dataclass(frozen=True)
class Sources:
    """What a gold table is computed from: silver as it stands, lazy."""

    jobs: DataFrame
    """At least those that are open, or began or ended in `hours`: a transform narrows them itself."""
    attempts: DataFrame
    """Likewise."""
    levels: DataFrame
    """All of them."""
    hours: Hours | None
    """Every one of these hours is to be computed anew, and no other. None: all."""
    all_jobs: DataFrame
    """Those that ended long ago, too."""


@dataclass(frozen=True)
class Table:
    """One Delta table of the lake.

    A gold `transform` gives, for some hours, exactly the rows with such an `hour` that it gives for None:
    they replace those rows in one commit.
    """

    name: str
    """Its folder in the lake: "gold/throughput"."""
    grain: str
    """One sentence: what one row stands for."""
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    transform: Callable[[Sources], DataFrame] | None = None
    checks: tuple[Check, ...] = ()
    changes_with: tuple[str, ...] = ()
    """Of gold: what changes it, of what silver's commits say of the hours that they have changed."""
    totals: tuple[Total, ...] = ()

    @property
    def view(self) -> str:
        """The name under which checks read it: "gold_throughput"."""
        return self.name.replace("/", "_")

    @property
    def comments(self) -> dict[str, str]:
        """By column."""
        return {column.name: column.meaning for column in self.columns}

    @property
    def ddl(self) -> str:
        """Its schema in Spark's words."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


def folder_of(lake: Storage, table: Table, schema: pa.Schema) -> Folder:
    """Where a table of a lake lies."""
    return Folder(lake.within(table.name), schema, table.partition_by, table.comments)


def columns_of(schema: pa.Schema, meanings: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns of an Arrow schema with their meanings; a name that ends in "?" may be null."""
    from pyspark.sql.pandas.types import from_arrow_type

    said = {name.removesuffix("?"): (name.endswith("?"), text) for name, text in meanings.items()}
    assert list(said) == schema.names, "every column has its meaning, in order"
    return tuple(
        Column(
            field.name,
            from_arrow_type(field.type).simpleString(),
            said[field.name][1],
            nullable=said[field.name][0],
        )
        for field in schema
    )
