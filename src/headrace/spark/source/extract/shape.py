"""Columns as a driver hands them out, made into exactly the types that Spark was promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

_read_list = msgspec.json.Decoder(list[str]).decode


def shaped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows under this schema; columns are matched by their place."""
    for batch in batches:
        if batch.num_rows:
            columns = [
                _as(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    if pa.types.is_list(wanted) and pa.types.is_string(column.type):
        return _lists(column, wanted)
    return pc.cast(column, wanted)


def _lists(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Texts that are JSON lists of texts. Few different ones come in many rows."""
    coded = column.dictionary_encode()
    lists = pa.array([_read_list(text) for text in coded.dictionary.to_pylist()], wanted)
    return lists.take(coded.indices)
