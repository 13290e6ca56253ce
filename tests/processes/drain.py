"""Several worker processes drain one store: every job is completed exactly once, and claims stay quick.

python -m tests.processes.drain --url sqlite:////tmp/drain.db --jobs 20000 --processes 2
python bench/servers.py postgres tests/processes/drain.py --jobs 50000 --processes 10 --p99-max 100
python bench/servers.py redis tests/processes/drain.py --jobs 50000 --processes 10 --p99-max 100
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from headrace import JobManager, JobSpec, State, connect
from headrace.manager import Completed
from headrace.stores.base import EventQuery

BATCH = 20
IDLE_ROUNDS = 20
"""A claim may come back empty while others hold what is left: a worker looks this often before it ends."""


class Worked(msgspec.Struct):
    """What one process did."""

    completed: list[str]
    claim_seconds: list[float]


class Proof(msgspec.Struct):
    """What all of them did, once it has been checked."""

    jobs: int
    seconds: float
    shares: list[int]
    claim_ms_p50: float
    claim_ms_p99: float


async def work(url: str, name: str) -> Worked:
    """Claim and complete until nothing is left."""
    worked = Worked([], [])
    async with await connect(url) as manager:
        idle = 0
        while idle < IDLE_ROUNDS:
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
            for outcome in settled.outcomes:
                if isinstance(outcome, Exception):
                    raise outcome
            worked.completed += [job.id for job in jobs]
    return worked


async def prove(url: str, jobs: int, processes: int) -> Proof:
    """Raises if any job was not completed exactly once, by the workers' word and by the log's."""
    async with await connect(url) as manager:
        ids: set[str] = set()
        for first in range(0, jobs, 1000):
            specs = [JobSpec(type="t", payload=first) for _ in range(min(1000, jobs - first))]
            ids |= {job.id for job in (await manager.submit_many(specs)).jobs}
        start = time.perf_counter()
        answers = await asyncio.gather(*(in_process(url, f"w{n}") for n in range(processes)))
        seconds = time.perf_counter() - start
        counts = Counter(job_id for one in answers for job_id in one.completed)
        assert set(counts) == ids
        assert set(counts.values()) == {1}
        assert (await manager.stats()).states[State.COMPLETED] == jobs
        assert set((await _events(manager)).values()) == {1}
    claims = sorted(spent for one in answers for spent in one.claim_seconds)
    return Proof(
        jobs=jobs,
        seconds=seconds,
        shares=[len(one.completed) for one in answers],
        claim_ms_p50=claims[len(claims) // 2] * 1000,
        claim_ms_p99=claims[int(len(claims) * 0.99)] * 1000,
    )


async def in_process(url: str, name: str) -> Worked:
    """A process of its own; whatever it writes to its error stream is a failure."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__)), "--url", url, "--work", name]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return msgspec.json.decode(out, type=Worked)


async def _events(manager: JobManager) -> Counter[tuple[str, str]]:
    """How often each kind of event was written for each job."""
    kinds: Counter[tuple[str, str]] = Counter()
    cursor = ""
    while events := await manager.store.events(EventQuery(after=cursor, limit=10_000)):
        kinds.update((event.job_id, event.kind) for event in events)
        cursor = events[-1].cursor
    return kinds


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", required=True, help="an empty store")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--p99-max", type=float, help="fail if the p99 of claims is above so many ms"
    )
    parser.add_argument("--work", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    url = chosen.url.replace("{n}", "1")
    if chosen.work:
        worked = asyncio.run(work(url, chosen.work))
        sys.stdout.write(msgspec.json.encode(worked).decode())
        return
    proof = asyncio.run(prove(url, chosen.jobs, chosen.processes))
    sys.stdout.write(
        f"{proof.jobs:,} jobs, {chosen.processes} processes ({min(proof.shares):,} to "
        f"{max(proof.shares):,} jobs each): each completed exactly once, in {proof.seconds:.1f} s; "
        f"claim p50 {proof.claim_ms_p50:.1f} ms, p99 {proof.claim_ms_p99:.1f} ms\n"
    )
    if chosen.p99_max is not None and proof.claim_ms_p99 > chosen.p99_max:
        sys.exit(f"claim p99 {proof.claim_ms_p99:.1f} ms is above {chosen.p99_max:g} ms")


if __name__ == "__main__":
    main()
