"""The server killed with kill -9 under load, and started again: nothing acknowledged is missing."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from headrace.errors import StoreUnavailable
from headrace.model import State
from headrace.stores.base import Clash, Commit, Query
from headrace.stores.redis import RedisStore
from tests.stores.redis.jobs import completion, draft, insertion, request
from tests.stores.redis.server import start, url_of

KILLS = 3
SECONDS_BETWEEN = 0.4


class Load:
    """Producers and workers that know nothing of the kills but the errors they meet."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self.submitted: set[str] = set()
        """Acknowledged, by Inserted or by a Clash with themselves."""
        self.acknowledged = asyncio.Event()
        self.completed: set[str] = set()
        self.unavailable = 0
        self.producing = True
        self._numbers = itertools.count()

    async def produce(self) -> None:
        while self.producing:
            jobs = [draft(id=f"job-{next(self._numbers)}") for _ in range(5)]
            while True:
                try:
                    answer = await self.store.insert(insertion(jobs))
                except StoreUnavailable:
                    self.unavailable += 1
                    continue
                # All or nothing: had it been stored by the try whose answer was lost, all clash.
                assert not isinstance(answer, Clash) or len(answer.ids) == len(jobs)
                self.submitted |= {job.id for job in jobs}
                self.acknowledged.set()
                break
            await asyncio.sleep(0.002)

    async def work(self) -> None:
        while self.producing or self.submitted - self.completed:
            try:
                claimed = await self.store.claim(request(10))
                committed = await self.store.commit(
                    Commit(changes=[completion(job) for job in claimed])
                )
            except StoreUnavailable:
                self.unavailable += 1
                continue
            self.completed |= {
                job.id for job, done in zip(claimed, committed.applied, strict=True) if done
            }
            if not claimed:
                await self.rescue()

    async def rescue(self) -> None:
        """Finish what a lost answer left leased, or completed without this process knowing."""
        try:
            for job in await self.store.get(list(self.submitted - self.completed)[:100]):
                fresh = (await self.store.get([job]))[job]
                if fresh.state is State.RUNNING:
                    await self.store.commit(Commit(changes=[completion(fresh)]))
                elif fresh.state is State.COMPLETED:
                    self.completed.add(job)
        except StoreUnavailable:
            self.unavailable += 1
        await asyncio.sleep(0.01)


@pytest.mark.timeout(120)
async def test_nothing_acknowledged_is_lost_and_clients_go_on(tmp_path: Path) -> None:
    server = start(tmp_path, fsync="always")
    port = server.port
    store = await RedisStore.open(url_of(server))
    load = Load(store)
    tasks = [
        asyncio.create_task(one()) for one in (load.produce, load.produce, load.work, load.work)
    ]
    try:
        for _ in range(KILLS):
            await asyncio.sleep(SECONDS_BETWEEN)
            server.terminate()
            load.acknowledged.clear()
            await asyncio.sleep(0.1)
            server = await asyncio.to_thread(start, tmp_path, fsync="always", port=port)
            await asyncio.wait_for(load.acknowledged.wait(), 20)
        load.producing = False
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
        stored: dict[str, State] = {}
        after = None
        while page := await store.find(Query(limit=1000, after_seq=after)):
            stored |= {job.id: job.state for job in page}
            after = page[-1].seq
        assert load.submitted == stored.keys(), "acknowledged and stored are the same jobs"
        assert set(stored.values()) == {State.COMPLETED}
        assert load.unavailable > 0, "the kills were noticed, or the test shows nothing"
        await store.close()
    finally:
        for task in tasks:
            task.cancel()
        server.terminate()
