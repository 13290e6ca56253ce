"""What claims and stats cost as the backlog grows: behind waiting, delayed and rarely tagged jobs.

    python bench/claims.py                                   # SQLite, up to 100,000 waiting
    python bench/claims.py --sizes 1000 100000 1000000       # the full proof
    python bench/claims.py --url 'postgresql://…/db?schema=bench{n}'

Medians of claim calls for 1 and for 100 jobs, and of `stats`. The last column is the largest against the
smallest.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence

from headrace import JobSpec, connect
from headrace.manager import JobManager

BATCH = 5000
CLAIMS = 30
RARE = 10_000


async def fill(manager: JobManager, count: int, situation: str) -> None:
    """`count` jobs in front, and some to be claimed."""
    for first in range(0, count, BATCH):
        await manager.submit_many(
            [
                JobSpec(
                    type="noop",
                    payload=n,
                    priority=0 if situation == "delayed in front" else 2,
                    delay_seconds=86_400 if situation == "delayed in front" else None,
                    tags=["rare"] if situation == "rare tag" and n % RARE == 0 else [],
                )
                for n in range(first, min(first + BATCH, count))
            ]
        )
    extra = 101 * CLAIMS
    tags = ["rare"] if situation == "rare tag" else []
    for first in range(0, extra, BATCH):
        await manager.submit_many(
            [JobSpec(type="noop", tags=tags) for _ in range(min(BATCH, extra - first))]
        )


async def median_ms(manager: JobManager, limit: int, situation: str) -> float:
    tags = ["rare"] if situation == "rare tag" else []
    times = []
    for _ in range(CLAIMS):
        start = time.perf_counter()
        claimed = await manager.claim("w", limit=limit, tags=tags)
        times.append(time.perf_counter() - start)
        assert len(claimed) == limit
    return statistics.median(times) * 1000


async def stats_ms(manager: JobManager) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        await manager.stats()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


async def measure(url: str, sizes: Sequence[int]) -> None:
    print(
        "| situation | call | " + " | ".join(f"{size:,} in front" for size in sizes) + " | ratio |"
    )
    print("|---|---|" + "---|" * (len(sizes) + 1))
    number = 0
    for situation in ("waiting", "delayed in front", "rare tag"):
        medians: dict[int, list[float]] = {1: [], 100: []}
        stats: list[float] = []
        for size in sizes:
            number += 1
            async with await connect(url.replace("{n}", str(number))) as manager:
                await fill(manager, size, situation)
                for limit, found in medians.items():
                    found.append(await median_ms(manager, limit, situation))
                stats.append(await stats_ms(manager))
        for limit, found in medians.items():
            cells = " | ".join(f"{value:.2f} ms" for value in found)
            ratio = max(found) / min(found)
            print(f"| {situation} | claim of {limit} | {cells} | {ratio:.2f} |", flush=True)
        print(
            f"| {situation} | stats | {' | '.join(f'{value:.2f} ms' for value in stats)} | |",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", help="an empty store, with {n} where a number may go")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(chosen.url or f"sqlite:///{folder}/claims{{n}}.db", chosen.sizes))


if __name__ == "__main__":
    main()
