"""A few connections, shared by all verbs of a store.

redis-py's own pool awaits while it takes a connection back: a task that is cancelled just then keeps
the connection for ever. Here giving back never waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import redis.exceptions as redis_errors
from redis.asyncio.connection import AbstractConnection, Connection


class Pool:
    def __init__(self, settings: dict[str, Any], size: int) -> None:
        self._settings = dict(settings)
        self._class: type[AbstractConnection] = self._settings.pop("connection_class", Connection)
        self._slots = asyncio.Semaphore(size)
        self._free: list[AbstractConnection] = []
        self._used: set[AbstractConnection] = set()
        self._elsewhere: set[AbstractConnection] = set()
        """Of those, the ones that were made before the last move."""

    def make(self) -> AbstractConnection:
        """A connection that is not the pool's, and not connected yet."""
        return self._class(**self._settings)

    def move(self, place: Mapping[str, Any]) -> None:
        """From now on connect to this host and port: another node of a cluster."""
        if place.items() <= self._settings.items():
            return  # another call was told the same
        self._settings |= place
        self._elsewhere |= {*self._free, *self._used}

    async def acquire(self) -> AbstractConnection:
        """A connection that is ready for a command; waits while all are in use."""
        await self._slots.acquire()
        connection = self._free.pop() if self._free else self.make()
        self._used.add(connection)
        try:
            if connection in self._elsewhere:
                await connection.disconnect(nowait=True)
                self._elsewhere.discard(connection)
                self._used.discard(connection)
                connection = self.make()
                self._used.add(connection)
            elif connection.is_connected and await _is_stale(connection):
                await connection.disconnect(nowait=True)
            await connection.connect()  # type: ignore[no-untyped-call]  # redis-py leaves it out
        except BaseException:
            self.release(connection)
            raise
        return connection

    def release(self, connection: AbstractConnection) -> None:
        """Give back. One that broke on the way has been closed, and is connected again when used."""
        self._used.discard(connection)
        self._free.append(connection)
        self._slots.release()

    async def close(self) -> None:
        """Close every connection: a call that waits for its answer sees it broken."""
        for connection in (*self._free, *self._used):
            with contextlib.suppress(redis_errors.RedisError, OSError):
                await connection.disconnect()
        self._free.clear()


async def _is_stale(connection: AbstractConnection) -> bool:
    """The server has closed it, or something is left unread on it."""
    try:
        return await connection.can_read()
    except (redis_errors.RedisError, OSError):
        return True
