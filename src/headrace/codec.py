"""Payloads, results and checkpoints as JSON, with a size limit.

Bytes travel as `{"$bytes": "<base64>"}`, so that every store, and Spark, sees plain JSON. What is
encrypted travels in an envelope (`headrace.envelope`).
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import msgspec

from headrace import custom_types, envelope, error_text
from headrace.errors import InvalidInput, InvalidPayload, PayloadTooLarge

PAYLOAD_BYTES_DEFAULT = 1 << 20
PAYLOAD_BYTES_MAX = 16 << 20
BYTES_KEY = "$bytes"
_BYTES_HEAD = b'{"$bytes":"'
_RESERVED = frozenset({BYTES_KEY, envelope.SEALED_KEY})

_AS_THEY_ARE = frozenset({str, int, bool, type(None)})
"""Plain values that JSON has as they are."""

_encoder = msgspec.json.Encoder(enc_hook=custom_types.encode)
_decoder = msgspec.json.Decoder()


class Encoded(msgspec.Struct, frozen=True):
    """What `encode` has made already: it is taken as it is, up to its size."""

    json: bytes


def encode(value: Any, *, what: str = "payload", limit: int = PAYLOAD_BYTES_DEFAULT) -> bytes:
    """The value as JSON bytes.

    Raises InvalidPayload when it is not JSON-serialisable, PayloadTooLarge when it is too long.
    """
    if type(value) is Encoded:
        check_size(value.json, what, limit)
        return value.json
    if isinstance(value, bytes | bytearray | memoryview):
        value = {BYTES_KEY: base64.b64encode(value).decode("ascii")}
    elif isinstance(value, dict) and len(value) == 1 and not _RESERVED.isdisjoint(value):
        raise InvalidPayload(
            f"the {what} uses the reserved key {next(iter(value))!r}; nothing was stored"
        )
    try:
        encoded = _encoder.encode(value)
        _refuse_what_would_change(value, what)
    except InvalidInput:
        raise
    except Exception as error:
        # The value may be of a class of the caller's own, and do anything when it is looked at.
        raise InvalidPayload(
            f"the {what} cannot be written as JSON: {error_text.text_of(error)}; nothing was stored"
        ) from error
    check_size(encoded, what, limit)
    return encoded


def check_size(encoded: bytes, what: str, limit: int) -> None:
    """Raise PayloadTooLarge when the value is too long: JSON as encoded, bytes as they were given."""
    size = len(encoded)
    if encoded.startswith(_BYTES_HEAD) and encoded.endswith(b'"}'):
        digits = encoded[len(_BYTES_HEAD) : -2]
        size = len(digits) // 4 * 3 - digits[-2:].count(b"=")
    if size > limit:
        raise PayloadTooLarge(
            f"the {what} is {size} bytes, the limit is {limit}; nothing was stored"
        )


def decode(encoded: bytes) -> Any:
    """The value that `encode` was given (tuples come back as lists, as JSON does).

    For contents that are encrypted a `Sealed`, which only says so; CannotDecrypt if they are damaged.
    """
    try:
        value = _decoder.decode(encoded)
    except msgspec.DecodeError as error:
        raise InvalidPayload(f"stored JSON cannot be read: {error}") from error
    if isinstance(value, dict) and len(value) == 1:
        if BYTES_KEY in value:
            try:
                return base64.b64decode(value[BYTES_KEY], validate=True)
            except (binascii.Error, TypeError) as error:
                raise InvalidPayload(f"stored bytes cannot be read: {error}") from error
        if envelope.SEALED_KEY in value:
            return envelope.value_of(encoded)
    return value


def _refuse_what_would_change(value: Any, what: str) -> None:
    """Refuse what the encoder would write as something else: NaN as null, bytes inside as text."""
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is dict or kind is list:
            # Most values hold nothing else: that is told without a step of Python for each.
            inside = item.values() if kind is dict else item
            if not _AS_THEY_ARE.issuperset(map(type, inside)):
                stack.extend(inside)
            continue
        if kind in _AS_THEY_ARE or isinstance(item, str | int):
            continue
        if isinstance(item, float):
            if not math.isfinite(item):
                raise InvalidPayload(
                    f"the {what} holds {item}, which JSON has no word for; nothing was stored"
                )
        elif isinstance(item, dict):
            stack.extend(dict.values(item))
        elif isinstance(item, list):
            stack.extend(list.__iter__(item))  # as the encoder does, whatever a subclass would say
        elif isinstance(item, tuple | set | frozenset):
            stack.extend(item)
        elif isinstance(item, msgspec.Raw):
            _decoder.decode(item)  # it is written as it stands, so it must be JSON
        elif isinstance(item, bytes | bytearray | memoryview):
            raise InvalidPayload(
                f"the {what} holds bytes inside a larger value, where they would come back as text: "
                "encode them yourself, or let them be the whole value; nothing was stored"
            )
