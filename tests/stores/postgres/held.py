"""What claims cost while somebody else's transaction stays open. By hand, with 200,000 jobs:

python -m tests.stores.postgres.held [jobs]
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncIterator
from typing import Any
from unittest import mock

import asyncpg
import msgspec

from headrace.clock import StoreClock
from headrace.manager import Completed, JobManager
from headrace.stores.postgres import PostgresStore
from headrace.stores.postgres.marks import EXCESS_MAX, Marks
from tests.stores.postgres import backlog, server

BATCH = 100


class Passed(msgspec.Struct, frozen=True):
    """How it went while the jobs passed."""

    first_seconds: float
    """The median claim at the start…"""
    last_seconds: float
    """… and at the end."""
    entries_most: int
    """The most index entries without a job that any claim walked over, but for the full probes."""
    full_probes: int


@contextlib.asynccontextmanager
async def snapshot(url: str, schema: str) -> AsyncIterator[asyncpg.Connection]:
    """A forgotten transaction: it has looked once, and nothing it could still see may be cleared away."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await connection.fetch(f'SELECT FROM "{schema}".jobs LIMIT 1')
        yield connection
    finally:
        await connection.close()


async def pass_through(store: PostgresStore, jobs: int) -> Passed:
    """Claim and complete that many, a hundred at a time."""
    manager = JobManager(store, clock=StoreClock(await store.now()))
    seconds: list[float] = []
    excess: list[tuple[bool, int]] = []
    learn = Marks.learn

    def listen(marks: Marks, firsts: Any, walked: int, *, full: bool, seconds: float) -> None:
        excess.append((full, walked))
        learn(marks, firsts, walked, full=full, seconds=seconds)

    with mock.patch.object(Marks, "learn", listen):
        for _ in range(jobs // BATCH):
            start = time.perf_counter()
            taken = await manager.claim("passer", limit=BATCH)
            seconds.append(time.perf_counter() - start)
            assert len(taken) == BATCH
            await manager.settle(
                [Completed(job_id=job.id, token=job.token, known=job) for job in taken]
            )
    window = max(10, min(50, len(seconds) // 4))
    return Passed(
        first_seconds=statistics.median(seconds[5 : 5 + window]),
        last_seconds=statistics.median(seconds[-window:]),
        entries_most=max((count for full, count in excess if not full), default=0),
        full_probes=sum(full for full, count in excess if count > EXCESS_MAX),
    )


async def prove(url: str, jobs: int) -> Passed:
    store = await PostgresStore.open(server.with_options(url, schema="held"))
    await backlog.fill(store, jobs + 50_000)
    async with snapshot(url, "held"):
        passed = await pass_through(store, jobs)
    await store.close()
    return passed


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with server.running() as url:
        passed = asyncio.run(prove(url, jobs))
    ratio = passed.last_seconds / passed.first_seconds
    sys.stdout.write(f"{jobs:,} jobs passed: {passed}; ratio {ratio:.2f}\n")
    sys.exit(ratio > 2)


if __name__ == "__main__":
    main()
