"""A table of a store, read once: `spark.read.format("headrace")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headrace.spark.source.columns import columns_of
from headrace.spark.source.extract.base import Extract, Pieces, Slice, Table
from headrace.spark.source.extract.choice import extract_of
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.patience import patiently


class Reader(DataSourceReader):
    """`partitions` fixes on the driver what is read; each task then reads its part, in its own snapshot."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._columns = columns_of(options.table, schema)
        self._extract = extract_of(options)

    def partitions(self) -> Sequence[Slice]:
        options = self._options
        pieces = Pieces(options.partitions, options.rows_per_partition)
        return patiently(lambda: self._extract.cut("events", pieces), options.retry_seconds)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Slice):  # where there is nothing to read, Spark makes one up
            return iter(())
        return started(
            self._extract, "events", partition, self._columns, self._options.retry_seconds
        )


def started(
    extract: Extract, table: Table, piece: Slice, columns: pa.Schema, retry_seconds: float
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice. Until the first have come, a store that is away is waited for."""

    def start() -> Iterator[pa.RecordBatch]:
        batches = extract.rows(table, piece, columns)
        first = next(batches, None)
        return batches if first is None else chain([first], batches)

    return patiently(start, retry_seconds)
