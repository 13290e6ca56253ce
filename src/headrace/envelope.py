"""Envelopes: the form in which encrypted contents stand in a store and leave the manager. Pure, no cipher.

JSON (payload, result, checkpoint, log) becomes `{"$sealed":{"v":1,"key":"2026-11","data":"<base64>"}}`, an
error's message `sealed:v1:2026-11:<base64>`. What a reader without the key is handed has no `data`: it says
that there is something, under which key, and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import re

import msgspec

from headrace.errors import CannotDecrypt
from headrace.redaction import Redacted

VERSION = 1
SEALED_KEY = "$sealed"
KEY_ID_CHARS_MAX = 64
KEY_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{KEY_ID_CHARS_MAX}}}")

HEAD = b'{"$sealed":'
"""What every envelope in JSON begins with."""
_TEXT_HEAD = "sealed:v1:"
_TEXT = re.compile(rf"{_TEXT_HEAD}({KEY_ID.pattern}):([A-Za-z0-9+/]+=*)")


class Body(Redacted, frozen=True, omit_defaults=True):
    """What an envelope holds."""

    v: int
    key: str
    data: bytes | None = None
    """Nonce and ciphertext. None: withheld, because the reader does not have the key."""
    why: str | None = None
    """Set where the key is there and the contents cannot be decrypted all the same."""


class _Envelope(msgspec.Struct, frozen=True):
    sealed: Body = msgspec.field(name=SEALED_KEY)


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What programs are told instead of contents that cannot be read here."""

    encrypted: bool
    key: str
    damaged: str | None = None
    """Why they cannot be decrypted, though the key is there."""


class Contents(msgspec.Struct, frozen=True):
    """Everything in a job that may be encrypted."""

    payload_json: bytes
    result_json: bytes | None
    checkpoint_json: bytes | None
    log_json: bytes | None
    message: str | None

    def __repr__(self) -> str:
        return "Contents(…)"  # a job is printed in logs, and these have no place there


class Seals(msgspec.Struct, frozen=True):
    """The contents of a job as they were handed out, and as they stand in the store."""

    shown: Contents
    stored: Contents


class Sealed:
    """Stands for contents that the reader does not have the key for. Cannot be submitted again."""

    __slots__ = ("key_id",)

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id

    def __repr__(self) -> str:
        return f"encrypted with key {self.key_id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and other.key_id == self.key_id

    def __hash__(self) -> int:
        return hash((Sealed, self.key_id))


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Envelope).decode


def is_sealed(encoded: bytes | None) -> bool:
    """Whether this JSON is an envelope."""
    return encoded is not None and encoded.startswith(HEAD)


def pack(body: Body) -> bytes:
    """The envelope as JSON."""
    return _encode(_Envelope(body))


def unpack(encoded: bytes) -> Body:
    """What is in an envelope. One that is malformed says so in `why`."""
    try:
        body = _decode(encoded).sealed
    except msgspec.DecodeError:
        return Body(VERSION, "unknown", why="its envelope is damaged")
    return body if KEY_ID.fullmatch(body.key) else Body(VERSION, "unknown", why="its key id is bad")


def is_sealed_text(text: str) -> bool:
    """Whether this message is an envelope. A message that only begins like one is not."""
    return text.startswith(_TEXT_HEAD) and _TEXT.fullmatch(text) is not None


def pack_text(body: Body) -> str:
    """The envelope as a message."""
    assert body.data is not None
    return f"{_TEXT_HEAD}{body.key}:{base64.b64encode(body.data).decode('ascii')}"


def unpack_text(text: str) -> Body:
    """What is in a message for which `is_sealed_text` holds."""
    match = _TEXT.fullmatch(text)
    assert match is not None
    key, data = match.groups()
    try:
        return Body(VERSION, key, base64.b64decode(data, validate=True))
    except binascii.Error:
        return Body(VERSION, key, why="its envelope is damaged")


def withheld(body: Body, why: str | None = None) -> Body:
    """The same without the ciphertext."""
    return Body(body.v, body.key, why=why or body.why)


def told(body: Body) -> str:
    """The envelope for people."""
    text = repr(Sealed(body.key))
    return text if body.why is None else f"{text}; it cannot be decrypted: {body.why}"


def published(encoded: bytes) -> bytes:
    """The JSON to hand to programs outside: as it is, or a `Notice` in place of an envelope."""
    if not is_sealed(encoded):
        return encoded
    body = unpack(encoded)
    return _encode(Notice(encrypted=True, key=body.key, damaged=body.why))


def value_of(encoded: bytes) -> Sealed:
    """What stands for sealed JSON where a value is wanted; CannotDecrypt if it is damaged."""
    body = unpack(encoded)
    if body.why is not None:
        raise CannotDecrypt(
            f"this is {told(body)}; it was left as it is: the job can still be cancelled and deleted",
            key_id=body.key,
            why=body.why,
        )
    return Sealed(body.key)
