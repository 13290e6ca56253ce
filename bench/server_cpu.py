"""What a job costs the server of PostgreSQL or Redis, step by step: CPU and WAL, whatever else runs.

    python bench/servers.py postgres bench/server_cpu.py
    python bench/servers.py redis bench/server_cpu.py
    python bench/servers.py postgres bench/server_cpu.py --jobs 50000 --batch 100 --rounds 5

CPU time is that of the server's processes, as the kernel counts it (Linux): it depends less on what else
runs than time on the clock, so that one change at a time can be measured. The median of the rounds is
printed. The first is not counted: the server's caches and the planner's are cold.

    --alter 'DROP INDEX headrace.events_of_job'     what does this index cost?
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

import asyncpg
from redis.asyncio import Redis

from headrace import JobSpec, connect
from headrace.manager import Completed, JobManager
from headrace.model import Job
from tests.stores.postgres.server import without_schema

SUBMIT_BATCH = 1000
ALONE_MAX = 2000


class Cost(NamedTuple):
    """Of one step, for each job."""

    server_us: float
    """CPU of all processes of the server."""
    python_us: float
    wal_bytes: float
    per_second: float


class Counters(Protocol):
    """What a server says of itself."""

    async def read(self) -> tuple[float, int]:
        """CPU seconds of its processes, and bytes of WAL."""
        ...

    async def close(self) -> None: ...


class PostgresCounters:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def read(self) -> tuple[float, int]:
        wal, pid = await self._connection.fetchrow(
            "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, pg_backend_pid()"
        )
        return _server_seconds(pid), wal

    async def alter(self, url: str, statement: str) -> None:
        schema = dict(parse_qsl(urlsplit(url).query))["schema"]
        await self._connection.execute(statement.replace("headrace.", f"{schema}."))

    async def close(self) -> None:
        await self._connection.close()


class RedisCounters:
    """It has no log of its own to count here: what the append-only file takes is in its CPU time."""

    def __init__(self, client: Redis, pid: int) -> None:
        self._client = client
        self._pid = pid

    async def read(self) -> tuple[float, int]:
        return _cpu_seconds(str(self._pid)), 0

    async def close(self) -> None:
        await self._client.aclose()


class Meter:
    """Reads the server's counters around a step."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.steps: dict[str, list[Cost]] = {}

    @asynccontextmanager
    async def step(self, name: str, jobs: int) -> AsyncIterator[None]:
        server, python, wal, began = await self._now()
        yield
        server_end, python_end, wal_end, ended = await self._now()
        self.steps.setdefault(name, []).append(
            Cost(
                (server_end - server) / jobs * 1e6,
                (python_end - python) / jobs * 1e6,
                (wal_end - wal) / jobs,
                jobs / (ended - began),
            )
        )

    async def _now(self) -> tuple[float, float, int, float]:
        server, wal = await self._counters.read()
        return server, time.process_time(), wal, time.perf_counter()


def _server_seconds(backend: int) -> float:
    """CPU seconds of all processes that the parent of this one has started and that still run."""
    postmaster = _parent(backend)
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text("ascii").split()
    return sum(map(_cpu_seconds, children))


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


def _cpu_seconds(pid: str) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9
    except FileNotFoundError:  # it has ended
        return 0.0


async def submit_many(manager: JobManager, jobs: int) -> None:
    for first in range(0, jobs, SUBMIT_BATCH):
        await manager.submit_many(
            [JobSpec(type="noop", payload={"n": first + n}) for n in range(SUBMIT_BATCH)]
        )


async def submit_alone(manager: JobManager, jobs: int) -> None:
    for n in range(jobs):
        await manager.submit(JobSpec(type="noop", payload={"n": n}))


async def drain(manager: JobManager, meter: Meter, jobs: int, batch: int) -> None:
    """Claims first, so that each step is measured by itself; no batch waits for the disk alone."""
    claimed: list[Job] = []
    async with meter.step("claim", jobs):
        while taken := await manager.claim("bench-worker-1", limit=batch, lease_seconds=600):
            claimed += taken
    assert len(claimed) == jobs, (len(claimed), jobs)
    async with meter.step("complete", jobs):
        for first in range(0, jobs, batch):
            settled = await manager.settle(
                [
                    Completed(job_id=job.id, token=job.token, known=job)
                    for job in claimed[first : first + batch]
                ]
            )
            assert not any(isinstance(one, Exception) for one in settled.outcomes)


async def measure(
    url: str, jobs: int, batch: int, rounds: int, alter: Sequence[str]
) -> dict[str, list[Cost]]:
    counters: PostgresCounters | RedisCounters
    if url.startswith("redis"):
        client = Redis.from_url(url.partition("?")[0])
        counters = RedisCounters(client, (await client.info("server"))["process_id"])
    else:
        counters = PostgresCounters(await asyncpg.connect(without_schema(url)))
    try:
        async with await connect(url) as manager:
            for statement in alter:
                assert isinstance(counters, PostgresCounters), (
                    "only PostgreSQL has a schema to alter"
                )
                await counters.alter(url, statement)
            meter = Meter(counters)
            for counted in [False, *[True] * rounds]:
                async with meter.step(f"submit, {SUBMIT_BATCH} each", jobs):
                    await submit_many(manager, jobs)
                await drain(manager, meter, jobs, batch)
                alone = min(jobs, ALONE_MAX)
                async with meter.step("submit, one by one", alone):
                    await submit_alone(manager, alone)
                while claimed := await manager.claim("bench-worker-1", limit=1000):
                    await manager.settle(
                        [Completed(job_id=job.id, token=job.token, known=job) for job in claimed]
                    )
                if not counted:
                    meter.steps.clear()
    finally:
        await counters.close()
    return meter.steps


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", required=True, help="bench/servers.py gives it")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=100, help="of claims and completions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--alter",
        action="append",
        default=[],
        help="a statement that changes the schema first, to see what a part of it costs",
    )
    chosen = parser.parse_args(arguments)
    url = chosen.url.replace("{n}", "1")
    steps = asyncio.run(measure(url, chosen.jobs, chosen.batch, chosen.rounds, chosen.alter))
    print("| step | server µs/job | least | Python µs/job | WAL bytes/job | jobs/s |")
    print("|---|---|---|---|---|---|")
    for name, costs in steps.items():
        server, python, wal, rate = (
            statistics.median(values) for values in zip(*costs, strict=True)
        )
        least = min(cost.server_us for cost in costs)
        print(f"| {name} | {server:.1f} | {least:.1f} | {python:.1f} | {wal:,.0f} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
