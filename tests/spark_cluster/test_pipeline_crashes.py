"""The real pipeline killed with kill -9 nine times while events keep coming: every table is exact after.

Eight of the kills fall into the commits, right before or right after one, so that silver's tables are left a
batch apart; the ninth anywhere, while tasks write. The seed is printed, and HEADRACE_SEED sets it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # comes with the wheel of the PostgreSQL server
import pytest
from deltalake import DeltaTable

from headrace import JobManager, JobSpec
from headrace.connect import open_store
from headrace.model import Event
from headrace.spark import pipeline
from headrace.spark.lake.gold import GOLD
from headrace.stores.base import EventQuery
from tests.spark.lakes import assert_exact, assert_gold_exact, differences, gold_rows
from tests.spark.wild import wild_on
from tests.stores.postgres import server as postgres

PROGRAM = Path(__file__).parent / "dying_pipeline.py"
BATCH_EVENTS = 400
BEHIND_EVENTS = 8 * BATCH_EVENTS
RUN_SECONDS_MAX = 240
ANY_TIME = "any time"
ANY_SECONDS = (5.0, 25.0)
"""Spark is up by then, and a run on a fast machine may be over."""

pytestmark = [pytest.mark.timeout(1200), pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres.running(durable=False) as server:
        yield postgres.Schemas(server).take()


def test_nine_kills_leave_every_table_exact(url: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("HEADRACE_SEED") or random.randrange(2**32))
    print(f"\nHEADRACE_SEED={seed}")
    dice = random.Random(seed)
    lake = tmp_path / "lake"
    asyncio.run(_begin(url, seed))
    points = [
        f"{when}:{table}:{dice.randrange(1, 4)}"
        for table in ("bronze/events", "silver/levels", "silver/attempts", "silver/jobs")
        for when in ("before", "after")
    ]
    # One of the eight dies in gold instead; which one of the others it replaces does not matter for them.
    points[dice.randrange(6)] = f"after:{dice.choice(GOLD).name}:1"
    dice.shuffle(points)
    points.insert(dice.randrange(9), ANY_TIME)
    codes: list[int] = []
    with _churn(url, seed):
        for point in points:
            started = time.monotonic()
            codes.append(_killed(point, url, lake, dice))
            print(f"{point}: killed after {time.monotonic() - started:.1f} s, {_told(lake)}")
    assert codes == [-signal.SIGKILL] * 9
    _run(url, lake)
    events = asyncio.run(_events(url))
    assert pipeline.status(lake).pending == 0
    assert_exact(lake, events)
    assert_gold_exact(lake, events)
    fresh = tmp_path / "fresh"
    _run(url, fresh)
    for table in GOLD:
        rows, again = (gold_rows(one, table) for one in (lake, fresh))
        assert rows, table.name
        assert differences(rows, again, table.key) == [], table.name
    print(f"{len(events)} events, {_told(lake)}: exact")


# --- the pipeline --------------------------------------------------------------------------------


def _start(point: str, url: str, lake: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, str(PROGRAM), point),
            *("--url", url, "--lake", str(lake)),
            *("--batch-events", str(BATCH_EVENTS), "--master", "local[2,3]"),
        ],
        stdout=subprocess.DEVNULL,
    )


def _run(url: str, lake: Path) -> None:
    """To its end."""
    process = _start("never", url, lake)
    try:
        assert process.wait(RUN_SECONDS_MAX) == 0
    finally:
        process.kill()


def _killed(point: str, url: str, lake: Path, dice: random.Random) -> int:
    """Run it until it dies at that point; its exit code."""
    if point != ANY_TIME:
        return _ended(point, url, lake, RUN_SECONDS_MAX)
    soonest, latest = ANY_SECONDS
    while (code := _ended("never", url, lake, seconds := dice.uniform(soonest, latest))) == 0:
        latest = seconds  # it was over before that: draw an earlier moment
    return code


def _ended(point: str, url: str, lake: Path, seconds: float) -> int:
    """The exit code of a run that is killed after so many seconds, if it has not ended by itself."""
    process = _start(point, url, lake)
    family: list[psutil.Process] = []
    ends = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < ends:
        try:
            family = psutil.Process(process.pid).children(recursive=True) or family
        except psutil.NoSuchProcess:
            break
        time.sleep(0.05)
    if process.poll() is None:
        process.kill()
        assert point == "never", f"{point} was not reached in {seconds:.0f} s"
    code = process.wait()
    # Its Java notices and ends by itself; two at once would make the machine slow, not the tables wrong.
    psutil.wait_procs(family, timeout=60)
    return code


def _told(lake: Path) -> str:
    def marks(name: str) -> int:
        path = str(lake / name)
        if not DeltaTable.is_deltatable(path):
            return -1
        found = DeltaTable(path).transaction_version("headrace batch")
        return -1 if found is None else found

    return ", ".join(
        f"{name} at batch {marks(name)}"
        for name in ("bronze/events", "silver/levels", "silver/attempts", "silver/jobs")
    )


# --- the store -----------------------------------------------------------------------------------


async def _begin(url: str, seed: int) -> None:
    """Enough for several batches in the first run."""
    store = await open_store(url, migrate=True)
    wild = await wild_on(store, seed)
    await wild.manager.submit_many([JobSpec(type="bulk", payload=n) for n in range(900)])
    for _ in range(4):
        wild.clock.advance(30)
        for job in await wild.manager.claim("early", limit=150):
            await wild.manager.complete(job.id, job.token, {"n": 1})
    await store.close()


@contextmanager
def _churn(url: str, seed: int) -> Iterator[None]:
    """Things keep happening in the store, by several workers at once, while the block lasts."""
    stop = threading.Event()
    failed: list[BaseException] = []

    async def worker(number: int) -> None:
        store = await open_store(url)
        wild = await wild_on(store, seed + number)
        wild.clock.advance(3600 * number)
        wild.made = 100_000 * number
        while not stop.is_set():
            if not await _is_far_behind(wild.manager):
                await wild.steps(10)
            await asyncio.sleep(0.05)
        await store.close()

    async def all_workers() -> None:
        await asyncio.gather(*(worker(number) for number in (1, 2, 3)))

    def run() -> None:
        try:
            asyncio.run(all_workers())
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


async def _is_far_behind(manager: JobManager) -> bool:
    """Whether the next run has its batches: on a slow machine it must not have ever more of them."""
    end = _seq(await manager.tail())
    return any(end - _seq(one.cursor) > BEHIND_EVENTS for one in await manager.readers())


def _seq(cursor: str) -> int:
    return int(cursor.rpartition(":")[2] or 0)


async def _events(url: str) -> list[Event]:
    store = await open_store(url)
    found: list[Event] = []
    while page := await store.events(EventQuery(after=found[-1].cursor if found else "")):
        found += page
    await store.close()
    return found
