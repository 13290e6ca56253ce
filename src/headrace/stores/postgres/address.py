"""What a url says: where the server is, and the store's own options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from headrace import address
from headrace.errors import InvalidInput
from headrace.redaction import Redacted

SCHEMA_CHARS_MAX = 40
"""PostgreSQL cuts names at 63 bytes; ours is also part of the name of the notification channel."""
SCHEMA_CHARS_REFUSED = "'$\\"
"""They would end the literals and function bodies in which the name stands: see `sql`."""
POOL_SIZE_DEFAULT = 10
STATEMENTS_DEFAULT = 100
"""How many prepared statements a connection keeps, as many as asyncpg keeps by itself."""
SETTINGS = {"application_name": "headrace"}
SESSION_SETTINGS = {
    # Compiling takes longer than any of these statements runs.
    "jit": "off",
}
"""A pooler of transactions refuses a connection that asks for these."""
_MANY_MAX = 10_000

_OWN = frozenset({"schema", "pool_size", "statement_cache_size"})
_FROM_SQLALCHEMY = {"ssl": "sslmode", "prepared_statement_cache_size": "statement_cache_size"}
"""What its dialects call some of the options; for the rest they use the same names."""


class Address(Redacted, frozen=True, kw_only=True):
    dsn: str
    """For the driver: the url without our own options."""
    where: str
    """For messages: no password."""
    schema: str
    pool_size: int
    statement_cache_size: int
    """0: every statement is sent with its text, as a pooler of transactions needs it."""

    @property
    def driver_options(self) -> dict[str, Any]:
        """What asyncpg's `connect` is to be given."""
        settings = SETTINGS | SESSION_SETTINGS if self.statement_cache_size else SETTINGS
        return {
            "dsn": self.dsn,
            "statement_cache_size": self.statement_cache_size,
            "server_settings": settings,
        }


def parse(url: str, *, schema: str, pool_size: int) -> Address:
    """Options of the url (`?schema=`, `?pool_size=`) win over the arguments; others are the driver's.

    Raises InvalidInput.
    """
    parts = address.split(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    options = [(_FROM_SQLALCHEMY.get(name, name), value) for name, value in given]
    own = {name: value for name, value in options if name in _OWN}
    rest = urlencode([(name, value) for name, value in options if name not in _OWN])
    return Address(
        dsn=address.joined(parts._replace(query=rest)),
        where=address.shown(url),
        schema=_schema(own.get("schema", schema)),
        pool_size=_count(own, "pool_size", pool_size, least=1),
        statement_cache_size=_count(own, "statement_cache_size", STATEMENTS_DEFAULT, least=0),
    )


def _schema(schema: str) -> str:
    if (
        not 1 <= len(schema) <= SCHEMA_CHARS_MAX
        or not schema.isprintable()
        or not set(schema).isdisjoint(SCHEMA_CHARS_REFUSED)
    ):
        raise InvalidInput(
            f"schema {schema!r} must have 1 to {SCHEMA_CHARS_MAX} printable characters, without ' $ or \\; "
            "nothing was changed"
        )
    if schema.startswith("pg_"):
        raise InvalidInput(f"schema {schema!r}: names with pg_ belong to PostgreSQL")
    return schema


def _count(own: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = own.get(name, str(default))
    if not (
        text.isascii()
        and text.isdigit()
        and len(text) <= len(str(_MANY_MAX))
        and least <= int(text) <= _MANY_MAX
    ):
        raise InvalidInput(
            f"{name} {text[:40]!r} must be a whole number from {least} to {_MANY_MAX}; nothing was opened"
        )
    return int(text)
