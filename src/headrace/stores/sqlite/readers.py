"""The threads that read: each call in one consistent snapshot, beside the writer."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from headrace.stores.sqlite.calls import Call, Outcome, deliver
from headrace.stores.sqlite.errors import is_busy, translate
from headrace.stores.sqlite.session import Snapshot

_RETRY_SECONDS = 0.005

ReadCall = Call[Snapshot, Any]


class Readers:
    """One thread per connection, all serving the same queue. Owns the connections until `stop`."""

    def __init__(
        self, connections: Sequence[sqlite3.Connection], *, path: str, busy_timeout_seconds: float
    ) -> None:
        self._connections = connections
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._queue: SimpleQueue[ReadCall | None] = SimpleQueue()
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(Snapshot(connection),),
                name=f"headrace-sqlite-reader-{number}",
                daemon=True,
            )
            for number, connection in enumerate(connections, start=1)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def submit(self, call: ReadCall) -> None:
        self._queue.put(call)

    def stop(self) -> None:
        """Answer what was submitted, then end. Nothing may be submitted afterwards."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        for connection in self._connections:
            connection.close()

    def _run(self, view: Snapshot) -> None:
        while (call := self._queue.get()) is not None:
            if not call.is_given_up:
                deliver([self._perform(view, call)])

    def _perform(self, view: Snapshot, call: ReadCall) -> Outcome:
        deadline = time.monotonic() + self._busy_timeout_seconds
        while True:
            try:
                view.connection.execute("BEGIN")
                return Outcome(call, call.work(view))
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
                # Readers are in nobody's way, except while another process recovers the file.
                if not is_busy(error) or time.monotonic() >= deadline:
                    return Outcome(call, error=translate(error, self._path))
            finally:
                if view.connection.in_transaction:
                    view.connection.execute("ROLLBACK")
            time.sleep(_RETRY_SECONDS)
