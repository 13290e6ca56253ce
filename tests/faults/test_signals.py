"""What signals do to workers that run as processes, and what becomes of them without their supervisor."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from headrace.model import State
from tests.faults.plain import sleep
from tests.faults.processes import send
from tests.faults.supervised import supervised

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_handlers_finish_and_gives_back_the_rest(
    url: str, tmp_path: Path, number: signal.Signals
) -> None:
    async with supervised(url, tmp_path, "--concurrency", "2") as (workers, app):
        await app.submit_many([sleep.spec(2.0) for _ in range(20)])
        await workers.until_running(4)
        send(workers.pid, number)
        assert await workers.exit_code() == 0
        assert await workers.processes.leftovers() == []
        states = await workers.states()
        assert set(states) <= {State.COMPLETED, State.PENDING, State.RETRYING}
        assert 4 <= states[State.COMPLETED] < 20
        assert all(job.failures == 0 and job.losses == 0 for job in await workers.jobs())


async def test_handlers_that_outlast_the_grace_are_given_back(url: str, tmp_path: Path) -> None:
    async with supervised(url, tmp_path, "--grace", "1s") as (workers, app):
        await app.submit_many([sleep.spec(60.0) for _ in range(3)])
        await workers.until_running(3)
        send(workers.pid, signal.SIGTERM)
        assert await workers.exit_code() == 0
        jobs = await workers.jobs()
        assert [(job.state, job.failures, job.losses) for job in jobs] == [
            (State.RETRYING, 0, 0)
        ] * 3


async def test_a_second_signal_ends_at_once(url: str, tmp_path: Path) -> None:
    async with supervised(url, tmp_path) as (workers, app):
        await app.submit_many([sleep.spec(60.0) for _ in range(3)])
        await workers.until_running(3)
        send(workers.pid, signal.SIGTERM)
        await workers.until(lambda: "waits for" in workers.said)
        await asyncio.sleep(1.0)  # a second one, not an echo of the first
        began = time.monotonic()
        send(workers.pid, signal.SIGTERM)
        assert await workers.exit_code() == 1
        assert time.monotonic() - began < 5
        assert await workers.processes.leftovers() == []
        # As after a crash: their leases lapse, and others go on.
        assert await workers.states() == {State.RUNNING: 3}


async def test_workers_end_in_good_order_when_their_supervisor_is_killed(
    url: str, tmp_path: Path
) -> None:
    async with supervised(url, tmp_path, "--concurrency", "2") as (workers, app):
        await app.submit_many([sleep.spec(2.0) for _ in range(20)])
        await workers.until_running(4)
        send(workers.pid, signal.SIGKILL)
        assert await workers.exit_code() == -signal.SIGKILL
        assert await workers.processes.leftovers() == []
        states = await workers.states()
        assert set(states) <= {State.COMPLETED, State.PENDING, State.RETRYING}
        assert 4 <= states[State.COMPLETED] < 20


async def test_a_killed_worker_is_replaced(url: str, tmp_path: Path) -> None:
    async with supervised(url, tmp_path, "--concurrency", "2") as (workers, app):
        await app.submit_many([sleep.spec(0.5) for _ in range(20)])
        await workers.until_running(4)
        assignees = {job.assignee for job in await workers.jobs() if job.is_leased}
        assert len(assignees) == 2
        victim = min(name for name in assignees if name is not None)
        send(int(victim.split("-")[-2]), signal.SIGKILL)
        await workers.until_ended()
        jobs = await workers.jobs()
        assert {job.state for job in jobs} == {State.COMPLETED}
        assert sum(job.losses for job in jobs) == 2
        await workers.until(lambda: "ended with -9; another starts" in workers.said)
        send(workers.pid, signal.SIGTERM)
        assert await workers.exit_code() == 0
