"""Where the statements of a verb run: on the store's own connections, or on the caller's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from headrace.errors import HeadraceError, StoreError
from headrace.stores.postgres.connection import Connection, Pool
from headrace.stores.postgres.drivers import Row, driver_of
from headrace.stores.postgres.errors import (
    Violated,
    is_conflict,
    is_lost,
    is_unsent,
    is_violation,
    sqlstate,
    translate,
)
from headrace.stores.postgres.sql import Sql

Written = TypeVar("Written")

_TRIES = 5
CALLERS = "the caller's transaction"

_NO_TRANSACTION = "25P01"
_SAVEPOINT = "SAVEPOINT headrace"
_RELEASE = "RELEASE SAVEPOINT headrace"
_ROLLBACK = "ROLLBACK TO SAVEPOINT headrace"


class Session(Protocol):
    """Runs one named query at a time. Each is a transaction of its own, or a part of the caller's."""

    @property
    def is_callers(self) -> bool:
        """The caller's transaction decides whether, and when, what is written here counts."""
        ...

    async def read(self, name: str, *arguments: object) -> Sequence[Row]:
        """The rows of a query that writes nothing."""
        ...

    async def write(self, name: str, *arguments: object) -> Sequence[Row]:
        """The rows of a query that writes. Raises Violated where a constraint refused it.

        Whatever it raises, nothing of it is stored (unless a broken connection hides the answer).
        """
        ...


class PoolSession:
    """On the store's own connections: each statement commits by itself."""

    is_callers = False

    def __init__(self, pool: Pool, sql: Sql, where: str) -> None:
        self._pool = pool
        self.sql = sql
        self._where = where

    async def read(self, name: str, *arguments: object) -> Sequence[Row]:
        return await self._run(name, arguments, writes=False)

    async def write(self, name: str, *arguments: object) -> Sequence[Row]:
        return await self._run(name, arguments, writes=True)

    async def write_by(self, work: Callable[[Connection], Awaitable[Written]]) -> Written:
        """What the work gives back, which is one transaction, or none. Raises as `write` does."""
        return await self._try(work, writes=True)

    async def _run(
        self, name: str, arguments: tuple[object, ...], *, writes: bool
    ) -> Sequence[Row]:
        text = self.sql.query(name)

        async def work(connection: Connection) -> Sequence[Row]:
            rows: Sequence[Row] = await connection.fetch(text, *arguments)
            return rows

        return await self._try(work, writes=writes)

    async def _try(
        self, work: Callable[[Connection], Awaitable[Written]], *, writes: bool
    ) -> Written:
        for tries_left in reversed(range(_TRIES)):
            try:
                async with self._pool.connection() as connection:
                    return await work(connection)
            except HeadraceError:
                raise
            except Exception as error:
                if is_violation(error):
                    raise Violated from error
                # What was never sent can be sent again, what was rolled back for another's sake
                # can be tried again, and a read can be asked again.
                again = is_unsent(error) or is_conflict(error) or (is_lost(error) and not writes)
                self._pool.check_open()
                if not (again and tries_left):
                    raise translate(error, self._where, writes=writes) from error
        raise AssertionError("unreachable")


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
        driver = await driver_of(self._connection)
        try:
            await driver.fetch(_SAVEPOINT)
        except Exception as error:
            if sqlstate(error) == _NO_TRANSACTION:
                raise StoreError(
                    "the connection is in no transaction: begin one first, so that the jobs can "
                    "commit with it; nothing was written"
                ) from error
            raise translate(error, CALLERS, writes=False) from error
        try:
            rows = await driver.fetch(self._sql.query(name), *arguments)
            await driver.fetch(_RELEASE)
        except Exception as error:
            if sqlstate(error) is not None:
                await driver.fetch(_ROLLBACK)
            if is_violation(error):
                raise Violated from error
            raise translate(error, CALLERS, writes=writes) from error
        return rows
