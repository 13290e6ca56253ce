"""How long a claim takes with a thousand, a hundred thousand and a million jobs waiting. By hand:

    python -m tests.stores.postgres.flat [largest]

Sizes take turns, so that whatever else the machine does hits all of them alike.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence

from headrace.clock import StoreClock
from headrace.manager import Completed, JobManager
from headrace.model import Job
from headrace.spec import JobSpec
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres import backlog, server

ROUNDS = 60
CLAIMS = (1, 100)


class Line:
    """One backlog of one size, kept at that size: what is claimed is completed and replaced."""

    def __init__(self, size: int, manager: JobManager, store: PostgresStore) -> None:
        self.size = size
        self.manager = manager
        self.store = store
        self.seconds: dict[tuple[str, int], list[float]] = {}

    async def claim(self, what: str, limit: int, tags: Sequence[str] = ()) -> None:
        start = time.perf_counter()
        jobs = await self.manager.claim("prover", queues=["default"], tags=tags, limit=limit)
        self.seconds.setdefault((what, limit), []).append(time.perf_counter() - start)
        assert len(jobs) == limit, (what, limit, len(jobs))
        await self._replace(jobs)

    async def _replace(self, jobs: Sequence[Job]) -> None:
        done = [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
        await self.manager.settle(done)
        await self.manager.submit_many(
            [
                JobSpec(type="fill", tags=job.tags, priority=job.priority, queue=job.queue)
                for job in jobs
            ]
        )

    def p50(self, what: str, limit: int) -> float:
        return statistics.median(self.seconds[what, limit])


async def prove(url: str, sizes: Sequence[int]) -> dict[str, float]:
    """The ratio of the largest p50 to the smallest, by scenario and size of claim."""
    lines = []
    for size in sizes:
        store = await PostgresStore.open(server.with_options(url, schema=f"flat_{size}"))
        await backlog.fill(store, size, rare_every=10_000 if size > 10_000 else size // 10)
        # As many rare ones as a claim of a hundred needs, wherever the backlog is too small for them.
        await backlog.fill(store, 300, rare_every=1)
        lines.append(Line(size, JobManager(store, clock=StoreClock(await store.now())), store))
    ratios: dict[str, float] = {}
    for scenario, tags, ahead in (
        ("waiting", (), 0),
        ("a tag of one in 10,000", (backlog.RARE,), 0),
        ("behind not-yet-due jobs of the highest priority", (), sizes[-1]),
    ):
        if ahead:
            for line in lines:
                await backlog.fill(line.store, ahead, priority=0, due="1 days")
        for limit in CLAIMS:
            for turn in range(ROUNDS + 10):
                for line in lines:
                    await line.claim("warm" if turn < 10 else scenario, limit, tags)
            times = [line.p50(scenario, limit) for line in lines]
            ratios[f"{scenario}, claim of {limit}"] = max(times) / min(times)
            each = ", ".join(
                f"{line.size:,}: {seconds * 1000:.2f} ms"
                for line, seconds in zip(lines, times, strict=True)
            )
            say(f"{scenario}, claim of {limit}: {each}; ratio {max(times) / min(times):.2f}")
    start = time.perf_counter()
    stats = await lines[-1].manager.stats()
    say(f"stats over {stats.total:,} jobs: {(time.perf_counter() - start) * 1000:.0f} ms")
    for line in lines:
        await line.manager.close()
    return ratios


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    sizes = [size for size in (1_000, 100_000, 1_000_000) if size < largest] + [largest]
    with server.running() as url:
        ratios = asyncio.run(prove(url, sizes))
    sys.exit(any(ratio > 2 for ratio in ratios.values()))


if __name__ == "__main__":
    main()
