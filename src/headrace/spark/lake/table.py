"""What a table of the lake is: its grain, its columns, how it is computed, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

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

    It may read the views `bronze_events`, `silver_jobs`, `silver_attempts` and `gold_<name>`, whole. A check
    that would cost too much on a large lake looks only at what the run has brought: `:seq` is the least seq
    of its events, and 0 when everything is to be checked.
    """

    name: str
    sql: str


@dataclass(frozen=True)
class Sources:
    """What a gold table is computed from: silver as it stands, lazy."""

    jobs: DataFrame
    """At least those that are open, or began or ended since: a transform narrows them by hours itself."""
    attempts: DataFrame
    """Likewise."""
    since: datetime | None
    """Every hour from this one on (UTC, truncated) is to be computed anew. None: all."""
    all_jobs: DataFrame
    """Those that ended long ago, too."""


@dataclass(frozen=True)
class Table:
    """One Delta table of the lake.

    A gold `transform` gives, for `since` = X, exactly the rows with `hour` >= X that it gives for None:
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

    @property
    def view(self) -> str:
        """The name under which checks read it: "gold_throughput"."""
        return self.name.replace("/", "_")

    @property
    def ddl(self) -> str:
        """Its schema in Spark's words."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


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
