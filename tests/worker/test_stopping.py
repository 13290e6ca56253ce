"""How a worker ends, whatever goes on at that moment."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

from headrace import Headrace, Job, State
from headrace.app import Observer
from headrace.stores.base import ClaimRequest
from headrace.worker import Settings, Worker
from headrace.worker.threads import threads_are_stuck
from tests.worker.running import PATIENCE_SECONDS, until, working


async def test_a_claim_under_way_is_not_forgotten(store_url: str) -> None:
    """Stopped while the store answers: what it leased is given back, at no cost."""
    app = Headrace(store_url)
    ran = []

    @app.task
    async def work() -> None:
        ran.append(1)

    async with app:
        manager = await app.manager()
        store = manager.store
        answered = asyncio.Event()
        claim = store.claim

        async def slow_claim(request: ClaimRequest) -> Sequence[Job]:
            jobs = await claim(request)
            answered.set()
            await asyncio.sleep(0.3)
            return jobs

        jobs = await app.submit_many([work.spec() for _ in range(3)])
        store.claim = slow_claim  # type: ignore[method-assign]
        worker = Worker(app, Settings(maintenance=False))
        running = asyncio.create_task(worker.run())
        await asyncio.wait_for(answered.wait(), PATIENCE_SECONDS)
        worker.stop()
        await asyncio.wait_for(running, PATIENCE_SECONDS)
        ended = await manager.get_many([job.id for job in jobs])
    assert ran == []
    assert [job.state for job in ended] == [State.RETRYING] * 3
    assert all(job.losses == job.failures == 0 for job in ended)


async def test_a_handler_that_will_not_stop_is_left_behind(store_url: str) -> None:
    app = Headrace(store_url)
    let_go = threading.Event()
    began = threading.Event()

    @app.task
    async def stubborn() -> None:
        while not let_go.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                began.set()

    @app.task
    def deaf() -> None:
        began.set()
        let_go.wait(20)  # one call into C: nothing can be raised in it

    async with app:
        started = time.monotonic()
        async with working(app, stop_seconds=0.3) as worker:
            jobs = [await stubborn.submit(), await deaf.submit()]
            await until(began.is_set)
            await until(lambda: len(worker._running) == 2)
        assert time.monotonic() - started < 15
        assert threads_are_stuck()
        manager = await app.manager()
        ended = await manager.get_many([job.id for job in jobs])
        let_go.set()
        await until(lambda: not threads_are_stuck())
    assert [job.state for job in ended] == [State.RETRYING] * 2
    assert all(job.losses == job.failures == 0 for job in ended)


async def test_the_keeper_starts_again_when_it_fails() -> None:
    app = Headrace("memory:")
    fails = [2]

    class Failing(Observer):
        def verb_ended(self, name: str, seconds: float, error: BaseException | None) -> None:
            if name == "find" and fails[0]:
                fails[0] -= 1
                raise RuntimeError("a defect of ours")

    app.observers = (Failing(),)

    @app.task(lease=1.5)
    async def work() -> str:
        await asyncio.sleep(4)
        return "done"

    async with app, working(app):
        job = await work.submit()
        assert await app.wait(job, 30) == "done"
        assert (await app.get(job)).attempt == 1
    assert fails == [0]
