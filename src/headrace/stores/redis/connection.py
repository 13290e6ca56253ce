"""Talking to the server: a small pool, scripts by hash, and what is safe to send twice.

A command that never left is sent again once the server is back. A read that broke is read again. A
write that was sent, and whose answer was lost, is never sent again: its fate is unknown, and is
reported so. A node of a cluster that does not serve the store's slot says which one does: from then
on the store talks to that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import redis.exceptions as redis_errors
from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from headrace.errors import StoreClosed, StoreError
from headrace.redaction import Redacted
from headrace.retry import doubling
from headrace.stores.redis import errors
from headrace.stores.redis.pool import Pool
from headrace.stores.redis.scripts import Keys, Script

PATIENCE_SECONDS = 5.0
"""How long a call waits for a server that is away before it gives up; the next call waits anew."""
REQUEST_BYTES_MAX = 1_000_000_000
"""A server drops a client that sends more at once (client-query-buffer-limit, 1 GB by default)."""
BACKOFF_SECONDS = 0.02
BACKOFF_SECONDS_MAX = 0.5

_BROKEN = (redis_errors.ConnectionError, redis_errors.TimeoutError, OSError, TimeoutError)
Argument = str | bytes | int | float


class Options(Redacted, frozen=True, kw_only=True):
    """Where the server is, and how the store is to behave."""

    address: str
    """For messages: without user, password and options."""
    connection: dict[str, Any]
    """For redis-py's connections."""
    prefix: str
    relaxed_durability: bool
    timeout_seconds: float | None
    connections_max: int


class Server:
    """The server behind one store."""

    def __init__(self, options: Options) -> None:
        self.address = options.address
        self.keys = Keys(options.prefix)
        self.accepts_losses = options.relaxed_durability
        self._timeout_seconds = options.timeout_seconds
        self._patience_seconds = PATIENCE_SECONDS
        settings = {
            **options.connection,
            # redis-py would send a command again after a broken connection: see above why not.
            "retry": Retry(NoBackoff(), 0),
            # It would also make a task for each command to time it; `_exchange` has its own timeout.
            "socket_timeout": None,
            "protocol": 2,
        }
        self._pool = Pool(settings, options.connections_max)
        self._home = {
            "host": settings.get("host", "localhost"),
            "port": settings.get("port", 6379),
        }
        self._can_move = "path" not in settings  # a unix socket leads to one server only
        self._is_away = False
        self._calls: dict[str, tuple[str | int, ...]] = {}
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        self._closed = True
        await self._pool.close()

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed; nothing was read or written")

    async def read(self, *command: Argument) -> Any:
        """The answer to one plain command that changes nothing (or may be repeated)."""
        return await self._execute(command, None, repeatable=True)

    async def write(self, *command: Argument) -> Any:
        """As `write_script`, for one plain command."""
        return await self._execute(command, None, repeatable=False)

    async def read_script(self, script: Script, *arguments: Argument) -> Any:
        """Run a script that changes nothing (or may be repeated)."""
        return await self._execute((*self._call(script), *arguments), script, repeatable=True)

    async def write_script(self, script: Script, *arguments: Argument) -> Any:
        """Run a script that writes: once, or not at all, or its fate is unknown and said so."""
        return await self._execute((*self._call(script), *arguments), script, repeatable=False)

    async def connect_apart(self) -> AbstractConnection:
        """A connection outside the pool, for whoever blocks on it; it is the caller's to close."""
        self.check_open()
        connection = self._pool.make()
        await connection.connect()  # type: ignore[no-untyped-call]  # redis-py leaves it out
        return connection

    def _call(self, script: Script) -> tuple[str | int, ...]:
        call = self._calls.get(script.sha)
        if call is None:
            call = self._calls[script.sha] = script.call(self.keys)
        return call

    async def _execute(
        self, command: Sequence[Argument], script: Script | None, *, repeatable: bool
    ) -> Any:
        self.check_open()
        deadline = time.monotonic() + self._patience_seconds
        pauses = doubling(BACKOFF_SECONDS, BACKOFF_SECONDS_MAX)
        while True:
            sent = False
            try:
                connection = await self._pool.acquire()
                try:
                    sent = True
                    return await self._exchange(connection, command)
                finally:
                    self._pool.release(connection)
            except redis_errors.AuthenticationError as error:
                raise errors.unreachable(error, self.address) from error
            except (*_BROKEN, redis_errors.ResponseError) as error:
                if script is not None and errors.is_missing_script(error):
                    await self._load(script)
                    continue
                self._judge(error, sent=sent, repeatable=repeatable)
                pause = next(pauses)
                if time.monotonic() + pause > deadline:
                    raise errors.unreachable(error, self.address) from error
            await asyncio.sleep(pause)
            self.check_open()

    def _judge(self, error: Exception, *, sent: bool, repeatable: bool) -> None:
        """Raise unless the command may be sent again."""
        if self._closed:
            fate = "it was not sent" if not sent else "whether it was carried out is unknown"
            raise StoreClosed(f"the store was closed during the call; {fate}") from error
        if isinstance(error, redis_errors.MovedError) and self._can_move:
            # Another node of the cluster serves the store's slot, and this one did nothing.
            self._move({"host": error.host or self._home["host"], "port": error.port}, away=True)
            return
        if self._is_away and not isinstance(error, redis_errors.ResponseError):
            # It may be gone for good: the node of the url knows who took its place.
            self._move(self._home, away=False)
        if isinstance(error, redis_errors.RedisError) and errors.is_not_now(error):
            return
        if isinstance(error, redis_errors.ResponseError):
            raise errors.translate(error, self.address) from error
        if sent and not repeatable:
            raise errors.unknown_fate(error, self.address) from error

    def _move(self, place: Mapping[str, Any], *, away: bool) -> None:
        self._pool.move(place)
        self._is_away = away

    async def _exchange(self, connection: AbstractConnection, command: Sequence[Argument]) -> Any:
        with errors.text_refused():
            packed = pack_command(tuple(command))  # type: ignore[arg-type]  # its stub says one item
        if len(packed) > REQUEST_BYTES_MAX:
            raise StoreError(
                f"the request is {len(packed)} bytes, {self.address} takes {REQUEST_BYTES_MAX} at "
                "once; nothing was written: use smaller batches"
            )
        async with asyncio.timeout(self._timeout_seconds):
            await connection.send_packed_command(packed, check_health=False)
            return await connection.read_response()

    async def _load(self, script: Script) -> None:
        """Teach the server a script it does not know (yet, or any more after SCRIPT FLUSH)."""
        await self._execute(("SCRIPT", "LOAD", script.text), None, repeatable=True)
