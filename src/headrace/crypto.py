"""The key ring: AES-256-GCM under named keys, one of them primary.

Needs the extra `crypto`; importing this module does not. What is encrypted is bound to its place: version,
key id, tenant, job and field go into the tag, so a ciphertext that is moved elsewhere does not open there.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from headrace import validation
from headrace.envelope import KEY_ID, KEY_ID_CHARS_MAX, VERSION, Body
from headrace.errors import CannotDecrypt, InvalidKeyRing
from headrace.input_checks import checked, guarded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
VARIABLE = "HEADRACE_KEYS"
"""Where the environment may hold a ring: its lines, or `@` and the path of a file with them."""


class Place(NamedTuple):
    """Where encrypted contents belong."""

    tenant: str
    job_id: str
    field: str


@guarded
class KeyRing:
    """Keys by id. New contents are encrypted with the primary key; each key decrypts what it encrypted.

    `random_bytes` gives the nonces: 96 random bits each, so a key is good for some four billion contents.
    """

    @checked
    def __init__(
        self,
        keys: Mapping[str, bytes],
        *,
        primary: str,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        for key_id, key in keys.items():
            _check(key_id, key)
        if primary not in keys:
            raise InvalidKeyRing(
                f"the primary key {primary!r} is not in the ring; nothing was done"
            )
        if len(set(keys.values())) < len(keys):
            raise InvalidKeyRing(
                "two ids of the ring have the same key, so changing from one to the other would "
                "change nothing: make a new one with `headrace keys new`"
            )
        cipher, self._invalid_tag = _cryptography()
        self._ciphers = {key_id: cipher(key) for key_id, key in keys.items()}
        self._primary = primary
        self._random_bytes = random_bytes

    @classmethod
    def parse(cls, text: str) -> KeyRing:
        """A ring from lines (or words between commas) `id:base64`; the first is the primary key.

        Empty lines, and lines that start with `#`, are passed over.
        """
        lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        words = [word.strip() for line in lines for word in line.split(",") if word.strip()]
        keys: dict[str, bytes] = {}
        for number, word in enumerate(words, start=1):
            key_id, key = _parsed(number, word)
            if key_id in keys:
                raise InvalidKeyRing(
                    f"key id {key_id!r} stands twice in the ring; nothing was done"
                )
            keys[key_id] = key
        if not keys:
            raise InvalidKeyRing("the ring has no key: make one with `headrace keys new`")
        return cls(keys, primary=next(iter(keys)))

    @classmethod
    def from_file(cls, path: str | Path) -> KeyRing:
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise InvalidKeyRing(
                f"the key ring {validation.told(str(path))} cannot be read: {error}"
            ) from error
        return cls.parse(text)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> KeyRing | None:
        """The ring in HEADRACE_KEYS: its lines, or `@` and a file's path. None: there is none."""
        text = environment.get(VARIABLE, "").strip()
        if not text:
            return None
        return cls.from_file(text[1:]) if text.startswith("@") else cls.parse(text)

    @property
    def primary(self) -> str:
        return self._primary

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._ciphers)

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._ciphers

    def __repr__(self) -> str:
        return f"KeyRing(ids={self.ids!r}, primary={self._primary!r})"

    def seal(self, contents: bytes, place: Place) -> Body:
        """Encrypt with the primary key, for this place."""
        nonce = self._random_bytes(NONCE_BYTES)
        sealed = self._ciphers[self._primary].encrypt(
            nonce, contents, _associated(self._primary, place)
        )
        return Body(VERSION, self._primary, nonce + sealed)

    def open(self, body: Body, place: Place) -> bytes:
        """Decrypt what was encrypted for this place, or raise CannotDecrypt."""
        cipher = self._ciphers.get(body.key)
        if cipher is None:
            _refuse(body, place, "this key is not in the ring")
        if body.why is not None:
            _refuse(body, place, body.why)
        if body.v != VERSION:
            _refuse(body, place, f"its envelope has version {body.v}, which is not known here")
        if body.data is None or len(body.data) < NONCE_BYTES + TAG_BYTES:
            _refuse(body, place, "its ciphertext was cut off")
        nonce, sealed = body.data[:NONCE_BYTES], body.data[NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, sealed, _associated(body.key, place))
        except self._invalid_tag:
            _refuse(body, place, "it was changed, or moved here from another job, tenant or field")


def new_key(key_id: str, random_bytes: Callable[[int], bytes] = os.urandom) -> str:
    """A fresh key as a line of a ring."""
    key = random_bytes(KEY_BYTES)
    _check(key_id, key)
    return f"{key_id}:{base64.b64encode(key).decode('ascii')}"


def _cryptography() -> tuple[type[AESGCM], type[Exception]]:
    try:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an optional extra
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise InvalidKeyRing(
            f"a key ring needs {error.name}, which is not installed: pip install 'headrace[crypto]'"
        ) from error
    return AESGCM, InvalidTag


def _check(key_id: str, key: bytes) -> None:
    if not KEY_ID.fullmatch(key_id):
        raise InvalidKeyRing(
            f"key id {key_id!r} must have 1 to {KEY_ID_CHARS_MAX} letters, digits, dots, dashes or "
            "underscores; nothing was done"
        )
    if len(key) != KEY_BYTES:
        raise InvalidKeyRing(
            f"key {key_id!r} has {len(key)} bytes, and AES-256 needs {KEY_BYTES}: make one with "
            "`headrace keys new`"
        )


def _parsed(number: int, word: str) -> tuple[str, bytes]:
    """Errors never quote the word: it may be a key."""
    key_id, colon, encoded = word.partition(":")
    if not colon:
        raise InvalidKeyRing(f"key {number} of the ring is not written id:base64; nothing was done")
    try:
        return key_id.strip(), base64.b64decode(encoded.strip(), validate=True)
    except binascii.Error as error:
        raise InvalidKeyRing(f"key {number} of the ring is not base64: {error}") from error


def _associated(key_id: str, place: Place) -> bytes:
    """What the tag covers besides the contents. Each part with its length: no two places look alike."""
    parts = (f"headrace:{VERSION}".encode(), key_id.encode(), *(part.encode() for part in place))
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _refuse(body: Body, place: Place, why: str) -> NoReturn:
    raise CannotDecrypt(
        f"the {place.field} of job {place.job_id} is encrypted with key {body.key} and cannot be "
        f"decrypted: {why}; it was left as it is",
        key_id=body.key,
        why=why,
    )
