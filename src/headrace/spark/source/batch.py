"""A table of a store, read once: `spark.read.format("headrace")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headrace.errors import InvalidInput
from headrace.model import State
from headrace.spark.schemas import EVENTS
from headrace.spark.source.columns import columns_of
from headrace.spark.source.extract.base import Extract, Pieces, Slice, Table
from headrace.spark.source.extract.choice import check, extract_of
from headrace.spark.source.options import EARLIEST, Predicates, SourceOptions
from headrace.spark.source.patience import patiently

_STORED: dict[str, Table] = {"jobs": "jobs", "events": "events", "attempts": "histories"}


class Reader(DataSourceReader):
    """`partitions` fixes on the driver what is read; each task reads its part, all of it of one moment."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.starting_cursor != EARLIEST:
            raise InvalidInput(
                "the option 'startingCursor' applies to a stream, not to spark.read; nothing was read: leave "
                "it out, or use spark.readStream"
            )
        self._options = options
        self._columns = columns_of(options.table, schema)
        self._extract = extract_of(options)

    def partitions(self) -> Sequence[Slice]:
        options = self._options
        check(options)
        pieces = Pieces(options.partitions, options.rows_per_partition)
        return patiently(
            lambda: list(self._extract.cut(_STORED[options.table], pieces)), options.retry_seconds
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Slice):  # where there is nothing to read, Spark makes one up
            return iter(())
        options = self._options
        table = _STORED[options.table]
        if table != "histories":
            return started(self._extract, table, partition, self._columns, options.retry_seconds)
        events = started(self._extract, table, partition, EVENTS, options.retry_seconds)
        return _attempts(events, options.predicates, self._columns)


def started(
    extract: Extract, table: Table, piece: Slice, columns: pa.Schema, retry_seconds: float
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice. Until the first have come, a store that is away is waited for."""

    def start() -> Iterator[pa.RecordBatch]:
        batches = extract.rows(table, piece, columns)
        first = next(batches, None)
        return iter(()) if first is None else chain([first], batches)

    return patiently(start, retry_seconds)


def _attempts(
    histories: Iterator[pa.RecordBatch], wanted: Predicates, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    from headrace.spark.folding import attempts_of

    attempts = attempts_of(pa.Table.from_batches(histories, schema=EVENTS))
    if wanted.state is not None:
        # One that still runs has no state yet. No other is called running: to end is to leave the lease.
        state = pc.coalesce(pc.field("state_after"), pc.scalar(State.RUNNING.value))
        attempts = attempts.filter(pc.is_in(state, pa.array(wanted.state, pa.string())))
    if wanted.since is not None:
        attempts = attempts.filter(pc.field("leased_at") >= wanted.since)
    if wanted.until is not None:
        attempts = attempts.filter(pc.field("leased_at") < wanted.until)
    for batch in attempts.select(columns.names).to_batches():
        yield pa.RecordBatch.from_arrays(batch.columns, schema=columns)
