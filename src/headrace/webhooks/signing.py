"""Signatures of Standard Webhooks 1.0, for the sender and for the receiver.

What is signed is `<id>.<timestamp>.<body>`, with HMAC-SHA256, once per secret: while a secret is being
replaced both the old and the new one sign, and a receiver is content with either.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets as randomness
from collections.abc import Mapping, Sequence
from datetime import datetime

from headrace.errors import InvalidInput, InvalidSignature
from headrace.input_checks import checked

PREFIX = "whsec_"
VERSION = "v1"
TOLERANCE_SECONDS = 300.0
"""How far a request's time may be from the receiver's: what is older may be a replay."""
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64
SIGNATURES_MAX = 16
"""A receiver looks at no more of them."""
_TIMESTAMP_CHARS_MAX = 12

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def new_secret() -> str:
    """A fresh secret, to be given to the sender and to the receiver."""
    return PREFIX + base64.b64encode(randomness.token_bytes(32)).decode()


@checked
def sign(message_id: str, at: datetime, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """The three headers. `message_id` must hold no full stop, which separates what is signed."""
    if not secrets:
        raise InvalidInput("there is no secret to sign with; nothing was sent")
    if "." in message_id:
        raise InvalidInput("the id of a message must not hold a full stop; nothing was sent")
    headers = stamp(message_id, at)
    timestamp = headers[TIMESTAMP]
    signatures = (
        base64.b64encode(_digest(key_of(secret), message_id, timestamp, body)).decode()
        for secret in secrets
    )
    return headers | {SIGNATURE: " ".join(f"{VERSION},{signature}" for signature in signatures)}


def stamp(message_id: str, at: datetime) -> dict[str, str]:
    """The headers of a request that is not signed: a receiver still tells repeats by the id."""
    return {ID: message_id, TIMESTAMP: str(int(at.timestamp()))}


@checked
def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[str],
    now: datetime,
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> str:
    """The id of a message whose signature is right and whose time is near `now`.

    The same id may come again (a retry, or a replay within the tolerance): remember those you have seen.
    Raises InvalidSignature.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp, signatures = given[ID], given[TIMESTAMP], given[SIGNATURE]
    except KeyError as error:
        raise InvalidSignature(f"the header {error.args[0]} is missing") from None
    if len(timestamp) > _TIMESTAMP_CHARS_MAX or not re.fullmatch("[0-9]+", timestamp):
        raise InvalidSignature(f"the header {TIMESTAMP} is not a number of seconds")
    if abs(now.timestamp() - int(timestamp)) > tolerance_seconds:
        raise InvalidSignature(f"the time of the message is too far from now: {timestamp}")
    expected = [_digest(key_of(secret), message_id, timestamp, body) for secret in secrets]
    found = [_decoded(one) for one in signatures.split(" ")[:SIGNATURES_MAX]]
    if not any(hmac.compare_digest(one, right) for one in found for right in expected):
        raise InvalidSignature("no signature of the message is right")
    return message_id


def key_of(secret: str) -> bytes:
    """The key that a secret stands for. What is wrong is said without saying the secret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"a webhook secret is {PREFIX} and base64; this one is not") from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise InvalidInput(
            f"a webhook secret stands for {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes, "
            f"this one for {len(key)}"
        )
    return key


def _digest(key: bytes, message_id: str, timestamp: str, body: bytes) -> bytes:
    return hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)


def _decoded(signature: str) -> bytes:
    """Empty, and so equal to none, for another version's or one that cannot be read."""
    version, _, encoded = signature.partition(",")
    try:
        return base64.b64decode(encoded, validate=True) if version == VERSION else b""
    except (binascii.Error, ValueError):
        return b""
