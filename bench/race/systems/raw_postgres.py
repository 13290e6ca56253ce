"""What PostgreSQL could do: one statement that completes a hundred jobs and takes the next, events written.

The fewest columns, one table and one log. No retries, limits, tags, lanes or leases: a bound, not a queue.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import asyncpg

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

BATCH = 100
TABLES = """
CREATE TABLE IF NOT EXISTS raw_jobs (
    seq bigserial PRIMARY KEY, n int, priority int, run_at timestamptz, state text, token text, payload text
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS raw_line ON raw_jobs (priority, run_at, seq) WHERE state = 'waiting';
CREATE TABLE IF NOT EXISTS raw_events (seq bigserial PRIMARY KEY, job bigint, kind text, at timestamptz);
"""
STORE = """
WITH stored AS (
    INSERT INTO raw_jobs (n, priority, run_at, state, payload)
    SELECT n, 2, now(), 'waiting', $2 FROM unnest($1::int[]) AS n RETURNING seq
)
INSERT INTO raw_events (job, kind, at) SELECT seq, 'stored', now() FROM stored
"""
TURN = """
WITH done AS (
    UPDATE raw_jobs SET state = 'done', token = NULL WHERE seq = ANY($1) AND token = $2 RETURNING seq
), line AS (
    SELECT seq FROM raw_jobs WHERE state = 'waiting' ORDER BY priority, run_at, seq LIMIT $3
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE raw_jobs SET state = 'running', token = $4 FROM line WHERE raw_jobs.seq = line.seq
    RETURNING raw_jobs.seq, n
), told AS (
    INSERT INTO raw_events (job, kind, at)
    SELECT seq, 'done', now() FROM done UNION ALL SELECT seq, 'taken', now() FROM taken
)
SELECT seq, n FROM taken
"""


class RawPostgres(System):
    async def open(self) -> None:
        self._connection = await asyncpg.connect(URL)
        await self._connection.execute(TABLES)

    async def reset(self) -> None:
        await self._connection.execute("TRUNCATE raw_jobs, raw_events")

    async def submit(self, job: int) -> None:
        await self._connection.execute(STORE, [job], FILLING)

    async def submit_many(self, jobs: Sequence[int]) -> None:
        await self._connection.execute(STORE, list(jobs), FILLING)

    async def left(self) -> int:
        query = "SELECT count(*) FROM raw_jobs WHERE state <> 'done'"
        return int(await self._connection.fetchval(query))


async def work() -> None:
    connection = await asyncpg.connect(URL)
    done: list[int] = []
    token = secrets.token_hex(8)
    while True:
        taken = await connection.fetch(TURN, done, token, BATCH, token)
        for row in taken:
            note(row["n"])
        done = [row["seq"] for row in taken]


SYSTEM = RawPostgres
