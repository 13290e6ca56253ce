"""What an operator's questions cost as the number of jobs grows: each read of a dashboard, at two sizes.

    python bench/questions.py                                  # SQLite, 10,000 and 1,000,000 jobs
    python bench/questions.py --sizes 10000 10000000           # the full proof
    python bench/servers.py postgres bench/questions.py

Medians of calls in a process that has asked before. The last column is the largest size against the smallest.
Fails if one is above 2 and more than ten milliseconds slower: a question must not cost more because there
are more jobs. Most jobs wait; a thousand have run, of which some failed. What is asked about is new.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from headrace import JobSpec, connect
from headrace.manager import JobManager

BATCH = 10_000
RUN = 1000
CALLS = 15
RATIO_MAX = 2.0
SLACK_MS = 10.0
"""Below this difference a ratio says nothing: it is the noise of a busy machine."""
QUEUES = ("mail", "web", "reports", "imports")


async def fill(manager: JobManager, jobs: int) -> None:
    for start in range(0, jobs, BATCH):
        size = min(BATCH, jobs - start)
        await manager.submit_many(
            [
                JobSpec(type=f"t{n % 3}", queue=QUEUES[n % len(QUEUES)], payload={"n": n})
                for n in range(start, start + size)
            ]
        )
    held = await manager.claim("bench-worker", limit=RUN)
    for place, job in enumerate(held):
        if place % 10 == 0:
            await manager.fail(job.id, job.token, f"row {place} is bad", code="ValueError")
        elif place % 10 < 9:
            await manager.complete(job.id, job.token, place)
    while await manager.roll_up():
        pass
    await manager.stats()  # brings what is counted behind the log up to date


def questions(
    manager: JobManager, waits: str, failed: str
) -> Mapping[str, Callable[[], Awaitable[object]]]:
    now = manager.clock.now()
    hour, day = now - timedelta(hours=1), now - timedelta(days=1)
    return {
        "stats": manager.stats,
        "stats of a queue": lambda: manager.stats(queues=["mail"]),
        "overview": manager.overview,
        "explain a job": lambda: manager.explain(waits),
        "explain a queue": lambda: manager.explain_queue("mail"),
        "holders": lambda: manager.holders("mail"),
        "newest 50": lambda: manager.search(limit=50),
        "newest 50 of a queue": lambda: manager.search(queues=["mail"], limit=50),
        "the completed": lambda: manager.search(states=["completed"], limit=50),
        "attempts": lambda: manager.attempts(failed),
        "graph": lambda: manager.graph(failed),
        "history of an hour": lambda: manager.history(hour),
        "errors of a day": lambda: manager.error_groups(day),
        "cursor of a time": lambda: manager.cursor_at(now),
        "audit": lambda: manager.audit(day),
        "bulk acts": manager.bulk_acts,
        "refused writes": lambda: manager.refused_writes(day),
        "upcoming": manager.upcoming,
    }


async def measured(url: str, jobs: int) -> dict[str, float]:
    """Milliseconds, by question."""
    async with await connect(url) as manager:
        start = time.perf_counter()
        await fill(manager, jobs)
        print(f"{jobs} jobs stored in {time.perf_counter() - start:.0f} s", file=sys.stderr)
        newest = (await manager.search(limit=1)).rows[0].id
        failed = (await manager.search(states=["retrying"], limit=1)).rows[0].id
        return {
            name: await _median(ask) for name, ask in questions(manager, newest, failed).items()
        }


async def _median(ask: Callable[[], Awaitable[object]]) -> float:
    await ask()
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def report(sizes: list[int], found: list[dict[str, float]]) -> list[str]:
    """Prints the table; what grew too much."""
    heads = " | ".join(f"{size:,} jobs" for size in sizes)
    print(f"| question | {heads} | ratio |")
    print("|---" * (len(sizes) + 2) + "|")
    grown = []
    for name in found[0]:
        times = [one[name] for one in found]
        ratio = times[-1] / times[0]
        cells = " | ".join(f"{one:.2f} ms" for one in times)
        print(f"| {name} | {cells} | {ratio:.2f} |")
        if ratio > RATIO_MAX and times[-1] - times[0] > SLACK_MS:
            grown.append(f"{name}: {ratio:.1f} times as long")
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--url", help="with {n} where each size gets a fresh store")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.url or f"sqlite:///{folder}/jobs-{{n}}.db"
        found = [
            asyncio.run(measured(url.replace("{n}", str(place)), size))
            for place, size in enumerate(given.sizes)
        ]
    grown = report(given.sizes, found)
    if grown:
        sys.exit("cost more because there are more jobs: " + "; ".join(grown))


if __name__ == "__main__":
    main()
