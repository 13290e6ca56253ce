"""What SQLite could do, with a sync to disk: a transaction that completes a hundred jobs and takes the next.

The fewest columns, one table and one log. No retries, limits, tags, lanes or leases: a bound, not a queue.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Sequence

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

BATCH = 100
TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY, n INT, priority INT, run_at INT, state INT, token TEXT, payload TEXT
);
CREATE INDEX IF NOT EXISTS line ON jobs (priority, run_at, seq) WHERE state = 0;
CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, job INT, kind INT, at INT);
"""


def opened() -> sqlite3.Connection:
    connection = sqlite3.connect(URL, isolation_level=None, timeout=30)
    connection.executescript(TABLES)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class RawSqlite(System):
    async def open(self) -> None:
        self._connection = opened()

    async def reset(self) -> None:
        self._connection.executescript("DELETE FROM jobs; DELETE FROM events;")

    async def submit(self, job: int) -> None:
        await self.submit_many([job])

    async def submit_many(self, jobs: Sequence[int]) -> None:
        connection, now = self._connection, time.time_ns()
        connection.execute("BEGIN IMMEDIATE")
        (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM jobs").fetchone()
        rows = [(last + 1 + place, job, now, FILLING) for place, job in enumerate(jobs)]
        connection.executemany("INSERT INTO jobs VALUES (?, ?, 2, ?, 0, NULL, ?)", rows)
        connection.executemany(
            "INSERT INTO events (job, kind, at) VALUES (?, 0, ?)", [(row[0], now) for row in rows]
        )
        connection.execute("COMMIT")

    async def left(self) -> int:
        query = "SELECT count(*) FROM jobs WHERE state <> 2"
        return int(self._connection.execute(query).fetchone()[0])


async def work() -> None:
    connection, token = opened(), secrets.token_hex(8)
    done: list[int] = []
    while True:
        now = time.time_ns()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "UPDATE jobs SET state = 2, token = NULL WHERE seq = ? AND token = ?",
            [(seq, token) for seq in done],
        )
        taken = connection.execute(
            "SELECT seq, n FROM jobs WHERE state = 0 ORDER BY priority, run_at, seq LIMIT ?",
            [BATCH],
        ).fetchall()
        connection.executemany(
            "UPDATE jobs SET state = 1, token = ? WHERE seq = ?", [(token, seq) for seq, _ in taken]
        )
        connection.executemany(
            "INSERT INTO events (job, kind, at) VALUES (?, ?, ?)",
            [(seq, 2, now) for seq in done] + [(seq, 1, now) for seq, _ in taken],
        )
        connection.execute("COMMIT")
        for _, job in taken:
            note(job)
        done = [seq for seq, _ in taken]
        if not taken:
            await asyncio.sleep(0.001)


SYSTEM = RawSqlite
