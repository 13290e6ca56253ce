"""An enrichment whose driver is killed with kill -9: called again, it runs only what was not done."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # comes with the wheel of the PostgreSQL server
import pytest

from headrace import State, connect
from headrace.model import EventKind
from headrace.stores.base import EventQuery
from tests.stores.postgres import server as postgres

ROWS = 400
PROGRAM = """
import asyncio, json, sys
from headrace import Headrace, Policy, WorkerSettings
from headrace.spark import enrich, session

app = Headrace(sys.argv[1], policies=Policy(lease_seconds=2.0))

@app.task
async def double(n: int) -> int:
    await asyncio.sleep(0.2)
    return 2 * n

@app.task
async def double_all(rows: list[dict[str, int]]) -> list[int]:
    await asyncio.sleep(0.2)
    return [2 * row["n"] for row in rows]

if __name__ == "__main__":
    size = int(sys.argv[2])
    spark = session(master="local[2,3]", config={"spark.sql.shuffle.partitions": "2"})
    df = spark.createDataFrame([(n,) for n in range(400)], "n int")
    rows = enrich(
        df,
        double if size == 1 else double_all,
        key="n",
        batch_size=size,
        name="crashed",
        schema="int",
        workers=WorkerSettings(concurrency=10 if size == 1 else 3, poll_seconds=0.2),
        poll_seconds=0.2,
    ).collect()
    print(json.dumps(sorted((row["n"], row["result"]) for row in rows)))
    spark.stop()
"""

pytestmark = [pytest.mark.timeout(500), pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def schemas() -> Iterator[postgres.Schemas]:
    with postgres.running(durable=False) as url:
        yield postgres.Schemas(url)


def start(program: Path, url: str, size: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(program), url, str(size)],
        cwd=program.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """The driver, its JVM and the Python of its tasks, at once."""
    family = [
        process.pid,
        *(one.pid for one in psutil.Process(process.pid).children(recursive=True)),
    ]
    for pid in family:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.communicate()


async def until_completed(url: str, jobs: int) -> int:
    async with asyncio.timeout(200):
        while True:
            async with await connect(url) as manager:
                done = (await manager.stats()).states[State.COMPLETED]
            if done >= jobs:
                return done
            await asyncio.sleep(0.1)


async def history(url: str) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    async with await connect(url) as manager:
        cursor = ""
        while events := await manager.store.events(EventQuery(after=cursor, limit=10_000)):
            counts.update((event.job_id, event.kind) for event in events)
            cursor = events[-1].cursor
    return counts


@pytest.mark.parametrize("size", [1, 10])
def test_a_killed_enrichment_goes_on_where_it_was(
    schemas: postgres.Schemas, tmp_path: Path, size: int
) -> None:
    url = schemas.take()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    first = start(program, url, size)
    try:
        asyncio.run(until_completed(url, ROWS // size // 4))
    finally:
        kill(first)
    before = asyncio.run(history(url))
    done = {job for job, kind in before if kind == EventKind.COMPLETED}
    assert len(done) < sum(kind == EventKind.ENQUEUED for _, kind in before)

    second = start(program, url, size)
    try:
        out, _ = second.communicate(timeout=250)
    finally:
        if second.poll() is None:
            kill(second)
    assert second.returncode == 0
    assert out.strip() == str([[n, 2 * n] for n in range(ROWS)])

    after = asyncio.run(history(url))
    jobs = {job for job, kind in after if kind == EventKind.ENQUEUED}
    assert {after[job, EventKind.COMPLETED] for job in jobs} == {1}
    assert {after[job, EventKind.ENQUEUED] for job in jobs} == {1}
    # What had ended before was not touched again; only what was running then ran twice.
    assert {after[job, EventKind.LEASED] for job in done} == {1}
    lost = sum(times for (_, kind), times in after.items() if kind == EventKind.LOST)
    assert sum(times for (_, kind), times in after.items() if kind == EventKind.LEASED) == (
        len(jobs) + lost
    )
    if size == 1:
        assert len(jobs) == ROWS
