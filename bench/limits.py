"""What limits cost: milliseconds per claim of a queue without limits, with them, and with many tenants.

    python bench/limits.py                            # memory and SQLite
    python bench/servers.py postgres bench/limits.py  # the servers that come with the development install
    python bench/limits.py --batch 100 --claims 50

Each claim is completed before the next. The limits are never reached: what is measured is the way through
the gate. Many tenants are the expensive case, since each of them is a lane that every claim looks at.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time

from headrace import JobSpec, connect
from headrace.limits import QueueLimits, Rate
from headrace.manager import Completed, JobManager

CASES: dict[str, tuple[QueueLimits | None, int]] = {
    "no limits, 1 tenant": (None, 1),
    "concurrency, 1 tenant": (QueueLimits(concurrency=10_000), 1),
    "rate, 1 tenant": (QueueLimits(rate=Rate(1_000_000)), 1),
    "no limits, 100 tenants": (None, 100),
    "turns, 100 tenants": (QueueLimits(fair=True), 100),
    "no limits, 1000 tenants": (None, 1000),
    "turns, 1000 tenants": (QueueLimits(fair=True), 1000),
}


async def measure(
    manager: JobManager, limits: QueueLimits | None, claims: int, batch: int
) -> float:
    """The median of so many claims, in milliseconds."""
    if limits is not None:
        await manager.set_limits("default", limits)
    spans = []
    for _ in range(claims):
        start = time.perf_counter()
        jobs = await manager.claim("w", limit=batch)
        spans.append(time.perf_counter() - start)
        assert len(jobs) == batch, len(jobs)
        await manager.settle([Completed(job_id=job.id, token=job.token, known=job) for job in jobs])
    return statistics.median(spans) * 1000


async def run(url: str, claims: int, batch: int) -> None:
    print(f"{url.split(':', maxsplit=1)[0]}: ms per claim of {batch}")
    for number, (name, (limits, tenants)) in enumerate(CASES.items()):
        async with await connect(url.format(n=number)) as manager:
            jobs = claims * batch
            specs = [JobSpec(type="noop", tenant=f"n{n % tenants}") for n in range(jobs)]
            for first in range(0, jobs, 1000):
                await manager.submit_many(specs[first : first + 1000])
            print(f"  {name:<26}{await measure(manager, limits, claims, batch):8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--url", help="an empty store; {n} becomes a number")
    parser.add_argument("--claims", type=int, default=200)
    parser.add_argument("--batch", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = [given.url] if given.url else ["memory:", f"sqlite:///{folder}/{{n}}.db"]
        for url in urls:
            asyncio.run(run(url, given.claims, given.batch))


if __name__ == "__main__":
    main()
