"""What COPY takes, in its binary form: single values, whole columns of values, and sending them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Any

from headrace.stores.postgres.connection import Connection

NULL = b"\xff\xff\xff\xff"
NO_TEXTS = struct.pack(">iiii", 12, 0, 0, 25)
"""An empty text[]: no dimensions, no NULLs, elements of type text."""
SEQ_BYTES = 8

TEMPORARY = "pg_temp"
"""The schema of temporary tables."""

_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_SENT_BYTES = 1 << 18
"""In one message. Larger ones are copied about more often."""
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Values = bytes | list[bytes]
"""A column as it is sent: one value for all rows, or a list of them."""


async def copy_rows(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    batches: Iterable[bytes | memoryview],
    *,
    schema: str | None = None,
) -> None:
    """Send encoded rows into these columns of a table. Without a schema: a temporary one.

    Raises the driver's errors, and ConnectionResetError if the server closes the connection meanwhile.
    """
    copying = connection.copy_to_table(
        table,
        schema_name=schema or TEMPORARY,
        columns=columns,
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


async def _sent(batches: Iterable[bytes | memoryview]) -> AsyncIterator[bytes]:
    yield _HEAD
    for encoded in batches:
        for start in range(0, len(encoded), _SENT_BYTES):
            yield bytes(encoded[start : start + _SENT_BYTES])
    yield _END


def encoded(columns: Mapping[str, Values]) -> bytes:
    """The rows with these columns, of which at least one is a list."""
    parts: list[Iterable[bytes]] = []
    common = struct.pack(">h", len(columns))
    for values in columns.values():
        if isinstance(values, bytes):  # neighbours are put together first
            common += values
        else:
            parts += [repeat(common), values] if common else [values]
            common = b""
    if common:
        parts.append(repeat(common))
    return b"".join(chain.from_iterable(zip(*parts, strict=False)))  # common parts have no end


def column(values: list[Any], encode: Callable[[Any], bytes]) -> Values:
    first = values[0]
    if values.count(first) == len(values):
        return encode(first)
    return [encode(value) for value in values]


def sent_seqs(seqs: bytes) -> list[bytes]:
    """Numbers that the server has sent one after the other."""
    width = struct.pack(">i", SEQ_BYTES)
    return [width + seqs[start : start + SEQ_BYTES] for start in range(0, len(seqs), SEQ_BYTES)]


# --- single values ----------------------------------------------------------------------------------


def int4(value: int | None) -> bytes:
    return NULL if value is None else struct.pack(">ii", 4, value)


def int8(value: int | None) -> bytes:
    return NULL if value is None else struct.pack(">iq", 8, value)


def float8(value: float | None) -> bytes:
    return NULL if value is None else struct.pack(">id", 8, value)


def boolean(value: bool) -> bytes:  # noqa: FBT001 - a value, as the others
    return struct.pack(">i?", 1, value)


def timestamptz(value: datetime | None) -> bytes:
    return NULL if value is None else int8((value - EPOCH) // _MICROSECOND)


def text(value: str | None) -> bytes:
    return NULL if value is None else bytea(value.encode())


def bytea(value: bytes | None) -> bytes:
    return NULL if value is None else struct.pack(">i", len(value)) + value
