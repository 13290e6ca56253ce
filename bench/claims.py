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
import contextlib
import os
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


async def call_ms(manager: JobManager, call: str, situation: str) -> float:
    """One call, timed."""
    tags = ["rare"] if situation == "rare tag" else []
    start = time.perf_counter()
    if call == "stats":
        await manager.stats()
    else:
        limit = int(call.rpartition(" ")[2])
        assert len(await manager.claim("w", limit=limit, tags=tags)) == limit
    return (time.perf_counter() - start) * 1000


async def measure(url: str, sizes: Sequence[int], settle_seconds: float) -> None:
    """All backlogs of a situation at once, calls in turns: what disturbs one disturbs the others."""
    print(
        "| situation | call | " + " | ".join(f"{size:,} in front" for size in sizes) + " | ratio |"
    )
    print("|---|---|" + "---|" * (len(sizes) + 1))
    number = 0
    for situation in ("waiting", "delayed in front", "rare tag"):
        async with contextlib.AsyncExitStack() as opened:
            managers: dict[int, JobManager] = {}
            for size in sizes:
                number += 1
                place = url.replace("{n}", str(number))
                managers[size] = await opened.enter_async_context(await connect(place))
                await fill(managers[size], size, situation)
            os.sync()  # the bulk load's own writes are not part of what is measured
            await asyncio.sleep(settle_seconds)
            for call in ("claim of 1", "claim of 100", "stats"):
                times: dict[int, list[float]] = {size: [] for size in sizes}
                for _ in range(CLAIMS if call != "stats" else 5):
                    for size, manager in managers.items():
                        times[size].append(await call_ms(manager, call, situation))
                medians = [statistics.median(found) for found in times.values()]
                cells = " | ".join(f"{value:.2f} ms" for value in medians)
                ratio = f"{max(medians) / min(medians):.2f}" if call != "stats" else ""
                print(f"| {situation} | {call} | {cells} | {ratio} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", help="an empty store, with {n} where a number may go")
    parser.add_argument("--settle", type=float, default=5.0, help="seconds to wait after filling")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(
            measure(chosen.url or f"sqlite:///{folder}/claims{{n}}.db", chosen.sizes, chosen.settle)
        )


if __name__ == "__main__":
    main()
