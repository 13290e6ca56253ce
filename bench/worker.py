"""How fast workers drain no-op jobs, and how soon an idle one starts a job. Real `headrace worker` processes.

    python bench/worker.py                               # memory and SQLite
    python bench/worker.py --jobs 20000 --processes 1 2
    python bench/servers.py postgres bench/worker.py     # the servers that come with the development install
    python bench/servers.py redis bench/worker.py

Event log and fencing are on: every job costs one insert, one claim, one completion and three events. The
time is from the first claim to the last completion, by the store's clock; every worker is up before.
`memory:` lives in one process, so its worker runs in this one.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from headrace import Headrace, JobManager, State, Worker, WorkerSettings

URL_VARIABLE = "BENCH_URL"
SUBMIT_BATCH = 1000
DRAIN_SECONDS_MAX = 300


async def noop(n: int) -> None:
    """Nothing at all."""


def application(url: str) -> Headrace:
    made = Headrace(url)
    made.task(queue="bench")(noop)
    return made


app = application(os.environ.get(URL_VARIABLE, "memory:"))


async def submit(app: Headrace, jobs: int) -> None:
    task = app.tasks["noop"]
    for first in range(0, jobs, SUBMIT_BATCH):
        await app.submit_many([task.spec(n) for n in range(first, min(first + SUBMIT_BATCH, jobs))])


@asynccontextmanager
async def workers(app: Headrace, url: str, processes: int, concurrency: int) -> AsyncIterator[None]:
    """Workers that have shown that they are up; ended by their own process ids."""
    manager = await app.manager()
    if url == "memory:":
        worker = Worker(app, WorkerSettings(concurrency=concurrency))
        running = asyncio.create_task(worker.run())
        yield
        worker.stop()
        await running
        return
    command = [sys.executable, "-m", "headrace.cli", "worker", "worker:app", "--log-level", "error"]
    command += ["--concurrency", str(concurrency)]
    started = [
        subprocess.Popen(command, cwd=Path(__file__).parent, env={**os.environ, URL_VARIABLE: url})
        for _ in range(processes)
    ]
    try:
        async with asyncio.timeout(30):
            while (
                len(await manager.workers(manager.clock.now() - timedelta(minutes=1))) < processes
            ):
                await asyncio.sleep(0.05)
        yield
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(30)


async def drain_rate(url: str, jobs: int, processes: int, concurrency: int) -> float:
    """Jobs per second. The jobs wait in a paused queue until every worker is up."""
    async with application(url) as app:
        manager = await app.manager()
        await manager.pause("bench")
        await submit(app, jobs)
        async with workers(app, url, processes, concurrency):
            await manager.resume("bench")
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                while await _unfinished(manager):
                    await asyncio.sleep(0.25)
        return jobs / await _seconds(manager, jobs)


async def latencies(url: str, samples: int) -> list[float]:
    """Seconds from before the submission until the handler's start, one job at a time, by store time."""
    async with application(url) as app:
        manager = await app.manager()
        async with workers(app, url, 1, 50):
            found = []
            for n in range(samples):
                await asyncio.sleep(0.05)
                before = manager.clock.now()
                job = await app.submit("noop", n)
                await app.wait(job, 30)
                ended = await app.get(job)
                assert ended.started_at is not None
                found.append((ended.started_at - before).total_seconds())
            return found


async def _unfinished(manager: JobManager) -> bool:
    stats = await manager.stats(queues=["bench"])
    return stats.states[State.COMPLETED] < stats.total


async def _seconds(manager: JobManager, jobs: int) -> float:
    """From the first claim to the last completion, by the store's clock; checks that each completed."""
    starts: list[datetime] = []
    ends: list[datetime] = []
    cursor = None
    while True:
        page = await manager.find(queues=["bench"], limit=5000, cursor=cursor)
        starts += [job.assigned_at for job in page.jobs if job.assigned_at is not None]
        ends += [job.finalized_at for job in page.jobs if job.finalized_at is not None]
        cursor = page.cursor
        if cursor is None:
            assert len(ends) == jobs, f"{len(ends)} of {jobs} jobs ended"
            return (max(ends) - min(starts)).total_seconds()


def report(url: str, arguments: argparse.Namespace) -> None:
    numbers = itertools.count()
    name = url.partition(":")[0]
    for processes in arguments.processes if url != "memory:" else [1]:
        rates = [
            asyncio.run(
                drain_rate(
                    url.format(n=next(numbers)), arguments.jobs, processes, arguments.concurrency
                )
            )
            for _ in range(arguments.repeat)
        ]
        print(
            f"{name:<12} {processes} process{'es' if processes > 1 else ''}: "
            f"{statistics.median(rates):,.0f} jobs/s (median of {len(rates)})",
            flush=True,
        )
    if arguments.latency:
        found = sorted(asyncio.run(latencies(url.format(n=next(numbers)), arguments.latency)))
        p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
        print(
            f"{name:<12} idle to start: p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms "
            f"({len(found)} jobs)",
            flush=True,
        )


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="one store, empty; {n} becomes a number")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--latency", type=int, default=200, help="samples; 0: none")
    arguments = parser.parse_args(args)
    if arguments.url:
        report(arguments.url, arguments)
        return
    report("memory:", arguments)
    with tempfile.TemporaryDirectory() as folder:
        report(f"sqlite:///{folder}/{{n}}.db", arguments)


if __name__ == "__main__":
    main()
