"""A store whose own clock is set, under a live worker: jobs go on within seconds of real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, cast
from unittest import mock

import pytest

from headrace import JobManager, JobSpec, Policies, Policy
from headrace.connect import measured_clock, open_store
from headrace.manager import context, upkeep
from headrace.retry import Constant
from headrace.stores.base import JobStore

TEN_MINUTES = timedelta(minutes=10)
REREAD_SECONDS = 0.5
"""Instead of five, between readings of the store's clock."""
POLICY = Policy(lease_seconds=2.0, backoff=Constant(initial=1.0, jitter=False), max_attempts=9)


class Stepping:
    """A store whose clock can be set."""

    def __init__(self, behind: JobStore) -> None:
        self._behind = behind
        self.offset = timedelta(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)

    async def now(self) -> datetime:
        return await self._behind.now() + self.offset


@asynccontextmanager
async def stepping(url: str) -> AsyncIterator[tuple[Stepping, JobManager]]:
    store = Stepping(await open_store(url))
    with mock.patch.object(context, "CLOCK_AGE_SECONDS_MAX", REREAD_SECONDS):
        clock = await measured_clock(cast("JobStore", store))
        manager = JobManager(cast("JobStore", store), clock=clock, policies=Policies(POLICY))
        yield store, manager
        await manager.close()


async def seconds_until_claimed(
    manager: JobManager, wanted: set[str], *, at_most: float
) -> dict[str, float]:
    """How long each job took to get to a worker that asks all the time, with maintenance beside it."""
    began = time.monotonic()
    took: dict[str, float] = {}
    while wanted - took.keys() and time.monotonic() - began < at_most:
        await upkeep.reap(manager)
        for job in await manager.claim("w2", limit=10):
            took.setdefault(job.id, time.monotonic() - began)
        await asyncio.sleep(0.05)
    return took


@pytest.mark.parametrize("jump", [-TEN_MINUTES, timedelta(0)], ids=["back", "ahead and back"])
async def test_work_goes_on_within_seconds(store_url: str, jump: timedelta) -> None:
    async with stepping(store_url) as (store, manager):
        await upkeep.reap(manager)
        if not jump:
            store.offset = TEN_MINUTES
            await asyncio.sleep(REREAD_SECONDS * 1.2)
        await manager.submit_many(
            [JobSpec(type="t", id=name) for name in ("lost", "failing", "waiting")]
        )
        _, failing = await manager.claim("w", limit=2)
        await manager.fail("failing", failing.token, "no")
        store.offset = jump
        await asyncio.sleep(REREAD_SECONDS * 1.2)
        await manager.submit(JobSpec(type="t", id="new"))
        took = await seconds_until_claimed(
            manager, {"new", "waiting", "failing", "lost"}, at_most=20
        )
        assert took.keys() == {"new", "waiting", "failing", "lost"}
        assert max(took["new"], took["waiting"]) < 2
        assert took["failing"] < 4  # its backoff is one second
        assert took["lost"] < 6  # its lease was two
        assert took["lost"] > 0.5
