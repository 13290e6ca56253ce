"""Waiting for the event log to grow: one blocking connection, whoever waits.

The connection is apart from the pool, so that waiting never keeps a verb from a connection. It is
opened by the first who waits, and closed when nobody has waited for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import redis.exceptions as redis_errors
from redis.asyncio.connection import AbstractConnection

from headrace.errors import StoreError
from headrace.stores.redis import log
from headrace.stores.redis.connection import BACKOFF_SECONDS_MAX, Server

BLOCK_SECONDS = 2.0
"""How long one XREAD blocks: what a silent death of the connection costs a waiter at most."""
MARGIN_SECONDS = 2.0
IDLE_SECONDS = 5.0


class Watch:
    """Wakes those who wait for events past their cursor."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._waiters: dict[asyncio.Event, int] = {}
        self._somebody_came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, after: str, timeout_seconds: float) -> None:
        start = log.position(after)
        waiter = asyncio.Event()
        self._waiters[waiter] = start
        try:
            # Look only now that the watch would notice: what came before is seen here, what comes
            # later is seen there.
            self._watch()
            if log.position(await log.tail(self._server)) > start:
                return
            async with asyncio.timeout(timeout_seconds):
                await waiter.wait()
        except TimeoutError:
            return
        finally:
            self._waiters.pop(waiter, None)

    async def close(self) -> None:
        """Wake everyone and let the connection go."""
        self._wake(None)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _watch(self) -> None:
        self._somebody_came.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="headrace-redis-watch")

    async def _run(self) -> None:
        connection: AbstractConnection | None = None
        try:
            while await self._somebody_waits():
                try:
                    connection = connection or await self._server.connect_apart()
                    self._wake(await self._newest(connection))
                except (redis_errors.RedisError, OSError, TimeoutError, StoreError):
                    # A wait is a hint: waiters go back to look by themselves, and meet the error.
                    await _discard(connection)
                    connection = None
                    await asyncio.sleep(BACKOFF_SECONDS_MAX)
                    self._wake(None)
        finally:
            # Before anything is awaited: whoever comes now starts the next watch.
            self._task = None
            await _discard(connection)

    async def _somebody_waits(self) -> bool:
        """Keep the connection for a while: whoever was woken mostly comes back to wait again."""
        if not self._waiters:
            self._somebody_came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._somebody_came.wait()
        return bool(self._waiters) and not self._server.is_closed

    async def _newest(self, connection: AbstractConnection) -> int:
        """Block until there is an event past the earliest cursor: its seq, or that cursor if there is none.

        Nobody is asked where the log ends now: whoever waits behind this event is judged by the next one.
        """
        start = min(self._waiters.values(), default=0)
        stream = self._server.keys.of("events")
        command = ("XREAD", "COUNT", 1, "BLOCK", int(BLOCK_SECONDS * 1000), "STREAMS", stream)
        async with asyncio.timeout(BLOCK_SECONDS + MARGIN_SECONDS):
            await connection.send_command(*command, f"{start}-0", check_health=False)
            answer: Any = await connection.read_response()
        if not answer:
            return start
        ((_, ((entry_id, _), *_)),) = answer
        return int(entry_id.partition(b"-")[0])

    def _wake(self, newest: int | None) -> None:
        """Wake those whose cursor is passed (None: all); they are waited for no more."""
        for waiter, start in list(self._waiters.items()):
            if newest is None or newest > start:
                waiter.set()
                del self._waiters[waiter]


async def _discard(connection: AbstractConnection | None) -> None:
    if connection is not None:
        with contextlib.suppress(redis_errors.RedisError, OSError):
            await connection.disconnect(nowait=True)
