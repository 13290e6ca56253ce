"""Procrastinate: psycopg, twenty handlers at once, LISTEN and NOTIFY."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import procrastinate
import psycopg

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

CONCURRENCY = 20
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=URL, min_size=2, max_size=20)
)


@app.task(name="noop", queue="race")
async def noop(n: int, filling: str) -> None:
    note(n)


class Procrastinate(System):
    async def open(self) -> None:
        await app.open_async()
        self._connection = await psycopg.AsyncConnection.connect(URL, autocommit=True)
        found = await self._value("SELECT to_regclass('procrastinate_jobs')")
        if found is None:
            await app.schema_manager.apply_schema_async()

    async def reset(self) -> None:
        await self._connection.execute(
            "TRUNCATE procrastinate_jobs, procrastinate_events, procrastinate_workers CASCADE"
        )

    async def submit(self, job: int) -> None:
        await noop.defer_async(n=job, filling=FILLING)

    async def submit_many(self, jobs: Sequence[int]) -> None:
        await noop.batch_defer_async(*[{"n": job, "filling": FILLING} for job in jobs])

    async def left(self) -> int:
        jobs = await self._value(
            "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        )
        return int(str(jobs))

    async def _value(self, query: str) -> object:
        row = await (await self._connection.execute(query.encode())).fetchone()
        return row[0] if row else None


async def work() -> None:
    logging.disable(logging.INFO)
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY, listen_notify=True)


SYSTEM = Procrastinate
