"""Tokens: what whoever comes over the network shows, and what it may do with it. Pure.

Of a token only a hash is ever stored: whoever reads the store cannot act with what it finds there. The
secret has 256 random bits, so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from headrace import validation
from headrace.errors import InvalidInput

SECRET_BYTES = 32
ID_BYTES = 6
PREFIX = "hdr"
"""So that a token that has leaked into a file is found for what it is."""
_SECRET = re.compile(rf"{PREFIX}_([0-9a-f]{{{2 * ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")


class Scope(enum.StrEnum):
    """What a token is good for. None of them contains another."""

    SUBMIT = "submit"
    """Submit jobs."""
    WORK = "work"
    """Claim jobs, and settle what it leases."""
    READ = "read"
    """See jobs, queues and workers, without what is in the jobs."""
    READ_PAYLOAD = "read:payload"
    """See what is in them: payloads, results, logs, messages of errors."""
    OPERATE = "operate"
    """Cancel, redrive, delete, pause, and change schedules."""
    ADMIN = "admin"
    """Change limits and tokens, and speak for workers."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is stored: everything but the secret."""

    id: str
    """Stands in the secret, too, which begins with `hdr_` and this."""
    label: str
    """Whose it is, or what for."""
    digest: str
    """SHA-256 of the secret, in hexadecimal digits."""
    tenant: str | None = None
    """Whom it acts for. None: every tenant, as an operator."""
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None
    """When it was last used, to the hour."""

    def is_valid(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def fits(self, secret: str) -> bool:
        """Whether this is the secret that it was made with. Takes as long for a wrong one."""
        return hmac.compare_digest(self.digest, digest_of(secret))


def new_secret(random_bytes: Callable[[int], bytes]) -> tuple[str, str]:
    """The id of a new token, and its secret: to be shown once, and stored nowhere."""
    token_id = random_bytes(ID_BYTES).hex()
    bits = base64.urlsafe_b64encode(random_bytes(SECRET_BYTES)).decode().rstrip("=")
    return token_id, f"{PREFIX}_{token_id}_{bits}"


def id_in(secret: str) -> str | None:
    """The id of the token whose secret this may be; None if it cannot be one."""
    found = _SECRET.fullmatch(secret)
    return None if found is None else found[1]


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def check_scopes(values: Iterable[object]) -> tuple[Scope, ...]:
    """In the order of `Scope`, without repeats; one at least."""
    given = {validation.check_word(value, Scope) for value in validation.listed(values, "scopes")}
    if not given:
        raise InvalidInput(
            f"a token without a scope is good for nothing: give it some of {', '.join(Scope)}; "
            f"{validation.UNCHANGED}"
        )
    return tuple(scope for scope in Scope if scope in given)
