"""What one job costs in Headrace's own Python: submitted, settled, worked on, over a store that does nothing.

    python bench/python_cost.py

Processor time, the least of several tries: other programs only add to it. For a profile by function:
`py-spy record -o profile.svg -- python bench/python_cost.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from headrace import Headrace, JobSpec, Worker, WorkerSettings
from headrace.clock import SystemClock
from headrace.lifecycle import Claim, apply
from headrace.manager import Completed, JobManager
from headrace.model import Job
from headrace.worker.serving import loop_factory, tune_gc

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.no_store import NoStore

BATCH = 200
TRIES = 5

store = NoStore()
app = Headrace("memory:")


@app.task
async def noop(n: int) -> None:
    pass


def claimed(jobs: Sequence[Job]) -> list[Job]:
    now, claim = datetime.now(UTC), Claim(worker="w", nonce="n")
    return [apply(job, claim, now).after for job in jobs]


async def measure(jobs: int) -> None:
    manager = JobManager(store, clock=SystemClock())
    app.manager = _given(manager)  # type: ignore[method-assign,assignment]
    born = (await manager.submit_many([JobSpec(type="noop", payload={"n": 1})] * jobs)).jobs

    async def by_task() -> None:
        for first in range(0, jobs, 1000):
            await app.submit_many([noop.spec(n) for n in range(first, min(first + 1000, jobs))])

    async def by_spec() -> None:
        for _ in range(0, jobs, 1000):
            await manager.submit_many([JobSpec(type="noop", payload={"n": n}) for n in range(1000)])

    async def alone_by_task() -> None:
        for n in range(jobs):
            await noop.submit(n)

    async def alone_by_spec() -> None:
        for n in range(jobs):
            await manager.submit(JobSpec(type="noop", payload={"n": n}))

    async def settle() -> None:
        for first in range(0, jobs, BATCH):
            await manager.settle(
                [
                    Completed(job_id=job.id, token=job.token, known=job)
                    for job in held[first : first + BATCH]
                ]
            )

    async def work() -> None:
        store.stock, store.changed = list(held), 0
        worker = Worker(app, WorkerSettings(concurrency=BATCH, maintenance=False))
        running = asyncio.create_task(worker.run())
        while store.changed < jobs:
            await asyncio.sleep(0.005)
        worker.stop()
        await running

    steps: dict[str, Callable[[], Awaitable[None]]] = {
        "submit in bulk, JobSpecs": by_spec,
        "submit in bulk, of a task": by_task,
        "submit alone, a JobSpec": alone_by_spec,
        "submit alone, of a task": alone_by_task,
        f"settle in batches of {BATCH}": settle,
        "all of a worker": work,
    }
    print("| step | µs a job |\n|---|---|")
    held = claimed(born)
    for name, step in steps.items():
        tries = []
        for _ in range(TRIES):
            gc.collect()
            start = time.process_time()
            await step()
            tries.append(1e6 * (time.process_time() - start) / jobs)
        print(f"| {name} | {min(tries):.1f} |", flush=True)


def _given(manager: JobManager) -> Callable[[], Awaitable[JobManager]]:
    async def manager_of_this_loop() -> JobManager:
        return manager

    return manager_of_this_loop


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    chosen = parser.parse_args()
    tune_gc()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(measure(chosen.jobs // 1000 * 1000))
