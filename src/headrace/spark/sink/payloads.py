"""Payloads as JSON, column by column: exactly the bytes that submitting the same values would store.

A struct's fields are written by Arrow, all rows at once, wherever that gives the same text as the codec;
the rest goes through the codec's own encoder. What that refuses is refused here, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace import codec, envelope
from headrace.errors import HeadraceError, InvalidPayload
from headrace.spark.schemas import TIME

Texts: TypeAlias = pa.Array
"""One JSON text per row, as Arrow strings; never null."""
Problems = dict[int, HeadraceError]

_SPECIAL = r'["\\\x00-\x1f\x7f]'
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_decode_lines = msgspec.json.Decoder().decode_lines
_decode = msgspec.json.Decoder().decode
_RESERVED_HEADS = (f'{{"{codec.BYTES_KEY}":', envelope.HEAD.decode())


class _ByRow(Exception):
    """This column holds something that must be looked at row by row."""


def payload_texts(column: pa.Array) -> tuple[Texts, Problems]:
    """The payload of each row, and what is wrong with those that have none (their text is `null`)."""
    if pa.types.is_null(column.type):
        return _nulls(len(column)), {}
    whole, one = (
        (_json_lines, _json_text) if pa.types.is_string(column.type) else (_texts, _value_text)
    )
    try:
        texts = whole(column)
        texts.validate(full=True)  # Spark's strings may hold bytes that are no Unicode
    except (_ByRow, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return _row_by_row(column, one)
    # The codec keeps some words for itself, and says so.
    return _row_by_row(column, one) if _any_reserved(texts) else (texts, {})


def _row_by_row(column: pa.Array, text_of: Callable[[pa.Scalar], bytes]) -> tuple[Texts, Problems]:
    texts: list[bytes] = []
    problems: Problems = {}
    for row, scalar in enumerate(column):
        try:
            texts.append(text_of(scalar) if scalar.is_valid else b"null")
        except (
            ValueError,
            OverflowError,
        ) as error:  # no Unicode, or a time that Python does not know
            texts.append(b"null")
            problems[row] = InvalidPayload(f"the payload cannot be read: {error}")
        except HeadraceError as error:
            texts.append(b"null")
            problems[row] = error
    return pa.array(texts, pa.binary()).cast(pa.string()), problems


def _json_text(scalar: pa.Scalar) -> bytes:
    try:
        value = _decode(scalar.as_py())
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidPayload(f"the payload is not JSON: {error}; nothing was stored") from error
    return codec.encode(value, limit=codec.PAYLOAD_BYTES_MAX)


def _value_text(scalar: pa.Scalar) -> bytes:
    return codec.encode(_plain(scalar.as_py(), scalar.type), limit=codec.PAYLOAD_BYTES_MAX)


def _plain(value: Any, type_: pa.DataType) -> Any:
    """Python's value with maps as dicts (Arrow gives them as pairs)."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: _plain(item, type_.item_type) for key, item in value}
    if pa.types.is_list(type_):
        return [_plain(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def _any_reserved(texts: Texts) -> bool:
    return any(pc.any(pc.starts_with(texts, head)).as_py() for head in _RESERVED_HEADS)


# --- strings of JSON -----------------------------------------------------------------------------


def _json_lines(column: pa.Array) -> Texts:
    """Every text read and written again: JSON has many spellings, and the store keeps one."""
    filled = pc.fill_null(column, "null")
    if pc.any(pc.match_substring(filled, "\n")).as_py():
        raise _ByRow
    lines = "\n".join(filled.to_pylist())
    values = _decode_lines(lines)
    if len(values) != len(column):
        raise _ByRow  # an empty text counts as no line
    try:
        written = _encode_lines(values)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise _ByRow from None
    return pa.array(written.split(b"\n")[:-1], pa.binary()).cast(pa.string())


# --- structs, maps, and what is in them ------------------------------------------------------------


def _texts(column: pa.Array) -> Texts:
    """JSON of any column, `null` where it is null."""
    return pc.fill_null(texts_or_null(column), "null")


def texts_or_null(column: pa.Array) -> pa.Array:
    """JSON of any column; null stays null."""
    type_ = column.type
    if pa.types.is_null(type_):
        return _nulls(len(column))
    if pa.types.is_struct(type_):
        return _struct(column)
    if pa.types.is_map(type_):
        return _map(column)
    if pa.types.is_list(type_):
        return _list(column)
    if pa.types.is_string(type_):
        return _strings(column)
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
        return column.cast(pa.string())
    return _by_codec(column)


def _strings(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, _SPECIAL)).as_py():
        return _by_codec(column)
    return pc.binary_join_element_wise('"', column, '"', "")


def _by_codec(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
        raise _ByRow  # JSON has no word for some of it
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(TIME)  # one spelling, whatever the session's zone
    values = column.to_pylist()
    texts = _encode_lines(values).split(b"\n")[:-1]
    return pa.array(texts, pa.binary(), mask=_mask(column)).cast(pa.string())


def _struct(column: pa.StructArray) -> pa.Array:
    if not column.type.num_fields:
        return _masked(pa.array(["{}"] * len(column), pa.string()), column)
    parts: list[Any] = []
    for number, field in enumerate(column.type):
        parts.append(("," if number else "{") + _encode(field.name).decode() + ":")
        parts.append(_texts(column.field(number)))
    return _masked(pc.binary_join_element_wise(*parts, "}", ""), column)


def _list(column: pa.ListArray) -> pa.Array:
    items = _texts(column.values).to_pylist()
    return _joined(column, items, "[", "]")


def _map(column: pa.MapArray) -> pa.Array:
    keys = _texts(column.keys).to_pylist()
    values = _texts(column.items).to_pylist()
    return _joined(
        column, [f"{key}:{value}" for key, value in zip(keys, values, strict=True)], "{", "}"
    )


def _joined(column: pa.Array, items: list[str], opening: str, closing: str) -> pa.Array:
    places = column.offsets.to_pylist()
    texts = [f"{opening}{','.join(items[start:end])}{closing}" for start, end in pairwise(places)]
    return pa.array(texts, pa.string(), mask=_mask(column))


def _masked(texts: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts


def _mask(column: pa.Array) -> Any:
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None


def _nulls(rows: int) -> Texts:
    return pa.array(["null"] * rows, pa.string())
