"""Waiting for the log to grow: at once for writes of this store, by polling for other processes'."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading

from headrace.stores.sqlite import log
from headrace.stores.sqlite.session import Snapshot

_POLL_SECONDS_MIN = 0.002
_POLL_SECONDS_MAX = 0.02
_POLL_GROWTH = 1.15
"""A look costs some twenty microseconds: an idle process spends a thousandth of its time on it."""


class Watch:
    """One thread polls for all who wait, and sleeps while nobody does. Owns its connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._view = Snapshot(connection)
        self._changed = threading.Condition()
        self._waiters: dict[asyncio.Future[None], tuple[asyncio.AbstractEventLoop, int]] = {}
        self._has_newcomer = False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="headrace-sqlite-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wake everybody and end."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join()
        self.wake()
        self._view.connection.close()

    async def wait(self, position: int, timeout_seconds: float) -> None:
        """Return once the log may hold an event after the position, or after the timeout."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        with self._changed:
            if self._is_stopping:
                return
            self._waiters[woken] = (loop, position)
            self._has_newcomer = True
            self._changed.notify()
        try:
            await asyncio.wait([woken], timeout=timeout_seconds)
        finally:
            with self._changed:
                self._waiters.pop(woken, None)

    def wake(self, tail: int | None = None) -> None:
        """The log has grown, to `tail` if that is known. From any thread."""
        with self._changed:
            woken = [
                (future, loop)
                for future, (loop, position) in self._waiters.items()
                if tail is None or position < tail
            ]
            for future, _ in woken:
                del self._waiters[future]
        for future, loop in woken:
            with contextlib.suppress(
                RuntimeError
            ):  # the loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_finish, future)

    def _run(self) -> None:
        pause = _POLL_SECONDS_MIN
        version = -1
        while self._is_wanted(pause):
            try:
                latest = self._data_version()
                if self._has_newcomer or latest != version:
                    self._has_newcomer = False
                    version = latest
                    pause = _POLL_SECONDS_MIN
                    self.wake(log.tail(self._view))
                else:
                    pause = min(pause * _POLL_GROWTH, _POLL_SECONDS_MAX)
            except sqlite3.Error:
                # Waiting is a hint only: the reads that follow will tell what is wrong.
                self.wake()

    def _is_wanted(self, pause: float) -> bool:
        """Sleep until it is time to look again; False when it is time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_newcomer or self._is_stopping, pause)
            self._changed.wait_for(lambda: bool(self._waiters) or self._is_stopping)
            return not self._is_stopping

    def _data_version(self) -> int:
        """Changes whenever another connection, of this process or not, has committed."""
        (version,) = self._view.connection.execute("PRAGMA data_version").fetchone()
        return int(version)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
