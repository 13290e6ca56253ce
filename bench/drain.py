"""How fast no-op jobs pass through a store: submitted in bulk, then claimed and completed in batches.

    python bench/drain.py                               # memory and SQLite
    python bench/drain.py --url 'sqlite:////tmp/{n}.db' # one of your choice, empty; {n} becomes a number
    python bench/servers.py postgres bench/drain.py     # the servers that come with the development install
    python bench/drain.py --jobs 50000 --batch 100 --processes 2

Event log and fencing are on: every job costs one insert, one claim, one completion and three events.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from headrace import JobSpec, State, connect
from headrace.manager import Completed, JobManager

SUBMIT_BATCH = 1000


async def submit(manager: JobManager, jobs: int) -> float:
    start = time.perf_counter()
    for first in range(0, jobs, SUBMIT_BATCH):
        count = min(SUBMIT_BATCH, jobs - first)
        await manager.submit_many(
            [JobSpec(type="noop", payload={"n": first + n}) for n in range(count)]
        )
    return time.perf_counter() - start


async def drain(manager: JobManager, worker: str, batch: int) -> int:
    done = 0
    while claimed := await manager.claim(worker, limit=batch):
        settled = await manager.settle(
            [Completed(job_id=job.id, token=job.token, known=job) for job in claimed]
        )
        for outcome in settled.outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        done += len(claimed)
    return done


def worker_process(url: str, name: str, batch: int, begin: float) -> None:
    async def work() -> None:
        async with await connect(url) as manager:
            await asyncio.sleep(max(0.0, begin - time.time()))
            await drain(manager, name, batch)

    asyncio.run(work())


async def measure(url: str, jobs: int, batch: int, processes: int) -> dict[str, float]:
    """Jobs per second in and out; every job is checked to have completed."""
    async with await connect(url) as manager:
        if (await manager.stats()).total:
            sys.exit(f"{url} holds jobs already: a measurement needs an empty store")
        submitting = await submit(manager, jobs)
        if processes == 1:
            start = time.perf_counter()
            await drain(manager, "w", batch)
            draining = time.perf_counter() - start
        else:
            begin = time.time() + 1.5  # by then every process has connected
            context = multiprocessing.get_context("spawn")
            running = [
                context.Process(target=worker_process, args=(url, f"w{n}", batch, begin))
                for n in range(processes)
            ]
            for process in running:
                process.start()
            for process in running:
                await asyncio.to_thread(process.join)
            draining = time.time() - begin
        stats = await manager.stats()
        assert stats.states[State.COMPLETED] == jobs, stats
    return {"submitted": jobs / submitting, "drained": jobs / draining}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", action="append", help="default: memory and SQLite")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--batch", type=int, action="append", help="default: 1, 10 and 100")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    if not chosen.json:
        print("| store | batch | processes | submitted/s (batches of 1000) | drained/s |")
        print("|---|---|---|---|---|")
    numbers = itertools.count(1)
    for batch in chosen.batch or [1, 10, 100]:
        # One by one is slow where each commit waits for the disk: fewer jobs say as much.
        jobs = chosen.jobs if batch >= 10 else chosen.jobs // 10
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "drain.db"
            default = {
                "memory": "memory:",
                "SQLite, synchronous=full": f"sqlite:///{file}",
                "SQLite, synchronous=normal": f"sqlite:///{file}2?synchronous=normal",
            }
            if chosen.processes > 1:
                del default["memory"]
            if chosen.url:
                numbered = [url.replace("{n}", str(next(numbers))) for url in chosen.url]
                stores = {url.split(":")[0]: url for url in numbered}
            else:
                stores = default
            for name, url in stores.items():
                speed = asyncio.run(measure(url, jobs, batch, chosen.processes))
                if chosen.json:
                    row = {"store": name, "batch": batch, "processes": chosen.processes, **speed}
                    print(json.dumps(row))
                else:
                    print(
                        f"| {name} | {batch} | {chosen.processes} | {speed['submitted']:,.0f} "
                        f"| {speed['drained']:,.0f} |"
                    )


if __name__ == "__main__":
    main()
