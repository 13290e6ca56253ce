"""The lake's tables as Spark sees them: DataFrames over the files of one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.lake.delta import File, Snapshot
    from headrace.spark.lake.table import Table


def schema_of(table: Table) -> StructType:
    parsed = StructType.fromDDL(table.ddl)
    assert isinstance(parsed, StructType)
    return parsed


def frame_of(
    spark: SparkSession, table: Table, snapshot: Snapshot, files: Sequence[File] | None = None
) -> DataFrame:
    """The table as it was at the snapshot (only these files of it), lazy."""
    schema = schema_of(table)
    chosen = snapshot.files if files is None else files
    if not chosen:
        return spark.createDataFrame([], schema)
    names = [column.name for column in table.columns]
    return (
        spark.read.schema(schema)
        .option("basePath", str(snapshot.folder))
        # The files are named one by one; a folder's name may hold what looks like a pattern.
        .option("__globPaths__", "false")
        .parquet(*snapshot.paths(chosen))
        .select(*(f"`{name}`" for name in names))
    )
