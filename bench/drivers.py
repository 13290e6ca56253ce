"""asyncpg against psycopg 3 on the loop that a worker lives in: claim a batch, complete it, repeat.

    python bench/servers.py postgres bench/drivers.py

The same manager and the same SQL on one connection of each driver, in turns. Both run inside transactions
that this script begins and commits, as `manager.on` wants it: four round trips more for each batch than a
worker makes, the same four for both.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
import psycopg

from headrace import JobManager, JobSpec, connect
from headrace.manager import Completed
from headrace.stores.postgres import opening

DRIVERS = ("asyncpg", "psycopg")
Begin = Callable[[], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def opened(driver: str, dsn: str) -> AsyncIterator[Begin]:
    """A connection of that driver; calling what is given begins a transaction on it."""
    connection: Any
    if driver == "asyncpg":
        connection = await asyncpg.connect(dsn)
    else:
        # Statements that are repeated are prepared at once, as asyncpg does.
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        connection.prepare_threshold = 0

    @asynccontextmanager
    async def begun() -> AsyncIterator[object]:
        async with connection.transaction():
            yield connection

    try:
        yield begun
    finally:
        await connection.close()


async def drained(manager: JobManager, begin: Begin, jobs: int, batch: int) -> float:
    """Jobs per second."""
    start = time.perf_counter()
    for _ in range(jobs // batch):
        async with begin() as connection:
            claimed = await manager.on(connection).claim("bench", limit=batch)
        assert len(claimed) == batch
        async with begin() as connection:
            await manager.on(connection).settle(
                [Completed(job_id=job.id, token=job.token, known=job) for job in claimed]
            )
    return jobs / (time.perf_counter() - start)


async def main(url: str, jobs: int, batches: Sequence[int], rounds: int) -> None:
    url = url.replace("{n}", "1")
    dsn = opening.parse(url, schema="headrace", pool_size=1).dsn
    print("| batch | asyncpg, jobs/s | psycopg 3, jobs/s | asyncpg is faster by |")
    print("|---|---|---|---|")
    async with (
        await connect(url) as manager,
        opened("asyncpg", dsn) as one,
        opened("psycopg", dsn) as other,
    ):
        for batch in batches:
            count = max(batch, jobs // (10 if batch == 1 else 1) // batch * batch)
            speeds: dict[str, list[float]] = {driver: [] for driver in DRIVERS}
            for _ in range(rounds + 1):
                for driver, begin in zip(DRIVERS, (one, other), strict=True):
                    await manager.submit_many([JobSpec(type="noop") for _ in range(count)])
                    speeds[driver].append(await drained(manager, begin, count, batch))
            # The first round warms both up.
            fast, slow = (speeds[driver][1:] for driver in DRIVERS)
            ratio = statistics.median(a / b for a, b in zip(fast, slow, strict=True))
            print(
                f"| {batch} | {statistics.median(fast):,.0f} | {statistics.median(slow):,.0f} "
                f"| {ratio - 1:.0%} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", required=True, help="{n} stands for a number")
    parser.add_argument("--jobs", type=int, default=5_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    asyncio.run(main(chosen.url, chosen.jobs, chosen.batch, chosen.rounds))
