"""Submission inside the caller's own transaction: it commits, or vanishes, with everything else in it.

The statements of the verbs run on the caller's connection, whatever kind it is: see `drivers`.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import StoreError
from headrace.stores.base import JobStore
from headrace.stores.postgres.drivers import driver_of
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
