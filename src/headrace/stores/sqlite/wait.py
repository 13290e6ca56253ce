"""Waiting for the log to grow: at once for writes of this store, on the kernel's hint for other processes'.

A commit is written to SQLite's log file, then synchronised, and only then it shows: a hint comes a little
early, and is followed by looks until the commit is there. Where the kernel gives no hints, looks must do.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import select
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from headrace.stores.sqlite import log
from headrace.stores.sqlite.file_changes import FileChanges
from headrace.stores.sqlite.session import Snapshot

_POLL_SECONDS_MIN = 0.002
_POLL_SECONDS_MAX = 0.02
_POLL_GROWTH = 1.15
"""Without hints. A look costs some twenty microseconds: a thousandth of an idle process's time."""

_FOLLOW_SECONDS_MIN = 0.0001
_FOLLOW_GROWTH = 1.35
_FOLLOW_SECONDS_MAX = 0.2
"""After a hint: the longest pause between two looks, by which a commit that takes its time is noticed."""
_DEAF_SECONDS_MAX = 0.003
"""A commit gives a hint for each of its pages: pauses shorter than this are slept through."""
_LOOK_SECONDS = 1.0
"""With hints there is a look as often as this all the same."""

Pauses = Iterator[tuple[float, bool]]
"""How long to wait before the next look, and whether it is to be slept through."""


class _Heard(enum.Enum):
    NOTHING = enum.auto()
    HINT = enum.auto()
    CALL = enum.auto()


class Watch:
    """One thread listens for all who wait, and sleeps while nobody does. Owns its connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._view = Snapshot(connection)
        self._log_file = path.with_name(f"{path.name}-wal")
        self._hints: FileChanges | None = None
        self._lock = threading.Lock()
        self._waiters: dict[asyncio.Future[None], tuple[asyncio.AbstractEventLoop, int]] = {}
        self._ear, self._mouth = os.pipe()
        """What is said into the one wakes the thread that listens at the other."""
        self._is_called = False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="headrace-sqlite-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wake everybody and end."""
        with self._lock:
            self._is_stopping = True
            self._call()
        self._thread.join()
        self.wake()
        self._view.connection.close()
        if self._hints is not None:
            self._hints.close()
        os.close(self._ear)
        os.close(self._mouth)

    async def wait(self, position: int, timeout_seconds: float) -> None:
        """Return once the log may hold an event after the position, or after the timeout."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self._is_stopping:
                return
            self._waiters[woken] = (loop, position)
            self._call()
        try:
            await asyncio.wait([woken], timeout=timeout_seconds)
        finally:
            with self._lock:
                self._waiters.pop(woken, None)

    def wake(self, tail: int | None = None) -> None:
        """The log has grown, to `tail` if that is known. From any thread."""
        with self._lock:
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

    def _call(self) -> None:
        """Somebody has come to wait, or it is time to end. The lock is held."""
        if not self._is_called:
            self._is_called = True
            os.write(self._mouth, b".")

    def _run(self) -> None:
        version = -1
        pauses = _polling()
        while True:
            heard = self._listen(pauses)
            if self._is_stopping:
                return
            try:
                if self._hints is not None:
                    self._hints.forget()  # before the look: what is written after it is news
                latest = self._data_version()
                is_news = latest != version or heard is _Heard.CALL
                if is_news:
                    version = latest
                    self.wake(log.tail(self._view))
                if is_news or heard is _Heard.HINT:
                    pauses = _polling() if self._hints is None else _following(is_due=not is_news)
            except sqlite3.Error:
                # Waiting is a hint only: the reads that follow will tell what is wrong.
                self.wake()

    def _listen(self, pauses: Pauses) -> _Heard:
        """Until it is time to look."""
        with self._lock:
            is_wanted = bool(self._waiters)
        seconds, is_deaf = next(pauses) if is_wanted else (None, False)
        if seconds is not None and is_deaf:
            time.sleep(seconds)  # more exact than `poll`, which counts milliseconds
            return _Heard.NOTHING
        listening = select.poll()
        listening.register(self._ear, select.POLLIN)
        if self._hints is not None and is_wanted:
            listening.register(self._hints.descriptor, select.POLLIN)
        ready = {file for file, _ in listening.poll(None if seconds is None else seconds * 1000)}
        if self._ear not in ready:
            return _Heard.HINT if ready else _Heard.NOTHING
        with self._lock:
            os.read(self._ear, 1)
            self._is_called = False
        if self._hints is None:
            with contextlib.suppress(OSError):
                self._hints = FileChanges(self._log_file)
        return _Heard.CALL

    def _data_version(self) -> int:
        """Changes whenever another connection, of this process or not, has committed."""
        (version,) = self._view.connection.execute("PRAGMA data_version").fetchone()
        return int(version)


def _polling() -> Pauses:
    seconds = _POLL_SECONDS_MIN
    while True:
        yield seconds, False
        seconds = min(seconds * _POLL_GROWTH, _POLL_SECONDS_MAX)


def _following(*, is_due: bool) -> Pauses:
    """After a hint: a commit is about to show (`is_due`), or one has shown and the next may be under way."""
    seconds = _FOLLOW_SECONDS_MIN
    while seconds < _FOLLOW_SECONDS_MAX:
        yield seconds, is_due and seconds < _DEAF_SECONDS_MAX
        seconds *= _FOLLOW_GROWTH
    while True:
        yield _LOOK_SECONDS, False


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
