"""The connections of other people on which jobs can be submitted, each as a driver with one method.

asyncpg's and psycopg's own, those of SQLAlchemy over them, and Django's. None of these packages is
imported here: whoever has such a connection has imported its package. Statements of a connection without
async methods run in a thread, while the program that lent it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Protocol

from headrace.errors import InvalidInput

Row = Sequence[Any]
"""By position, whichever driver it came from."""

KNOWN = (
    "give a connection of asyncpg or psycopg, a connection or session of SQLAlchemy over one of them, or "
    "Django's over psycopg; nothing was written"
)


class Driver(Protocol):
    """The one thing needed of a connection."""

    async def fetch(self, text: str, *arguments: object) -> Sequence[Row]:
        """The rows of a statement with $1, $2, … for its arguments."""
        ...


async def driver_of(connection: Any) -> Driver:
    """Whichever kind of connection it is, as a driver. Raises InvalidInput."""
    packages = _packages(connection)
    if "sqlalchemy.ext.asyncio" in packages:
        return await driver_of(await _below_async_sqlalchemy(connection))
    if "sqlalchemy" in packages:
        return await driver_of(await asyncio.to_thread(_below_sqlalchemy, connection))
    if "django" in packages:
        return await driver_of(_below_django(connection))
    if "asyncpg" in packages:
        driver: Driver = connection
        return driver
    if "psycopg" in packages:
        if hasattr(connection, "__aenter__"):
            return _AsyncPsycopg(connection)
        if hasattr(connection, "cursor"):
            return _Psycopg(connection)
    raise InvalidInput(
        f"{type(connection).__qualname__} is not a connection that jobs can be submitted on: {KNOWN}"
    )


def _packages(connection: object) -> set[str]:
    """Where its class and those it inherits from are at home, each with all packages above it."""
    found = set()
    for one in type(connection).__mro__:
        parts = one.__module__.split(".")
        found |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return found


class _AsyncPsycopg:
    """psycopg's AsyncConnection, with cursors that understand $1 and give plain rows."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._psycopg: Any = import_module("psycopg")

    async def fetch(self, text: str, *arguments: object) -> Sequence[Row]:
        rows = self._psycopg.rows.tuple_row
        async with self._psycopg.AsyncRawCursor(self._connection, row_factory=rows) as cursor:
            await cursor.execute(text, arguments or None)
            return () if cursor.description is None else _in_utc(await cursor.fetchall())


class _Psycopg:
    """psycopg's Connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._psycopg: Any = import_module("psycopg")

    async def fetch(self, text: str, *arguments: object) -> Sequence[Row]:
        return await asyncio.to_thread(self._fetch, text, arguments)

    def _fetch(self, text: str, arguments: tuple[object, ...]) -> Sequence[Row]:
        rows = self._psycopg.rows.tuple_row
        with self._psycopg.RawCursor(self._connection, row_factory=rows) as cursor:
            cursor.execute(text, arguments or None)
            return () if cursor.description is None else _in_utc(cursor.fetchall())


def _in_utc(rows: Sequence[Row]) -> Sequence[Row]:
    """psycopg gives times in the session's time zone."""
    return [
        tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row)
        for row in rows
    ]


async def _below_async_sqlalchemy(connection: Any) -> object:
    """The driver's connection below, in the transaction that SQLAlchemy believes it is in."""
    if hasattr(connection, "get_bind"):  # a session
        connection = await connection.connection()
    # SQLAlchemy begins a transaction with the first statement it sends, so let it send one.
    await connection.exec_driver_sql("SELECT 1")
    return (await connection.get_raw_connection()).driver_connection


def _below_sqlalchemy(connection: Any) -> object:
    """The same, of a Session or Connection without async methods."""
    if hasattr(connection, "get_bind"):  # a session, or a scoped_session
        connection = connection.connection()
    connection.exec_driver_sql("SELECT 1")
    return connection.connection.driver_connection


def _below_django(connection: Any) -> object:
    """The driver's connection below a Django connection, which must be open: it is in a transaction."""
    below = getattr(connection, "connection", None)
    if below is None:
        raise InvalidInput(
            "Django's connection is not open in this thread: submit inside transaction.atomic(), on the "
            "connection of the thread that is in it; nothing was written"
        )
    return below
