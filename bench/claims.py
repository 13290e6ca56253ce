"""What claims and stats cost as the backlog grows: behind waiting, delayed and rarely tagged jobs.

    python bench/claims.py                                   # SQLite, up to 100,000 waiting
    python bench/claims.py --sizes 1000 100000 1000000       # the full proof
    python bench/claims.py --url 'postgresql://…/db?schema=bench{n}'
    python bench/claims.py --url 'mine:///bench-{n}' --load my_package.my_store

Medians of claim calls for 1 and for 100 jobs, and of `stats`. The last column is the largest against the
smallest. Fails if a claim's is above 2, or if `stats` over up to a million jobs takes more than 500 ms.

The rare tag: 100 jobs have it at every size, evenly among those that do not, so that every size gives up as
many jobs and only what lies in front of them grows. Of a million, 1 in 10,000 has it: the first has 9,999
others in front, and a claim of 100 goes past all of them. A new job takes the place of each that was claimed,
outside the measured time, so that every claim meets the same line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from headrace import Job, JobSpec, Priority, connect
from headrace.manager import JobManager

BATCH = 5000
LIMIT_MAX = 100
"""The most that a call claims; so many jobs have the rare tag."""
CALLS = {"claim of 1": 200, f"claim of {LIMIT_MAX}": 30, "stats": 5}
"""How often each is made. The shortest most often: on a busy machine its time is mostly others' doing."""
RARE = "rare"
RATIO_MAX = 2.0
STATS_MS_MAX = 500.0
STATS_JOBS_MAX = 1_000_000
"""For more jobs than this there is no limit on `stats`."""


async def fill(manager: JobManager, count: int, situation: str) -> None:
    """`count` jobs in front, and some to be claimed."""
    if situation == "rare tag":
        await submit(manager, rarely_tagged(count))
        return
    delayed = situation == "delayed in front"
    await submit(
        manager,
        (
            JobSpec(
                type="noop",
                payload=n,
                priority=Priority.CRITICAL if delayed else Priority.NORMAL,
                delay_seconds=86_400 if delayed else None,
            )
            for n in range(count)
        ),
    )
    claimed = sum(limit_of(call) * times for call, times in CALLS.items())
    await submit(manager, (JobSpec(type="noop") for _ in range(claimed)))


def rarely_tagged(count: int) -> Iterator[JobSpec]:
    """The last of every `count` / 100 has the tag.

    Each has a due time of its own, so that a new job can be put in its place. All are past: a store may keep
    jobs that were late when they came apart from the others, and the new one would have nobody in front.
    """
    every = count // LIMIT_MAX
    start = datetime.now(UTC) - timedelta(days=1)
    for n in range(count):
        tags = [RARE] if n % every == every - 1 else []
        yield JobSpec(type="noop", payload=n, run_at=start + timedelta(milliseconds=n), tags=tags)


async def submit(manager: JobManager, specs: Iterable[JobSpec]) -> None:
    left = iter(specs)
    while batch := list(itertools.islice(left, BATCH)):
        await manager.submit_many(batch)


async def times_ms(
    managers: Mapping[int, JobManager], call: str, situation: str
) -> dict[int, list[float]]:
    """In turns, and each backlog first as often as the others: what disturbs one disturbs all.

    What was claimed behind a rare tag is replaced after each round.
    """
    tags = [RARE] if situation == "rare tag" else []
    sizes = deque(managers)
    times: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(CALLS[call]):
        taken: dict[int, Sequence[Job]] = {}
        for size in sizes:
            start = time.perf_counter()
            taken[size] = await answer(managers[size], call, tags)
            times[size].append((time.perf_counter() - start) * 1000)
        if tags:
            for size, jobs in taken.items():
                again = (JobSpec(type="noop", run_at=job.run_at, tags=tags) for job in jobs)
                await submit(managers[size], again)
        sizes.rotate(-1)
    return times


async def answer(manager: JobManager, call: str, tags: Sequence[str]) -> Sequence[Job]:
    """Make the call; the jobs that it took."""
    limit = limit_of(call)
    if not limit:
        await manager.stats()
        return []
    jobs = await manager.claim("w", limit=limit, tags=tags)
    assert len(jobs) == limit
    return jobs


def limit_of(call: str) -> int:
    """How many jobs it claims."""
    return 0 if call == "stats" else int(call.rpartition(" ")[2])


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
    """All backlogs of a situation at once. Prints the table; what is above its limit."""
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
            for call in CALLS:
                times = await times_ms(managers, call, situation)
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
    parser.add_argument("--load", action="append", default=[], help="import this module first")
    parser.add_argument("--settle", type=float, default=5.0, help="seconds to wait after filling")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    chosen = parser.parse_args(arguments)
    if min(chosen.sizes) < LIMIT_MAX:
        parser.error(f"a size is at least {LIMIT_MAX}: so many jobs are claimed at once")
    for module in chosen.load:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        broken = asyncio.run(
            measure(chosen.url or f"sqlite:///{folder}/claims{{n}}.db", chosen.sizes, chosen.settle)
        )
    if broken:
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
