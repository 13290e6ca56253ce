"""A worker on a host with a wrong clock neither steals nor loses a lease: the store's clock counts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self
from unittest import mock

import pytest

from headrace import Headrace, Job, JobManager, JobSpec, Policy, State, connect
from headrace.connect import measured_clock, open_store
from headrace.stores.base import Health
from tests.worker.running import kinds, reached, working

TEN_MINUTES = timedelta(minutes=10)


@contextmanager
def host_clock_off_by(offset: timedelta, module: str = "headrace.clock") -> Iterator[None]:
    """Everything in the module that asks the host for the time gets the wrong one."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            moment = datetime.now(tz) + offset
            return cls.fromtimestamp(moment.timestamp(), tz)

    with mock.patch(f"{module}.datetime", Wrong):
        yield


class Right:
    """The clock of this machine, and so of every store here, whatever Headrace takes it to be."""

    def now(self) -> datetime:
        return datetime.now(UTC)


async def _claimed(manager: JobManager, worker: str) -> Job:
    """One job. What one clock calls now may lie some milliseconds ahead of the other, never longer."""
    async with asyncio.timeout(5):
        while not (claimed := await manager.claim(worker, limit=1)):  # noqa: ASYNC110 - a clock moves on
            await asyncio.sleep(0.001)
    return claimed[0]


@pytest.mark.parametrize("offset", [TEN_MINUTES, -TEN_MINUTES], ids=["ahead", "behind"])
async def test_a_wrong_host_clock_changes_nothing(store_url: str, offset: timedelta) -> None:
    store = await open_store(store_url)
    # A store that other processes can use is opened a second time, as another host would.
    other = await open_store(store_url) if store.capabilities.shared else store
    try:
        right = JobManager(store, clock=Right())
        with host_clock_off_by(offset):
            wrong = JobManager(other, clock=await measured_clock(other))
            assert abs(wrong.clock.now() - right.clock.now()) < timedelta(seconds=5)
            await right.submit_many(
                [JobSpec(type="t", id=name, lease_seconds=60) for name in ("a", "b")]
            )
            mine = await _claimed(wrong, "wrong")
            theirs = await _claimed(right, "right")
            assert mine.lease_until is not None
            assert (
                timedelta(seconds=50) < mine.lease_until - right.clock.now() < timedelta(seconds=70)
            )
            # It does not steal: nothing has lapsed, whoever looks.
            assert not (await wrong.reap()).jobs
            # It does not lose: nothing has lapsed for the others either, and its heartbeat counts.
            assert not (await right.reap()).jobs
            assert mine.lease is not None
            assert mine.id in (await wrong.heartbeat([mine.lease])).extended
            done = await wrong.complete(mine.id, mine.token)
            assert done.job.state is State.COMPLETED
            assert abs(done.job.updated_at - right.clock.now()) < timedelta(seconds=5)
        await right.complete(theirs.id, theirs.token)
    finally:
        await other.close()
        await store.close()


@pytest.mark.parametrize("offset", [TEN_MINUTES, -TEN_MINUTES], ids=["ahead", "behind"])
async def test_a_whole_worker_on_such_a_host(store_url: str, offset: timedelta) -> None:
    """Its claims, heartbeats, outcomes and maintenance: its job is done once, another's is left alone."""
    with host_clock_off_by(offset):
        app = Headrace(store_url, policies=Policy(lease_seconds=60.0))
        there = asyncio.Event()

        @app.task
        async def mine() -> str:
            await there.wait()
            return "done"

        async with app:
            wrong = await app.manager()
            store = await open_store(store_url) if wrong.store.capabilities.shared else wrong.store
            right = JobManager(store, clock=Right())
            await right.submit(JobSpec(type="theirs", id="theirs", lease_seconds=60))
            (theirs,) = await right.claim("right", types=["theirs"])
            async with working(app):
                job = await mine.submit()
                await reached(app, job, State.RUNNING)
                for manager in (right, wrong):
                    await manager.maintain()
                    assert (await manager.get(job.id)).state is State.RUNNING
                    assert await manager.get("theirs") == theirs
                there.set()
                assert await app.wait(job, 30) == "done"
            assert await kinds(app, job) == ["enqueued", "leased", "completed"]
            assert (await right.complete("theirs", theirs.token)).job.state is State.COMPLETED
            if store is not wrong.store:
                await store.close()


@pytest.mark.parametrize(
    ("seconds", "health"),
    [
        (600, Health.WARNING),
        (-600, Health.WARNING),
        (6, Health.WARNING),
        (-6, Health.WARNING),
        (3, Health.OK),
        (-3, Health.OK),
    ],
)
async def test_the_diagnosis_tells_of_it(store_url: str, seconds: int, health: Health) -> None:
    async with await connect(store_url) as manager:
        with host_clock_off_by(timedelta(seconds=seconds), "headrace.manager.diagnosis"):
            (clock,) = [one for one in await manager.diagnose() if one.what == "clock"]
    assert clock.health is health
    told = re.fullmatch(r"the store's is ([+-]\d+\.\d{3}) s from this host's", clock.value)
    assert told is not None
    assert float(told[1]) == pytest.approx(-seconds, abs=1)
    assert ("set this host's clock" in (clock.advice or "")) is (health is Health.WARNING)
