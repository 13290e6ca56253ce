"""What claims and stats cost as the backlog grows: behind waiting, delayed and rarely tagged jobs.

    python bench/claims.py                                   # SQLite, up to 100,000 waiting
    python bench/claims.py --sizes 1000 100000 1000000       # the full proof
    python bench/claims.py --url 'postgresql://…/db?schema=bench{n}'

Medians of claim calls for 1 and for 100 jobs, and of `stats`. The last column is the largest against the
smallest. Fails if a claim's is above 2, or if `stats` over up to a million jobs takes more than 500 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

from headrace import JobSpec, connect
from headrace.manager import JobManager

BATCH = 5000
CLAIMS = 30
RARE = 10_000
RATIO_MAX = 2.0
STATS_MS_MAX = 500.0
STATS_JOBS_MAX = 1_000_000
"""For more jobs than this there is no limit on `stats`."""


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


def breaches(situation: str, call: str, medians: Mapping[int, float]) -> list[str]:
    """What is above its limit in one row of the table, a line each."""
    if call == "stats":
        return [
            f"{situation}, stats: {value:.2f} ms with {size:,} jobs is above {STATS_MS_MAX:g} ms"
            for size, value in medians.items()
            if size <= STATS_JOBS_MAX and value > STATS_MS_MAX
        ]
    ratio = max(medians.values()) / min(medians.values())
    if ratio > RATIO_MAX:
        return [f"{situation}, {call}: the ratio {ratio:.2f} is above {RATIO_MAX:g}"]
    return []


async def measure(url: str, sizes: Sequence[int], settle_seconds: float) -> list[str]:
    """All backlogs of a situation at once, calls in turns: what disturbs one disturbs the others.

    Prints the table, and returns what is above its limit.
    """
    broken: list[str] = []
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
                medians = {size: statistics.median(found) for size, found in times.items()}
                broken += breaches(situation, call, medians)
                spent = medians.values()
                cells = " | ".join(f"{value:.2f} ms" for value in spent)
                ratio = f"{max(spent) / min(spent):.2f}" if call != "stats" else ""
                print(f"| {situation} | {call} | {cells} | {ratio} |", flush=True)
    return broken


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", help="an empty store, with {n} where a number may go")
    parser.add_argument("--settle", type=float, default=5.0, help="seconds to wait after filling")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        broken = asyncio.run(
            measure(chosen.url or f"sqlite:///{folder}/claims{{n}}.db", chosen.sizes, chosen.settle)
        )
    if broken:
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
