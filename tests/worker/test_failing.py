"""A worker that an error ends gives its jobs back, and one that meets an error goes on where it can."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from headrace import Headrace, Policy, State, lifecycle
from headrace.app import Observer
from headrace.spec import draft
from headrace.stores.base import Insertion
from headrace.worker import Settings, Worker
from tests.worker.running import PATIENCE_SECONDS, reached, until, working


class Breaks(Observer):
    """Raises in a verb of the store, as a driver with a defect would, so often once it is on."""

    def __init__(self, name: str, times: int) -> None:
        self.name = name
        self.times = times
        self.is_on = False
        self.seen = Counter[str]()

    def verb(self, name: str) -> AbstractContextManager[object]:
        self.seen[name] += 1
        if self.is_on and name == self.name and self.times > 0:
            self.times -= 1
            raise RuntimeError(f"a defect in {name}")
        return nullcontext()


async def test_a_worker_that_an_error_ends_gives_its_jobs_back(store_url: str) -> None:
    breaks = Breaks("claim", 1000)
    app = Headrace(store_url, observers=[breaks])
    began = []

    @app.task
    async def work() -> None:
        began.append(1)
        await asyncio.sleep(60)

    async with app:
        jobs = await app.submit_many([work.spec() for _ in range(4)])
        worker = Worker(app, Settings(concurrency=10, poll_seconds=0.1, grace_seconds=30))
        running = asyncio.create_task(worker.run())
        await until(lambda: len(began) == 4)
        breaks.is_on = True
        with pytest.raises(RuntimeError, match="a defect in claim"):
            await asyncio.wait_for(running, PATIENCE_SECONDS)
        assert worker.is_stopping
        ended = await (await app.manager()).get_many([job.id for job in jobs])
    assert [job.state for job in ended] == [State.RETRYING] * 4
    assert all(job.failures == job.losses == 0 for job in ended)
    assert not [one for one in threading.enumerate() if one.name == "headrace-keeper"]


@pytest.mark.parametrize("times", [1, 7])
async def test_a_commit_that_fails_oddly_is_tried_again_and_ends_nothing(times: int) -> None:
    breaks = Breaks("commit", times)
    app = Headrace("memory:", observers=[breaks])

    @app.task
    async def work(n: int) -> int:
        return n

    async with app, working(app) as worker:
        breaks.is_on = True
        jobs = await app.submit_many([work.spec(n) for n in range(3)])
        for job in jobs:
            await reached(app, job, State.COMPLETED)
        assert not worker.is_stopping
        assert [await app.result(job) for job in jobs] == [0, 1, 2]


async def test_a_backoff_by_a_newer_version_ends_no_worker(store_url: str) -> None:
    """Stored while this one runs: in a rolling upgrade, for example."""
    app = Headrace(store_url)

    @app.task(max_attempts=2)
    async def bad() -> None:
        raise ValueError("no")

    @app.task
    async def good(n: int) -> int:
        return n

    async with app:
        manager = await app.manager()
        async with working(app) as worker:
            await _store_with_backoff(app, "odd", b'{"kind":"fibonacci"}')
            jobs = await app.submit_many([good.spec(n) for n in range(5)])
            ended = [await reached(app, job, State.COMPLETED) for job in jobs]
            odd = await reached(app, await manager.get("odd"), State.RETRYING, State.DEAD)
            assert not worker.is_stopping
    assert odd.failures == 1
    assert all(job.attempt == 1 for job in ended)


async def _store_with_backoff(app: Headrace, job_id: str, backoff_json: bytes) -> None:
    manager = await app.manager()
    now = manager.clock.now()
    spec = app.tasks["bad"].options(id=job_id).spec()
    drafted = draft(spec, Policy(), now, tenant="default")
    job, event = lifecycle.submit(replace(drafted, backoff_json=backoff_json))
    await manager.store.insert(Insertion(jobs=[job], events=[event], now=now))


async def test_drain_keeps_its_leases(store_url: str) -> None:
    app = Headrace(store_url)
    runs = []

    @app.task(lease=0.6, max_attempts=5)
    async def slow() -> str:
        runs.append(1)
        await asyncio.sleep(1.5)
        return "done"

    @app.task(lease=0.6, max_attempts=5)
    def blocking() -> str:
        runs.append(1)
        time.sleep(1.5)
        return "done"

    async with app:
        jobs = [await slow.submit(), await blocking.submit()]
        assert await Worker(app).drain() == 2
        manager = await app.manager()
        ended = await manager.get_many([job.id for job in jobs])
    assert [(job.state, job.attempt, job.losses) for job in ended] == [(State.COMPLETED, 1, 0)] * 2
    assert len(runs) == 2


async def test_a_short_drain_connects_once() -> None:
    """The heartbeats' own connection is only opened when there will be heartbeats."""
    opened = []

    class Counted(Headrace):
        async def connect(self, store: object = None) -> object:  # type: ignore[override]
            opened.append(1)
            return await super().connect(store)  # type: ignore[arg-type]

    app = Counted("memory:")

    @app.task
    async def work() -> None: ...

    async with app:
        await work.submit()
        assert await Worker(app).drain() == 1
    assert len(opened) == 1


MODULE = """
import time
from headrace import Headrace
from headrace.app import Observer

class Breaks(Observer):
    def verb(self, name):
        if name == "claim" and BEGAN:
            raise RuntimeError("a defect in claim")
        return __import__("contextlib").nullcontext()

BEGAN = []
app = Headrace("sqlite:///jobs.db", observers=[Breaks()])

@app.task
def work():
    BEGAN.append(1)
    time.sleep(300)
"""


def test_a_process_whose_worker_an_error_ends_says_so_and_is_gone(tmp_path: Path) -> None:
    """Also where a handler in a thread cannot be stopped: Python alone would wait for it."""
    (tmp_path / "jobs.py").write_text(MODULE)
    program = [sys.executable, "-m", "headrace.cli"]
    subprocess.run(
        [*program, "submit", "work", "--url", "sqlite:///jobs.db"], cwd=tmp_path, check=True
    )
    ended = subprocess.run(
        [*program, "worker", "jobs:app", "--poll", "100ms"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 1
    assert "ends by an error, exit code 1" in ended.stderr
    assert "a defect in claim" in ended.stderr
