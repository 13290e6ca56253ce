"""A worker is seen for as long as it takes jobs, also while it has no room for more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import timedelta
from unittest import mock

import pytest

from headrace import Headrace, JobManager, State
from headrace.manager import leases
from headrace.manager.explanation import Why
from headrace.stores.base import WorkerSeen
from headrace.worker import supply
from tests.worker.running import reached, until, working

OFTEN_SECONDS = 0.1


@contextlib.contextmanager
def often() -> Iterator[None]:
    with (
        mock.patch.object(leases, "ANNOUNCE_SECONDS", OFTEN_SECONDS),
        mock.patch.object(supply, "_PRESENCE_SECONDS", OFTEN_SECONDS / 4),
    ):
        yield


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    with often():
        yield


async def _seen(manager: JobManager) -> WorkerSeen | None:
    """The worker, if it was heard of lately."""
    lately = manager.clock.now() - timedelta(seconds=10 * OFTEN_SECONDS)
    return next(iter(await manager.workers(lately)), None)


async def test_a_worker_without_room_is_seen_with_all_its_slots_taken(store_url: str) -> None:
    app = Headrace(store_url)
    free = asyncio.Event()

    @app.task
    async def held() -> None:
        await free.wait()

    async with app:
        manager = await app.manager()
        jobs = await app.submit_many([held.spec() for _ in range(3)])
        waiting = await app.submit(held)
        async with working(app, concurrency=3, batch=3) as worker:

            async def is_full() -> bool:
                seen = await _seen(manager)
                return seen is not None and (seen.slots, seen.busy) == (3, 3)

            await until(is_full)
            since = manager.clock.now()
            await asyncio.sleep(5 * OFTEN_SECONDS)
            (seen,) = await manager.workers(since)
            assert (seen.worker, seen.slots, seen.busy) == (worker.name, 3, 3)
            (reason,) = (await manager.explain(waiting.id)).reasons
            assert (reason.why, reason.facts["busy"], reason.facts["slots"]) == (Why.NO_ROOM, 3, 3)
            free.set()
            for job in (*jobs, waiting):
                await reached(app, job, State.COMPLETED)

            async def is_idle() -> bool:
                seen = await _seen(manager)
                return seen is not None and (seen.slots, seen.busy) == (3, 0)

            await until(is_idle)


async def test_an_idle_worker_that_seldom_asks_is_seen_until_it_stops() -> None:
    app = Headrace("memory:")
    free = asyncio.Event()

    @app.task
    async def held() -> None:
        await free.wait()

    async with app:
        manager = await app.manager()
        async with working(app, poll_seconds=60.0, grace_seconds=30.0) as worker:
            await asyncio.sleep(5 * OFTEN_SECONDS)
            seen = await _seen(manager)
            assert seen is not None
            assert seen.busy == 0
            await reached(app, await app.submit(held), State.RUNNING)
            worker.stop()
            await asyncio.sleep(2 * OFTEN_SECONDS)
            stopped_at = manager.clock.now()
            await asyncio.sleep(3 * OFTEN_SECONDS)
            (seen,) = await manager.workers(stopped_at)
            assert seen.process is not None
            assert seen.process.draining, "it takes no more jobs, and is still there"
            free.set()
