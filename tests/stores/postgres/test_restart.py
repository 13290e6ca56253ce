"""The server dies at work and comes back: everybody goes on, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from headrace.clock import StoreClock
from headrace.errors import HeadraceError, StoreUnavailable
from headrace.manager import Completed, JobManager
from headrace.model import State
from headrace.spec import JobSpec
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres.server import ENVIRONMENT, Server


class Load:
    """Producers and workers on stores of their own. Writes down only what the store acknowledged."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.submitted: set[str] = set()
        self.completed: set[str] = set()
        self.errors: list[HeadraceError] = []
        self.alive: dict[str, float] = {}
        self._stop = asyncio.Event()

    async def run(self, during: asyncio.Task[None]) -> None:
        tasks = [
            asyncio.create_task(work(f"{kind}{number}"))
            for number in range(3)
            for kind, work in (("producer", self._produce), ("worker", self._work))
        ]
        await during
        self._stop.set()
        await asyncio.gather(*tasks)

    async def _manager(self) -> JobManager:
        store = await PostgresStore.open(self._url, pool_size=2)
        return JobManager(store, clock=StoreClock(await store.now()))

    async def _produce(self, name: str) -> None:
        manager = await self._manager()
        while not self._stop.is_set():
            specs = [JobSpec(type="t", lease_seconds=2.0) for _ in range(3)]
            try:
                made = await manager.submit_many(specs)
            except HeadraceError as error:
                self.errors.append(error)
                continue
            self.submitted |= {job.id for job in made.jobs}
            self.alive[name] = time.monotonic()
        await manager.close()

    async def _work(self, name: str) -> None:
        manager = await self._manager()
        while not self._stop.is_set():
            try:
                jobs = await manager.claim(name, limit=5)
                done = await manager.settle(
                    [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
                )
            except HeadraceError as error:
                self.errors.append(error)
                continue
            self.completed |= {
                job.id for job in done.outcomes if not isinstance(job, HeadraceError)
            }
            if jobs:
                self.alive[name] = time.monotonic()
            else:
                await asyncio.sleep(0.005)
        await manager.close()


@pytest.mark.skipif(ENVIRONMENT in os.environ, reason="only a server of our own may be killed")
async def test_kill_9_under_load() -> None:
    server = await asyncio.to_thread(Server)
    try:
        load = Load(server.url)
        back = 0.0

        async def kill_and_restart() -> None:
            nonlocal back
            await asyncio.sleep(1.0)
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(1.0)
            await asyncio.to_thread(server.start_again)
            back = time.monotonic()
            await asyncio.sleep(3.0)

        await load.run(asyncio.create_task(kill_and_restart()))
        # Whoever was in the middle of a write is told so; the others only waited. Everybody went on.
        assert all(isinstance(error, StoreUnavailable) for error in load.errors), load.errors
        assert len(load.alive) == 6
        assert all(last > back for last in load.alive.values())

        store = await PostgresStore.open(server.url)
        manager = JobManager(store, clock=StoreClock(await store.now()))
        stored = await store.get(sorted(load.submitted))
        assert stored.keys() == load.submitted
        assert load.completed
        assert all(
            stored[job_id].state is State.COMPLETED for job_id in load.completed & stored.keys()
        )
        # Those whose lease died with the crash come back by the usual way.
        await asyncio.sleep(2.1)
        await manager.reap()
        while jobs := await manager.claim("last", limit=100):
            await manager.settle([Completed(job_id=job.id, token=job.token) for job in jobs])
        stats = await manager.stats()
        assert stats.states[State.COMPLETED] == stats.total >= len(load.submitted)
        await manager.close()
    finally:
        await asyncio.to_thread(server.stop)
