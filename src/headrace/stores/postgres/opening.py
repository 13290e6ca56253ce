"""From a url to connections to a database with the present schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

import asyncpg

from headrace import address
from headrace.errors import HeadraceError, InvalidInput
from headrace.redaction import Redacted
from headrace.stores.postgres.connection import Connection, Pool
from headrace.stores.postgres.errors import translate
from headrace.stores.postgres.schema import prepare
from headrace.stores.postgres.sql import Sql

SCHEMA_CHARS_MAX = 40
"""PostgreSQL cuts names at 63 bytes; ours is also part of the name of the notification channel."""
SCHEMA_CHARS_REFUSED = "'$\\"
"""They would end the literals and function bodies in which the name stands: see `sql`."""
POOL_SIZE_DEFAULT = 10
STATEMENTS_DEFAULT = 100
"""How many prepared statements a connection keeps, as many as asyncpg keeps by itself."""
COMMAND_SECONDS_MAX = 60.0
"""A server that has not answered by then counts as gone."""
CONNECT_SECONDS_MAX = 10.0
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
        schema=_schema_name(own.get("schema", schema)),
        pool_size=_count(own, "pool_size", pool_size, least=1),
        statement_cache_size=_count(own, "statement_cache_size", STATEMENTS_DEFAULT, least=0),
    )


async def connect(to: Address, *, command_seconds: float | None = None) -> Connection:
    """One connection. Without a limit a statement may take as long as it takes."""
    return await asyncpg.connect(
        **to.driver_options, timeout=CONNECT_SECONDS_MAX, command_timeout=command_seconds
    )


async def open_pool(to: Address, sql: Sql, *, migrate: bool, create: bool) -> Pool:
    """Connections to the database, whose schema was checked, or made; on failure nothing stays open."""

    async def one() -> Connection:
        return await connect(to, command_seconds=COMMAND_SECONDS_MAX)

    pool = Pool(one, to.pool_size, to.where)
    try:
        async with pool.connection() as connection:
            await prepare(connection, sql, to.where, migrate=migrate, create=create)
    except HeadraceError:
        await pool.close()
        raise
    except Exception as error:
        await pool.close()
        raise translate(error, to.where, writes=False) from error
    return pool


def _schema_name(name: str) -> str:
    if (
        not 1 <= len(name) <= SCHEMA_CHARS_MAX
        or not name.isprintable()
        or not set(name).isdisjoint(SCHEMA_CHARS_REFUSED)
    ):
        raise InvalidInput(
            f"schema {name!r} must have 1 to {SCHEMA_CHARS_MAX} printable characters, without ' $ or \\; "
            "nothing was changed"
        )
    if name.startswith("pg_"):
        raise InvalidInput(f"schema {name!r}: names with pg_ belong to PostgreSQL")
    return name


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
