"""A fleet on a real standalone cluster: an executor is killed midway, and no job notices for long."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import JobManager, JobSpec, State, connect
from headrace.model import LEASED, TERMINAL, EventKind
from headrace.spark.fleet.names import place_of
from headrace.stores.base import EventQuery
from tests.spark_cluster.cluster import Cluster, running
from tests.stores.postgres import server as postgres

JOBS = 20_000
PIECE = 5_000
FEED = 500
LEASE_SECONDS = 4.0
CONCURRENCY = 50

MODULE = """
import asyncio
from headrace import Headrace

app = Headrace()

@app.task
async def short(n: int) -> int:
    await asyncio.sleep(0.02)
    return n
"""

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running(workers=2) as started:
        yield started


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres.running(durable=False) as started:
        yield started


class Driver:
    """`headrace fleet` as a process of its own, in a folder that has the application."""

    def __init__(self, cluster: Cluster, url: str, folder: Path, *options: str) -> None:
        (folder / "fleet_jobs.py").write_text(MODULE)
        self._log = (folder / "driver.log").open("w")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "headrace.cli", "fleet", "fleet_jobs:app"),
                *("--master", cluster.url, "--tasks", "2", "--name", "proof"),
                *("--concurrency", str(CONCURRENCY), "--poll", "0.2s", "--grace", "5s", "--json"),
                *("--conf", "spark.driver.host=127.0.0.1"),
                *("--conf", "spark.driver.bindAddress=127.0.0.1"),
                *("--conf", "spark.executor.memory=512m"),
                *options,
            ],
            cwd=folder,
            env={**os.environ, "HEADRACE_URL": url, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._path = folder / "driver.log"

    def end(self, seconds: float = 60) -> list[dict[str, object]]:
        """Wait for it; the lines that it printed."""
        out, _ = self.process.communicate(timeout=seconds)
        self._log.close()
        assert self.process.returncode == 0, self._path.read_text()
        return [json.loads(line) for line in out.splitlines()]

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def call(*words: str, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace.cli", *words],
        env={**os.environ, "HEADRACE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def submit(url: str, jobs: int) -> None:
    async with await connect(url) as manager:
        for first in range(0, jobs, PIECE):
            await manager.submit_many(
                [
                    JobSpec(type="short", payload={"n": n}, lease_seconds=LEASE_SECONDS)
                    for n in range(first, min(first + PIECE, jobs))
                ]
            )


async def until_completed(url: str, jobs: int, seconds: float = 120) -> None:
    async with await connect(url) as manager, asyncio.timeout(seconds):
        while await _completed(manager) < jobs:  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(0.2)


async def _completed(manager: JobManager) -> int:
    return (await manager.stats()).states[State.COMPLETED]


async def history(url: str) -> list[tuple[str, EventKind, str | None, bool, bool]]:
    """Of every event: job, kind, worker, whether it ends the job, whether it leaves a lease."""
    found = []
    async with await connect(url) as manager:
        cursor = ""
        while events := await manager.store.events(EventQuery(after=cursor, limit=10_000)):
            found += [
                (
                    event.job_id,
                    event.kind,
                    event.worker,
                    event.after in TERMINAL,
                    event.before in LEASED and event.after not in LEASED,
                )
                for event in events
            ]
            cursor = events[-1].cursor
    return found


async def feed_until_another_claims(url: str, known: set[str | None]) -> int:
    """How many more jobs it took: else the worker that is left might be done before its fellow is back."""
    submitted = 0
    async with await connect(url) as manager, asyncio.timeout(120):
        cursor = await manager.tail()
        while True:
            events = await manager.store.events(EventQuery(after=cursor, limit=10_000))
            if any(event.worker not in known for event in events if event.kind == "leased"):
                return submitted
            cursor = events[-1].cursor if events else cursor
            await submit(url, FEED)
            submitted += FEED
            await asyncio.sleep(0.25)


def test_an_executor_is_killed_and_every_job_has_one_outcome(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    asyncio.run(submit(url, JOBS))
    driver = Driver(cluster, url, tmp_path, "--drain")
    try:
        asyncio.run(until_completed(url, JOBS // 4))
        before = {worker for _, kind, worker, *_ in asyncio.run(history(url)) if kind == "leased"}
        killed = cluster.kill_executor()
        assert killed
        more = asyncio.run(feed_until_another_claims(url, before))
        lines = driver.end(180)
    finally:
        driver.kill()

    events = asyncio.run(history(url))
    ends = Counter(job for job, _, _, ends_job, _ in events if ends_job)
    assert len(ends) == JOBS + more
    assert set(ends.values()) == {1}
    assert {kind for _, kind, _, ends_job, _ in events if ends_job} == {EventKind.COMPLETED}
    leased = Counter(job for job, kind, *_ in events if kind is EventKind.LEASED)
    left = Counter(job for job, *_, leaves in events if leaves)
    assert leased == left, "a lease without an end, or an end without a lease"
    lost = sum(kind is EventKind.LOST for _, kind, *_ in events)
    # What the killed worker held, and no more, was lost.
    assert 0 < lost <= 3 * CONCURRENCY

    run = str(lines[-1]["run"])
    places = {place_of(worker, "proof", run) for _, kind, worker, *_ in events if kind == "leased"}
    assert {place.attempt for place in places if place is not None} == {0, 1}
    workers = lines[-1]["workers"]
    assert isinstance(workers, list)
    assert sum(one["completed"] for one in workers) == JOBS + more
    assert sum(one["lost"] for one in workers) == lost
    assert lines[-1]["state"] == "ended"


def test_the_stop_flag_drains_the_fleet(cluster: Cluster, url: str, tmp_path: Path) -> None:
    before = len(asyncio.run(history(url)))
    done = asyncio.run(_count(url))
    asyncio.run(submit(url, JOBS))
    driver = Driver(cluster, url, tmp_path)
    try:
        asyncio.run(until_completed(url, done + 1000))
        start = time.monotonic()
        stopped = call("fleet", "stop", "proof", "--wait", "30s", "--json", url=url)
        assert stopped.returncode == 0, stopped.stderr
        lines = driver.end()
        took = time.monotonic() - start
    finally:
        driver.kill()
    assert took < 40
    assert lines[-1]["state"] == "ended"
    events = asyncio.run(history(url))[before:]
    leased = Counter(job for job, kind, *_ in events if kind is EventKind.LEASED)
    left = Counter(job for job, *_, leaves in events if leaves)
    assert leased == left
    kinds = {kind for _, kind, *_, leaves in events if leaves}
    assert kinds <= {EventKind.COMPLETED, EventKind.RELEASED}
    assert asyncio.run(_count(url)) < done + JOBS


def test_a_driver_that_is_told_to_end_drains_its_fleet(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    done = asyncio.run(_count(url))
    driver = Driver(cluster, url, tmp_path)
    try:
        asyncio.run(until_completed(url, done + 200))
        driver.process.send_signal(signal.SIGTERM)
        lines = driver.end()
    finally:
        driver.kill()
    assert lines[-1]["state"] == "ended"

    async def held() -> int:
        async with await connect(url) as manager:
            states = (await manager.stats()).states
            return sum(states[state] for state in (*LEASED, State.LOST))

    assert asyncio.run(held()) == 0


def test_workers_drain_when_their_driver_is_killed(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    done = asyncio.run(_count(url))
    before = len(asyncio.run(history(url)))
    driver = Driver(cluster, url, tmp_path)
    try:
        asyncio.run(until_completed(url, done + 200))
        driver.process.kill()

        async def until_quiet() -> None:
            async with await connect(url) as manager, asyncio.timeout(60):
                while True:
                    states = (await manager.stats()).states
                    count = states[State.COMPLETED]
                    await asyncio.sleep(2)
                    states = (await manager.stats()).states
                    if not states[State.RUNNING] and states[State.COMPLETED] == count:
                        return

        asyncio.run(until_quiet())
    finally:
        driver.kill()
    events = asyncio.run(history(url))[before:]
    assert EventKind.LOST not in {kind for _, kind, *_ in events}


async def _count(url: str) -> int:
    async with await connect(url) as manager:
        return await _completed(manager)
