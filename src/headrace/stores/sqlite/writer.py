"""The one thread that writes, and its group commit.

Calls that have queued up while the disk was busy are run in one transaction and share its one sync,
each in a savepoint of its own: one that fails is rolled back alone. Callers hear of it only after the
commit, so whatever was acknowledged is on disk.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from headrace.retry import doubling
from headrace.stores.sqlite.calls import Call, Outcome, deliver
from headrace.stores.sqlite.errors import is_busy, translate
from headrace.stores.sqlite.session import Transaction

_GROUP_MAX = 256
_GROUP_SECONDS_MAX = 0.05  # other processes wait for the lock meanwhile
_RETRY_SECONDS_MIN = 0.0002
_RETRY_SECONDS_MAX = 0.005

WriteCall = Call[Transaction, Any]


class Writer:
    """Owns the write connection from `start` to `stop`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        path: str,
        busy_timeout_seconds: float,
        on_growth: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._tx = Transaction(connection)
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._on_growth = on_growth
        self._queue: SimpleQueue[WriteCall | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._run, name="headrace-sqlite-writer", daemon=True
        )
        self.commits = 0
        """How many transactions were committed."""

    def start(self) -> None:
        self._thread.start()

    def submit(self, call: WriteCall) -> None:
        self._queue.put(call)

    def stop(self) -> None:
        """Write what was submitted, then end. Nothing may be submitted afterwards."""
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        is_open = True
        while is_open:
            group: deque[WriteCall] = deque()
            call = self._queue.get()
            while call is not None:
                group.append(call)
                if len(group) == _GROUP_MAX or self._queue.empty():
                    break
                call = self._queue.get()
            is_open = call is not None
            while group:
                deliver(self._transact(group))

    def _transact(self, group: deque[WriteCall]) -> list[Outcome]:
        """One transaction with the first calls of the group, which it takes off."""
        outcomes: list[Outcome] = []
        try:
            self._begin()
            self._perform_all(group, outcomes)
            self._commit()
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers get it
            self._roll_back()
            outcomes += [Outcome(call) for call in group]
            group.clear()
            return [
                Outcome(call, error=own or translate(error, self._path))
                for call, _, own in outcomes
            ]
        if self._tx.grew:
            self._on_growth()
        return outcomes

    def _begin(self) -> None:
        """Take the write lock.

        Its own loop instead of SQLite's busy handler, which sleeps up to 100 ms between two looks and
        so starves beside a process that writes all the time.
        """
        deadline = time.monotonic() + self._busy_timeout_seconds
        pauses = doubling(_RETRY_SECONDS_MIN, _RETRY_SECONDS_MAX)
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            else:
                self._tx.grew = False
                return
            time.sleep(next(pauses))

    def _perform_all(self, group: deque[WriteCall], outcomes: list[Outcome]) -> None:
        """Run the calls of the group, for a while; each that has run goes over to the outcomes."""
        alone = len(group) == 1
        until = time.monotonic() + _GROUP_SECONDS_MAX
        while group and time.monotonic() < until:
            if not group[0].is_given_up:
                outcomes.append(self._perform(group[0], alone=alone))
            group.popleft()

    def _perform(self, call: WriteCall, *, alone: bool) -> Outcome:
        """Run one call. One that fails leaves nothing behind, and the others go on.

        A call that is alone needs no savepoint: if it fails, so does the transaction.
        """
        if alone:
            return Outcome(call, call.work(self._tx))
        mark = self._tx.lanes.mark()
        self._connection.execute("SAVEPOINT call")
        try:
            value = call.work(self._tx)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite has rolled everything back, as it does when the disk is full
            self._tx.lanes.forget(mark)
            self._connection.execute("ROLLBACK TO call")
            self._connection.execute("RELEASE call")
            return Outcome(call, error=translate(error, self._path))
        self._connection.execute("RELEASE call")
        return Outcome(call, value)

    def _commit(self) -> None:
        self._connection.execute("COMMIT")
        self._tx.lanes.end()
        self.commits += 1

    def _roll_back(self) -> None:
        self._tx.lanes.forget(0)
        self._tx.lanes.end()
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # then SQLite has done it already
                self._connection.execute("ROLLBACK")
