"""Many worker processes on one server: every job is completed exactly once. By hand:

python -m tests.stores.postgres.processes [jobs] [processes]
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence

import msgspec

from headrace.clock import StoreClock
from headrace.errors import HeadraceError
from headrace.manager import Completed, JobManager
from headrace.model import EventKind, State
from headrace.spec import JobSpec
from headrace.stores.base import EventQuery
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres import server

BATCH = 20


class Worked(msgspec.Struct):
    """What one process did."""

    completed: list[str]
    claim_seconds: list[float]


async def manager_on(url: str) -> JobManager:
    store = await PostgresStore.open(url, pool_size=2)
    return JobManager(store, clock=StoreClock(await store.now()))


async def work(url: str, name: str) -> Worked:
    """Claim and complete until nothing is left."""
    manager = await manager_on(url)
    worked = Worked([], [])
    idle = 0
    while idle < 20:
        start = time.perf_counter()
        jobs = await manager.claim(name, limit=BATCH)
        worked.claim_seconds.append(time.perf_counter() - start)
        if not jobs:
            idle += 1
            await asyncio.sleep(0.01)
            continue
        idle = 0
        settled = await manager.settle(
            [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
        )
        assert not any(isinstance(outcome, HeadraceError) for outcome in settled.outcomes)
        worked.completed += [job.id for job in jobs]
    await manager.close()
    return worked


async def prove(url: str, jobs: int, processes: int) -> list[float]:
    """The times of all claims, ordered. Raises if a job was not completed exactly once."""
    manager = await manager_on(url)
    ids: set[str] = set()
    for start in range(0, jobs, 1000):
        specs = [JobSpec(type="t", payload=start) for _ in range(min(1000, jobs - start))]
        ids |= {job.id for job in (await manager.submit_many(specs)).jobs}
    command = [sys.executable, "-W", "ignore", "-m", __spec__.name, "work", url]
    workers = [
        await asyncio.create_subprocess_exec(*command, f"w{number}", stdout=subprocess.PIPE)
        for number in range(processes)
    ]
    said = await asyncio.gather(*(worker.communicate() for worker in workers))
    worked = [msgspec.json.decode(out, type=Worked) for out, _ in said]
    counts = Counter(job_id for one in worked for job_id in one.completed)
    assert set(counts) == ids
    assert set(counts.values()) == {1}
    stats = await manager.stats()
    assert stats.states[State.COMPLETED] == stats.total == jobs
    assert await _events(manager) == dict.fromkeys(
        (EventKind.ENQUEUED, EventKind.LEASED, EventKind.COMPLETED), jobs
    )
    await manager.close()
    return sorted(seconds for one in worked for seconds in one.claim_seconds)


async def _events(manager: JobManager) -> dict[EventKind, int]:
    kinds: Counter[EventKind] = Counter()
    cursor = ""
    while events := await manager.store.events(EventQuery(after=cursor, limit=10_000)):
        kinds.update(event.kind for event in events)
        cursor = events[-1].cursor
    return dict(kinds)


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["work"]:
        worked = asyncio.run(work(arguments[1], arguments[2]))
        sys.stdout.write(msgspec.json.encode(worked).decode())
        return
    jobs, processes = (int(argument) for argument in [*arguments, "50000", "10"][:2])
    with server.running() as url:
        start = time.perf_counter()
        seconds = asyncio.run(prove(server.with_options(url, schema="many"), jobs, processes))
    sys.stdout.write(
        f"{jobs:,} jobs, {processes} processes, each completed exactly once in "
        f"{time.perf_counter() - start:.1f} s; claims p50 {seconds[len(seconds) // 2] * 1000:.1f} ms, "
        f"p99 {seconds[int(len(seconds) * 0.99)] * 1000:.1f} ms, most {seconds[-1] * 1000:.1f} ms\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
