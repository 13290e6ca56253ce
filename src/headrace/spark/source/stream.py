"""The event log as a stream: `spark.readStream.format("headrace")`.

An offset is a cursor of the log: all up to it has been handed out. It lies in Spark's checkpoint, so
whoever starts again from there misses nothing and sees nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headrace.errors import InvalidCursor, InvalidInput, LogTrimmed
from headrace.spark.source.batch import started
from headrace.spark.source.columns import columns_of
from headrace.spark.source.extract.base import Pieces, Slice
from headrace.spark.source.extract.choice import check, extract_of
from headrace.spark.source.options import EARLIEST, LATEST, SourceOptions
from headrace.spark.source.patience import patiently

OFFSET_VERSION = 1

Offset = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Events in bounded batches. Spark keeps one of these on the driver, and a copy in every task."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        _check(options)
        self._options = options
        self._columns = columns_of(options.table, schema)
        self._extract = extract_of(options)
        self._target: str | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        check(self._options)
        starting = self._options.starting_cursor
        if starting == EARLIEST:
            starting = self._now(self._extract.log_start)
        elif starting == LATEST:
            starting = self._now(self._extract.log_end)
        return self._offset(starting)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._options.max_rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._now(lambda: self._extract.log_end(settled=True))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        after = self._cursor(start)
        self._check_log(start["mark"], after)
        end = self._target if self._target is not None else self._now(self._extract.log_end)
        place = self._extract.place
        if place(end) < place(after):
            raise InvalidCursor(
                f"the log of {self._options.where} ends at {end or 'its beginning'}, before the cursor "
                f"{after} from which the stream goes on; nothing was read: give it a cursor of this store, "
                "or, if an older state of the store was restored, a new checkpoint"
            )
        if place(end) == place(after):
            return start
        match limit:
            case ReadMaxRows(max_rows=rows):
                end = self._now(lambda: self._extract.further(after, rows, end))
            case ReadAllAvailable():
                pass
            case _:
                raise InvalidInput(
                    f"this source is limited by rows, not by {type(limit).__name__}; nothing was read"
                )
        return self._offset(end)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Slice]:
        after, upto = self._cursor(start), self._cursor(end)
        pieces = Pieces(self._options.partitions, self._options.rows_per_partition)
        slices = self._now(lambda: self._extract.cut_log(after, upto, pieces))
        return [replace(piece, unbroken=True) for piece in slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        return started(
            self._extract, "events", partition, self._columns, self._options.retry_seconds
        )

    def _now(self, call: Any) -> Any:
        return patiently(call, self._options.retry_seconds)

    # --- offsets ---------------------------------------------------------------------------------

    def _offset(self, cursor: str) -> Offset:
        mark = self._now(lambda: self._extract.mark(cursor)) if cursor else None
        return {"version": OFFSET_VERSION, "cursor": cursor, "mark": _digest(mark)}

    def _cursor(self, offset: Offset) -> str:
        version = offset.get("version")
        if version != OFFSET_VERSION:
            raise InvalidCursor(
                f"the checkpoint has an offset of version {version}, this Headrace knows version "
                f"{OFFSET_VERSION}; nothing was read: use the newer Headrace that wrote it"
            )
        cursor: str = offset["cursor"]
        return cursor

    def _check_log(self, mark: str | None, after: str) -> None:
        """That the checkpoint is of this store, and the log still holds what follows.

        The last event that was read is there and is the same; or it was trimmed, but none behind it. Looked
        at before every batch: a server that fails over to one that is behind takes the log back.
        """
        place = self._extract.place
        begin = self._now(self._extract.log_start)
        if place(begin) > place(after):
            raise LogTrimmed(
                after,
                begin,
                "give the stream a new checkpoint, and startingCursor earliest, to read what it still holds",
            )
        if mark is not None and place(begin) < place(after):
            self._check_mark(mark, after)

    def _check_mark(self, mark: str, after: str) -> None:
        if _digest(self._now(lambda: self._extract.mark(after))) != mark:
            raise InvalidCursor(
                f"the checkpoint was made on another store than {self._options.where} (or on this one "
                "before an older state of it was restored); nothing was read: give the stream the url it "
                "began with, or a new checkpoint"
            )


def _digest(mark: str | None) -> str | None:
    return None if mark is None else blake2b(mark.encode(), digest_size=8).hexdigest()


def _check(options: SourceOptions) -> None:
    if options.table != "events":
        raise InvalidInput(
            f"the table {options.table} cannot be read as a stream; nothing was read: the table events "
            "can, and spark.read reads the others"
        )
    for name in ("since", "until"):
        if getattr(options.predicates, name) is not None:
            raise InvalidInput(
                f"the option {name!r} applies to spark.read, not to a stream; nothing was read: filter "
                "the DataFrame instead"
            )
