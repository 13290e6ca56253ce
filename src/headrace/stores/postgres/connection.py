"""Connections to the server: a few, reused, replaced by themselves when they break."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from headrace.errors import StoreClosed, StoreUnavailable
from headrace.retry import doubling
from headrace.stores.postgres.errors import is_lost, sqlstate

PATIENCE_SECONDS = 5.0
"""A call waits this long for a server that restarts before it gives up."""
_BACKOFF_SECONDS = (0.05, 1.0)
_CLOSE_SECONDS = 2.0
_TOO_MANY_CONNECTIONS = "53300"

Connection = Any
"""asyncpg ships without types."""


class Pool:
    """At most `size` connections, opened when they are needed; the last one given back goes out first.

    Not asyncpg's own pool: that sends a reset after every use, a round trip that would cost the
    claim-commit loop a third of its speed. Every statement here stands alone or cleans up after itself.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int, where: str) -> None:
        self._connect = connect
        self._where = where
        self._room = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self._unused = asyncio.Event()
        self._unused.set()
        self._closed = False

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection that was open a moment ago.

        Left by an error that is not the server's, or by cancellation, it is thrown away: what it
        was doing is not known.
        """
        async with self._room:
            self.check_open()
            connection = self._reuse() or await self._reconnect()
            self._used.add(connection)
            self._unused.clear()
            clean = False
            try:
                yield connection
                clean = True
            except Exception as error:
                clean = sqlstate(error) is not None and not is_lost(error)
                raise
            finally:
                self._used.discard(connection)
                if not self._used:
                    self._unused.set()
                if clean and not self._closed and not connection.is_closed():
                    self._idle.append(connection)
                else:
                    connection.terminate()

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed; nothing was read or written")

    async def dedicated(self) -> Connection:
        """A connection outside the pool, for listening. One try; the caller owns it."""
        self.check_open()
        return await self._connect()

    async def close(self) -> None:
        """No new statements; those under way may end."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            with contextlib.suppress(Exception):
                await connection.close(timeout=_CLOSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._unused.wait()
        for connection in list(self._used):
            connection.terminate()

    def _reuse(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def _reconnect(self) -> Connection:
        """Connect, with backoff while the server cannot be reached. Raises StoreUnavailable."""
        end = time.monotonic() + PATIENCE_SECONDS
        pauses = doubling(*_BACKOFF_SECONDS)
        while True:
            try:
                return await self._connect()
            except Exception as error:
                self.check_open()
                if not (is_lost(error) or sqlstate(error) == _TOO_MANY_CONNECTIONS):
                    raise
                left = end - time.monotonic()
                if left <= 0:
                    raise StoreUnavailable(
                        f"{self._where} cannot be reached ({type(error).__name__}: {error}); "
                        "nothing was read or written"
                    ) from error
                # Jitter, so that a whole fleet does not knock at the same moment.
                await asyncio.sleep(min(left, next(pauses) * random.uniform(0.5, 1.0)))  # noqa: S311
