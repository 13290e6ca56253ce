"""A redrive of many jobs whose every carrier is killed: one new job of each, and an exact count."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from headrace import JobManager, JobSpec, connect
from headrace.manager import Matching, Progress
from headrace.model import State

KILLS = 3
CARRIER = """
import asyncio, sys
from headrace import connect
from headrace.manager.upkeep import carry_on_bulk_acts

async def main():
    async with await connect(sys.argv[1]) as manager:
        while True:
            done = await carry_on_bulk_acts(manager)
            if done.rest_seconds is None:
                return
            await asyncio.sleep(done.rest_seconds)

asyncio.run(main())
"""

T = TypeVar("T")


def on(url: str, work: Callable[[JobManager], Awaitable[T]]) -> T:
    async def run() -> T:
        async with await connect(url) as manager:
            return await work(manager)

    return asyncio.run(run())


async def fill(manager: JobManager, count: int) -> str:
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        await manager.submit_many([JobSpec(type="t", max_attempts=1) for _ in range(size)])
    await manager.cancel_matching(Matching(states=["pending"]))
    return (await manager.start_bulk("redrive", Matching(states=["cancelled"]))).id


def killed_and_seen_through(url: str, count: int) -> None:
    act_id = on(url, lambda manager: fill(manager, count))
    for kill in range(KILLS):
        carrier = subprocess.Popen([sys.executable, "-c", CARRIER, url], env=dict(os.environ))
        try:
            _wait_for(url, act_id, count * (kill + 1) // (KILLS + 2), carrier)
        finally:
            carrier.send_signal(signal.SIGKILL)
            carrier.wait()
    told = on(url, lambda manager: manager.bulk_act(act_id))
    assert told.progress is Progress.RUNNING, "it was through before it was killed so often"
    subprocess.run([sys.executable, "-c", CARRIER, url], env=dict(os.environ), check=True)

    async def check(manager: JobManager) -> None:
        told = await manager.bulk_act(act_id)
        assert (told.progress, told.done, dict(told.left)) == (Progress.DONE, count, {})
        states = (await manager.stats()).states
        assert (states[State.CANCELLED], states[State.PENDING]) == (count, count)
        made = [job.previous_id async for job in manager.find(states=["pending"])]
        assert len(set(made)) == len(made) == count

    on(url, check)


def _wait_for(url: str, act_id: str, done: int, carrier: subprocess.Popen[bytes]) -> None:
    """Until it has done so much: what comes after is cut off wherever it is."""

    async def look(manager: JobManager) -> None:
        end = time.monotonic() + 600
        while (await manager.bulk_act(act_id)).done < done:
            assert carrier.poll() is None, "it ended by itself"
            assert time.monotonic() < end
            await asyncio.sleep(0.002)

    on(url, look)


def test_a_redrive_killed_three_times_makes_each_job_once(tmp_path: object) -> None:
    killed_and_seen_through(f"sqlite:///{tmp_path}/jobs.db", 4000)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_redrive_of_100_000_killed_three_times_makes_each_job_once(store_url: str) -> None:
    if store_url.startswith("memory:"):
        pytest.skip("it dies with its process")
    killed_and_seen_through(store_url, 100_000)
