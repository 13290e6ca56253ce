"""persist-queue's acknowledged queue on SQLite. It has no workers: a loop of ours takes and acknowledges."""

from __future__ import annotations

from persistqueue import SQLiteAckQueue
from persistqueue.exceptions import Empty

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

LOOK_SECONDS = 0.01


def opened() -> SQLiteAckQueue:
    """Its url is a folder: it names the file in it itself."""
    return SQLiteAckQueue(URL, multithreading=True)


class PersistQueue(System):
    async def open(self) -> None:
        self._queue = opened()

    async def reset(self) -> None:
        connection = self._queue._putter
        connection.execute("DELETE FROM ack_queue_default")
        connection.commit()

    async def submit(self, job: int) -> None:
        self._queue.put((job, FILLING))

    async def left(self) -> int:
        row = self._queue._getter.execute(
            "SELECT count(*) FROM ack_queue_default WHERE status <> 5"
        ).fetchone()
        return int(row[0])


async def work() -> None:
    queue = opened()
    while True:
        try:
            item = queue.get(block=True, timeout=LOOK_SECONDS)
        except Empty:
            continue
        note(item[0])
        queue.ack(item)


SYSTEM = PersistQueue
