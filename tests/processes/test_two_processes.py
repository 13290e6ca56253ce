"""Several processes on one store: every job is completed once, and no lock error reaches a caller."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from headrace import JobSpec, State, connect
from headrace.stores.base import EventQuery

JOBS = 20_000

WORKER = """
import asyncio, sys
from headrace import connect
from headrace.manager import Completed

async def main(url, name):
    done = 0
    async with await connect(url) as manager:
        while jobs := await manager.claim(name, limit=100):
            settled = await manager.settle(
                [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
            )
            for outcome in settled.outcomes:
                if isinstance(outcome, Exception):
                    raise outcome
            done += len(jobs)
    print(done)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.timeout(300)
def test_two_processes_drain_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"

    async def fill() -> None:
        async with await connect(url) as manager:
            for first in range(0, JOBS, 1000):
                await manager.submit_many(
                    [JobSpec(type="t", id=f"j{first + n}") for n in range(1000)]
                )

    asyncio.run(fill())
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, url, f"w{n}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    outputs = [worker.communicate(timeout=240) for worker in workers]
    for worker, (_, err) in zip(workers, outputs, strict=True):
        assert worker.returncode == 0, err
        assert "locked" not in err
    counts = [int(out) for out, _ in outputs]
    assert sum(counts) == JOBS
    assert min(counts) > 0, "one process did all the work"

    async def check() -> None:
        async with await connect(url) as manager:
            stats = await manager.stats()
            assert stats.states[State.COMPLETED] == JOBS
            kinds: Counter[tuple[str, str]] = Counter()
            cursor = ""
            while events := await manager.store.events(EventQuery(after=cursor, limit=10_000)):
                kinds.update((event.job_id, event.kind) for event in events)
                cursor = events[-1].cursor
            assert len(kinds) == 3 * JOBS
            assert set(kinds.values()) == {1}

    asyncio.run(check())
