"""Submission inside the caller's own transaction: it commits, or vanishes, with everything else in it.

The statements of the verbs run on the caller's connection: asyncpg's, psycopg's AsyncConnection, or
SQLAlchemy's AsyncConnection or AsyncSession over either driver. None of them is imported here: whoever
has such a connection has imported its package.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from headrace.errors import InvalidInput, StoreError
from headrace.stores.base import JobStore
from headrace.stores.postgres.failures import Violated, is_violation, sqlstate, translate
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.session import Row
from headrace.stores.postgres.sql import Sql
from headrace.stores.postgres.verbs import Verbs

WHERE = "the caller's transaction"

_NO_TRANSACTION = "25P01"
_SAVEPOINT = "SAVEPOINT headrace"
_RELEASE = "RELEASE SAVEPOINT headrace"
_ROLLBACK = "ROLLBACK TO SAVEPOINT headrace"


class Driver(Protocol):
    """The one thing needed of a connection."""

    async def fetch(self, text: str, *arguments: object) -> Sequence[Row]:
        """The rows of a statement with $1, $2, … for its arguments."""
        ...


class CallersSession:
    """Statements as parts of a transaction that somebody else began and will end."""

    is_callers = True

    def __init__(self, connection: object, sql: Sql) -> None:
        self._connection = connection
        self._sql = sql

    async def read(self, name: str, *arguments: object) -> Sequence[Row]:
        return await self._run(name, arguments, writes=False)

    async def write(self, name: str, *arguments: object) -> Sequence[Row]:
        return await self._run(name, arguments, writes=True)

    async def _run(
        self, name: str, arguments: tuple[object, ...], *, writes: bool
    ) -> Sequence[Row]:
        """Between savepoints: a statement that fails must not spoil what the caller did before."""
        driver = await _driver(self._connection)
        try:
            await driver.fetch(_SAVEPOINT)
        except Exception as error:
            if sqlstate(error) == _NO_TRANSACTION:
                raise StoreError(
                    "the connection is in no transaction: begin one first, so that the jobs can "
                    "commit with it; nothing was written"
                ) from error
            raise translate(error, WHERE, writes=False) from error
        try:
            rows = await driver.fetch(self._sql.query(name), *arguments)
            await driver.fetch(_RELEASE)
        except Exception as error:
            if sqlstate(error) is not None:
                await driver.fetch(_ROLLBACK)
            if is_violation(error):
                raise Violated from error
            raise translate(error, WHERE, writes=writes) from error
        return rows


class TransactionStore(Verbs):
    """The store, seen from within the caller's transaction. Lives as long as that.

    Nobody is told of what was written here before the transaction commits, nor then: workers find it
    when they next look.
    """

    def __init__(self, store: JobStore, connection: object, sql: Sql, lanes: Lanes) -> None:
        super().__init__(CallersSession(connection, sql), sql, lanes, _tell_nobody)
        self._store = store

    async def close(self) -> None:
        """Nothing: the connection and the store are their owners' to close."""

    async def wait(self, after: str, timeout_seconds: float) -> None:
        await self._store.wait(after, timeout_seconds)


def _tell_nobody() -> None:
    pass


class _Psycopg:
    """psycopg's connection, with cursors that understand $1 and give plain rows."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        psycopg: Any = import_module("psycopg")
        self._cursor = partial(
            psycopg.AsyncRawCursor, connection, row_factory=psycopg.rows.tuple_row
        )

    async def fetch(self, text: str, *arguments: object) -> Sequence[Row]:
        async with self._cursor() as cursor:
            await cursor.execute(text, arguments or None)
            if cursor.description is None:
                return ()
            return [tuple(_in_utc(value) for value in row) for row in await cursor.fetchall()]


def _in_utc(value: object) -> object:
    """psycopg gives times in the session's time zone."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


async def _driver(connection: Any) -> Driver:
    """Whichever kind of connection it is, as a driver. Raises InvalidInput."""
    package = type(connection).__module__.partition(".")[0]
    if package == "sqlalchemy":
        return await _driver(await _raw(connection))
    if package == "asyncpg":
        driver: Driver = connection
        return driver
    if package == "psycopg" and hasattr(connection, "__aenter__"):
        return _Psycopg(connection)
    raise InvalidInput(
        f"{type(connection).__qualname__} is not a connection that jobs can be submitted on: give "
        "asyncpg's, psycopg's AsyncConnection, or SQLAlchemy's AsyncConnection or AsyncSession"
    )


async def _raw(connection: Any) -> object:
    """The driver's connection below SQLAlchemy's, in the transaction that SQLAlchemy believes it is in."""
    if hasattr(connection, "get_bind"):  # a session
        connection = await connection.connection()
    # SQLAlchemy begins a transaction with the first statement it sends, so let it send one.
    await connection.exec_driver_sql("SELECT 1")
    return (await connection.get_raw_connection()).driver_connection
