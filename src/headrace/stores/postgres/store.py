"""The PostgreSQL store: opening and closing it, waiting for news, and lending it the caller's transaction."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Self

import asyncpg

from headrace.errors import HeadraceError
from headrace.model import Job
from headrace.stores.postgres import address, log, schema
from headrace.stores.postgres.failures import translate
from headrace.stores.postgres.hints import Hints
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.pool import Connection, Pool
from headrace.stores.postgres.session import PoolSession
from headrace.stores.postgres.sql import SCHEMA_DEFAULT, Sql
from headrace.stores.postgres.transaction import TransactionStore
from headrace.stores.postgres.verbs import Verbs

COMMAND_SECONDS_MAX = 60.0
"""A server that has not answered by then counts as gone."""
CONNECT_SECONDS_MAX = 10.0
POLL_SECONDS = 0.5
"""How long `wait` trusts that no hint was lost."""


class PostgresStore(Verbs):
    """`postgresql://` - for teams and many hosts. What it acknowledged survives the server's crash.

    Bound to the event loop it was opened on. Connections are opened as they are needed and replaced
    by themselves when the server restarts.
    """

    def __init__(self, pool: Pool, sql: Sql, where: str) -> None:
        session = PoolSession(pool, sql, where)
        lanes = Lanes(session)
        hints = Hints(pool, session, f"headrace_{sql.schema}")
        super().__init__(session, sql, lanes, hints.wrote)
        self._pool = pool
        self._hints = hints

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        migrate: bool = False,
        create: bool = True,
        schema: str = SCHEMA_DEFAULT,
        pool_size: int = address.POOL_SIZE_DEFAULT,
    ) -> Self:
        """Connect to the database behind the url, in the given schema of it (`?schema=` wins).

        A database without it gets it if `create` allows; an older schema raises SchemaTooOld unless
        `migrate` is set; a newer one raises SchemaTooNew.
        """
        to = address.parse(url, schema=schema, pool_size=pool_size)
        sql = Sql(to.schema)

        async def connect() -> Connection:
            return await asyncpg.connect(
                **to.driver_options,
                timeout=CONNECT_SECONDS_MAX,
                command_timeout=COMMAND_SECONDS_MAX,
            )

        pool = Pool(connect, to.pool_size, to.where)
        await _prepare(pool, sql, to.where, migrate=migrate, create=create)
        return cls(pool, sql, to.where)

    async def close(self) -> None:
        await self._hints.close()
        await self._pool.close()

    async def schema_version(self) -> int:
        """The version of the schema that the database has now."""
        ((version, *_),) = await self._session.read("schema_version")
        return int(version)

    async def wait(self, after: str, timeout_seconds: float) -> None:
        """As the protocol says: here at once, elsewhere within milliseconds or, a hint lost, POLL_SECONDS."""
        place = log.position(after)
        end = time.monotonic() + timeout_seconds
        while True:
            with self._hints.hinted() as hint:
                if await log.has_grown(self._session, place):
                    return
                left = end - time.monotonic()
                if left <= 0:
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, POLL_SECONDS)):
                        await hint.wait()
                        return

    async def lanes_of(self, jobs: Sequence[Job]) -> list[int]:
        """The lane of each job, added if it is new: for loading in bulk."""
        return await self._lanes.of(jobs)

    def on(self, connection: object) -> TransactionStore:
        """This store inside the transaction of `connection`: what is inserted commits or vanishes with it.

        Takes connections of asyncpg, psycopg, SQLAlchemy and Django, with async methods and without. A job
        that others inserted there depend on cannot end before the transaction.
        """
        return TransactionStore(self, connection, self._sql, self._lanes)


async def _prepare(pool: Pool, sql: Sql, where: str, *, migrate: bool, create: bool) -> None:
    """Check the schema, or make it; on failure nothing stays open."""
    try:
        async with pool.connection() as connection:
            await schema.prepare(connection, sql, where, migrate=migrate, create=create)
    except HeadraceError:
        await pool.close()
        raise
    except Exception as error:
        await pool.close()
        raise translate(error, where, writes=False) from error
