"""Rows in the binary form of COPY, made of Arrow's columns without a loop over the rows."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.stores.postgres.connection import Connection

NULL = b"\xff\xff\xff\xff"
NO_TEXTS = struct.pack(">iiii", 12, 0, 0, 25)
"""An empty text[]: no dimensions, no NULLs, elements of type text."""

TEMPORARY = "pg_temp"
"""The schema of temporary tables."""

_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_SENT_BYTES = 1 << 18
"""In one message. Larger ones are copied about more often."""
_BINARY = pa.binary()
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_EPOCH_US = int(_EPOCH.timestamp()) * 1_000_000


class Common(NamedTuple):
    """A column that is the same for all rows of a group: its value for each group, as it is sent."""

    values: Sequence[bytes]


class Own(NamedTuple):
    """A column in which each row has its own: arrays that, put together, are what is sent."""

    parts: Sequence[pa.Array]


class Rows(NamedTuple):
    """Rows of one table."""

    columns: Mapping[str, Common | Own]
    groups: pa.Array | None = None
    """The number of each row's group, where there are columns by groups."""


async def copy_rows(
    connection: Connection, table: str, batches: Sequence[Rows], *, schema: str | None = None
) -> None:
    """Send batches, of the same columns each, into a table. Without a schema: a temporary one.

    Raises the driver's errors, and ConnectionResetError if the server closes the connection meanwhile.
    """
    if batches:
        copying = connection.copy_to_table(
            table,
            schema_name=schema or TEMPORARY,
            columns=list(batches[0].columns),
            format="binary",
            source=_sent(batches),
        )
        await _unless_lost(connection, copying)


async def _unless_lost(connection: Connection, copying: Coroutine[Any, Any, object]) -> None:
    """Wait for the end. The driver would wait for ever to send on, when its connection is gone."""
    gone = asyncio.Event()

    def told(_: Connection) -> None:
        gone.set()

    connection.add_termination_listener(told)
    ends = [asyncio.ensure_future(copying), asyncio.ensure_future(gone.wait())]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not ends[0].done():
            raise ConnectionResetError("it was closed while rows were being sent")
        await ends[0]
    finally:
        connection.remove_termination_listener(told)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _sent(batches: Iterable[Rows]) -> AsyncIterator[bytes]:
    yield _HEAD
    for batch in batches:
        encoded = encode(batch)
        for start in range(0, len(encoded), _SENT_BYTES):
            yield bytes(encoded[start : start + _SENT_BYTES])
    yield _END


def encode(rows: Rows) -> memoryview:
    """All rows, one after the other."""
    groups = 1 if rows.groups is None else max(map(_group_count, rows.columns.values()))
    common = [struct.pack(">h", len(rows.columns))] * groups
    parts: list[Any] = []
    for column in rows.columns.values():
        if isinstance(column, Common):  # neighbours are put together first: there are few groups
            common = [before + value for before, value in zip(common, column.values, strict=True)]
        else:
            parts += [*_spread(common, rows.groups), *column.parts]
            common = [b""] * groups
    joined = pc.binary_join_element_wise(*parts, *_spread(common, rows.groups), b"")
    _, offsets, data = joined.buffers()
    first, last = np.frombuffer(offsets, np.int32)[[joined.offset, joined.offset + len(joined)]]
    return memoryview(data)[first:last]


def _group_count(column: Common | Own) -> int:
    return len(column.values) if isinstance(column, Common) else 1


def _spread(values: Sequence[bytes], groups: pa.Array | None) -> list[Any]:
    """For each row the value of its group, unless there is nothing in it."""
    if not any(values):
        return []
    if len(values) == 1:
        return [pa.scalar(values[0], _BINARY)]
    return [pa.array(values, _BINARY).take(groups)]


# --- values of one kind for all rows of a group -----------------------------------------------------


def int4(value: int | None) -> bytes:
    return NULL if value is None else struct.pack(">ii", 4, value)


def int8(value: int | None) -> bytes:
    return NULL if value is None else struct.pack(">iq", 8, value)


def float8(value: float | None) -> bytes:
    return NULL if value is None else struct.pack(">id", 8, value)


def boolean(value: bool) -> bytes:  # noqa: FBT001 - a value, as the others
    return struct.pack(">i?", 1, value)


def timestamptz(value: datetime | None) -> bytes:
    return NULL if value is None else int8((value - _EPOCH) // timedelta(microseconds=1))


def text(value: str) -> bytes:
    return bytea(value.encode())


def bytea(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


# --- columns of the rows' own values ----------------------------------------------------------------


def own(column: pa.Array) -> Own:
    """Whole numbers, times, texts and bytes."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        sizes = pc.fill_null(pc.binary_length(column), -1)
        filled = column.cast(_BINARY).fill_null(b"") if column.null_count else column.cast(_BINARY)
        return Own([_numbers(sizes.to_numpy(), 4), filled])
    assert not pa.types.is_timestamp(column.type) or column.type.unit == "us"
    width = column.type.bit_width // 8
    filled = column.cast(pa.int64() if width == 8 else pa.int32()).fill_null(0)  # noqa: PLR2004 - bytes
    numbers = filled.to_numpy()
    if pa.types.is_timestamp(column.type):
        numbers = numbers - _EPOCH_US
    return numbered(
        _numbers(numbers, width), width, column.is_null() if column.null_count else None
    )


def numbered(values: pa.Array, width: int, nulls: pa.Array | None = None) -> Own:
    """Numbers of one width, as they are sent, but for the width."""
    sized = pc.binary_join_element_wise(pa.scalar(struct.pack(">i", width), _BINARY), values, b"")
    return Own([sized if nulls is None else pc.if_else(nulls, pa.scalar(NULL, _BINARY), sized)])


def sent_numbers(data: bytes, width: int) -> pa.Array:
    """Numbers that the server has sent one after the other."""
    fixed = pa.binary(width)
    return pa.Array.from_buffers(fixed, len(data) // width, [None, pa.py_buffer(data)]).cast(
        _BINARY
    )


def _numbers(values: np.ndarray[Any, Any], width: int) -> pa.Array:
    return sent_numbers(values.astype(f">i{width}").tobytes(), width)
