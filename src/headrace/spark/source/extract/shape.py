"""Columns as a driver hands them out, made into exactly the types that Spark was promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc


def shaped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows under this schema; columns are matched by their place."""
    for batch in batches:
        if batch.num_rows:
            columns = [
                _as(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else pc.cast(column, wanted)
