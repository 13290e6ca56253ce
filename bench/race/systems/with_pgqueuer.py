"""PgQueuer: asyncpg, one connection a worker, batches of 100, as its own benchmark runs it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

BATCH = 100


async def queries() -> Any:
    return Queries(AsyncpgDriver(await asyncpg.connect(URL)))


def payload(job: int) -> bytes:
    return f"{job} {FILLING}".encode()


class PgQueuer(System):
    async def open(self) -> None:
        self._queries = await queries()
        if not await self._queries.has_table("pgqueuer"):
            await self._queries.install()

    async def reset(self) -> None:
        await self._queries.driver.execute("TRUNCATE pgqueuer, pgqueuer_log")

    async def submit(self, job: int) -> None:
        await self._queries.enqueue("noop", payload(job))

    async def submit_many(self, jobs: Sequence[int]) -> None:
        count = len(jobs)
        await self._queries.enqueue(["noop"] * count, [payload(job) for job in jobs], [0] * count)

    async def left(self) -> int:
        rows = await self._queries.driver.fetch("SELECT count(*) AS jobs FROM pgqueuer")
        return int(rows[0]["jobs"])


async def work() -> None:
    manager = QueueManager(await queries())

    @manager.entrypoint("noop")
    async def noop(job: Any) -> None:
        note(int(job.payload.partition(b" ")[0]))

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
    await manager.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=5))


SYSTEM = PgQueuer
