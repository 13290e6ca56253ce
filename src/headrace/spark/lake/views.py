"""The lake's tables as Spark sees them: DataFrames over the files of one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from headrace.spark.lake.delta import read_files

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
    """The table as it was at the snapshot (only these files of it), lazy.

    Files of this machine are read by Spark itself; what lies at a url, by Arrow in its tasks: so no jar is
    needed for it.
    """
    schema = schema_of(table)
    chosen = snapshot.files if files is None else files
    if not chosen:
        return spark.createDataFrame([], schema)
    if not snapshot.storage.is_local:
        paths = [file.path for file in chosen]
        numbers = spark.range(0, len(paths), 1, min(len(paths), _TASKS_MAX))
        return numbers.mapInArrow(_reading(table, snapshot, paths), schema)
    names = [column.name for column in table.columns]
    root = f"file://{snapshot.storage.path}"  # whatever file system the cluster takes for its own
    return (
        spark.read.schema(schema)
        .option("basePath", root)
        # The files are named one by one; a folder's name may hold what looks like a pattern.
        .option("__globPaths__", "false")
        .parquet(*(f"{root}/{file.path}" for file in chosen))
        .select(*(f"`{name}`" for name in names))
    )


_TASKS_MAX = 200


def _reading(
    table: Table, snapshot: Snapshot, paths: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    storage, schema, partition_by = snapshot.storage, snapshot.schema, table.partition_by
    names = [column.name for column in table.columns]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_files(
                    storage, schema, partition_by, [paths[number]], columns=names
                ).to_batches()

    return read
