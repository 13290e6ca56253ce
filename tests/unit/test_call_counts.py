"""How many functions one job costs in Headrace's own Python, over a store that does nothing.

Calls are counted, of Python and of C, and never timed: `python bench/python_cost.py` prints what they take. A
limit is a little above what was counted when it was set; whoever makes it cheaper lowers it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import FrameType

import pytest

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

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = NoStore()
        self.manager = JobManager(self.store, clock=SystemClock())
        self.app = Headrace("memory:")

        @self.app.task
        async def noop(n: int) -> None:
            pass

        async def manager() -> JobManager:
            return self.manager

        monkeypatch.setattr(self.app, "manager", manager)
        self.task = noop

    async def claimed(self) -> list[Job]:
        born = await self.manager.submit_many([self.task.spec(n) for n in range(JOBS)])
        now = datetime.now(UTC)
        return [apply(job, Claim(worker="w", nonce="n"), now).after for job in born.jobs]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_submitting_in_bulk(world: World) -> None:
    async def of_a_task() -> None:
        await world.app.submit_many([world.task.spec(n) for n in range(JOBS)])

    async def of_specs() -> None:
        await world.manager.submit_many([JobSpec(type="t", payload=n) for n in range(JOBS)])

    assert await calls_of(of_a_task) < 66
    assert await calls_of(of_specs) < 41


async def test_submitting_one_by_one(world: World) -> None:
    async def of_a_task() -> None:
        for n in range(JOBS):
            await world.task.submit(n)

    async def of_specs() -> None:
        for n in range(JOBS):
            await world.manager.submit(JobSpec(type="t", payload=n))

    assert await calls_of(of_a_task) < 205
    assert await calls_of(of_specs) < 126


async def test_settling(world: World) -> None:
    jobs = await world.claimed()

    async def settle() -> None:
        settled = await world.manager.settle(
            [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
        )
        assert settled.freed == {"w": JOBS}

    assert await calls_of(settle) < 19


async def test_working(world: World) -> None:
    jobs = await world.claimed()

    async def work() -> None:
        world.store.stock = list(jobs)
        worker = Worker(world.app, WorkerSettings(concurrency=200, maintenance=False))
        assert await worker.drain() == JOBS

    assert await calls_of(work) < 102
