"""Rows as COPY takes them, made of Arrow's columns without a loop over the rows; new jobs made so."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.model import EventKind, State
from headrace.stores.postgres.columns import LOADED
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.copying import (
    EPOCH,
    NO_TEXTS,
    NULL,
    SEQ_BYTES,
    boolean,
    bytea,
    copy_rows,
    float8,
    int4,
    int8,
    text,
    timestamptz,
)
from headrace.stores.postgres.grouping import Group, detail_of
from headrace.stores.postgres.values import us_or_none

_BINARY = pa.binary()
_EPOCH_US = int(EPOCH.timestamp()) * 1_000_000


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


async def copy_batches(
    connection: Connection, table: str, batches: Sequence[Rows], schema: str | None = None
) -> None:
    """Batches of the same columns each. Without a schema: into a temporary table."""
    if batches:
        await copy_rows(
            connection, table, list(batches[0].columns), map(encode, batches), schema=schema
        )


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


class NewRows:
    """A batch of a load (columns ROWS), its groups, and the seqs taken for it, as the server sent them.

    Rows without keys and tags, about which nothing needs to be looked up.
    """

    def __init__(
        self, batch: pa.RecordBatch, groups: Sequence[Group], now: datetime, seqs: bytes
    ) -> None:
        born = [group.born(now) for group in groups]
        due = batch.column("run_at")
        payload = batch.column("payload")
        alike: dict[str, bytes] = {
            "tags": NO_TEXTS,
            "created_at": timestamptz(now),
            "updated_at": timestamptz(now),
            "event_at": timestamptz(now),
            **dict.fromkeys(("depth", "attempt", "failures", "losses"), int4(0)),
            "version": int4(1),
            "early": boolean(True),  # noqa: FBT003 - when it will commit is not known here
            "state": text(State.PENDING),
            "event_kind": text(EventKind.ENQUEUED),
        }
        self._groups = batch.column("group_number")
        self._sources: dict[str, Common | Own] = {
            **{name: Common([value] * len(groups)) for name, value in alike.items()},
            "lane": Common([int4(group.lane) for group in groups]),
            "max_attempts": Common([int4(job.max_attempts) for job in born]),
            "lease_seconds": Common([float8(job.lease_seconds) for job in born]),
            "lease_us": Common([int8(us_or_none(job.lease_seconds)) for job in born]),
            "timeout_seconds": Common([float8(job.timeout_seconds) for job in born]),
            "expires_at": Common([timestamptz(job.expires_at) for job in born]),
            "event_detail": Common([bytea(detail_of(job)) for job in born]),
            "seq": numbered(sent_numbers(seqs, SEQ_BYTES), SEQ_BYTES),
            "id": own(batch.column("id")),
            "run_at": own(pc.fill_null(due, pa.scalar(now, due.type))),
            "payload": own(payload),
            "event_payload_bytes": own(pc.binary_length(payload)),
        }

    def of(self, table: str) -> Rows:
        """The rows of one table, whose columns are those of LOADED without keys."""
        columns = {
            name: self._sources[source] for name, source in LOADED[table].items() if source != "key"
        }
        return Rows(columns, self._groups)
