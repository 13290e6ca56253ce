"""Counts of functions called for one job, in a process of its own: `python -m tests.unit.call_counts`.

In a process that has run thousands of other tests a profile hook does not always come to an end, so
`test_call_counts` starts this one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import FrameType

from headrace import Headrace, JobSpec, Worker, WorkerSettings
from headrace.clock import SystemClock
from headrace.lifecycle import Claim, apply
from headrace.manager import Completed, JobManager
from headrace.model import Job
from tests.no_store import NoStore

JOBS = 500


async def calls_of(step: Callable[[], Awaitable[object]]) -> float:
    """Calls a job; what is worked out only once has been, before."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    await step()
    sys.setprofile(count)
    try:
        await step()
    finally:
        sys.setprofile(None)
    return counted / JOBS


class World:
    """An application and a manager over no store, and jobs that are claimed."""

    def __init__(self) -> None:
        self.store = NoStore()
        self.manager = JobManager(self.store, clock=SystemClock())
        self.app = Headrace("memory:")

        @self.app.task
        async def noop(n: int) -> None:
            pass

        async def manager() -> JobManager:
            return self.manager

        self.app.manager = manager  # type: ignore[method-assign]
        self.task = noop

    async def claimed(self) -> list[Job]:
        born = await self.manager.submit_many([self.task.spec(n) for n in range(JOBS)])
        now = datetime.now(UTC)
        return [apply(job, Claim(worker="w", nonce="n"), now).after for job in born.jobs]


async def counts() -> dict[str, float]:
    """By step, how many calls it takes for each job."""
    world = World()

    async def bulk_of_a_task() -> None:
        await world.app.submit_many([world.task.spec(n) for n in range(JOBS)])

    async def bulk_of_specs() -> None:
        await world.manager.submit_many([JobSpec(type="t", payload=n) for n in range(JOBS)])

    async def alone_of_a_task() -> None:
        for n in range(JOBS):
            await world.task.submit(n)

    async def alone_of_specs() -> None:
        for n in range(JOBS):
            await world.manager.submit(JobSpec(type="t", payload=n))

    async def settle() -> None:
        settled = await world.manager.settle(
            [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
        )
        assert settled.freed == {"w": JOBS}

    async def work() -> None:
        world.store.stock = list(jobs)
        worker = Worker(world.app, WorkerSettings(concurrency=200, maintenance=False))
        assert await worker.drain() == JOBS

    jobs = await world.claimed()
    steps = (bulk_of_a_task, bulk_of_specs, alone_of_a_task, alone_of_specs, settle, work)
    return {step.__name__: await calls_of(step) for step in steps}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(counts())))
