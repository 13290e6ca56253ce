"""What a batch costs: storing it, storing it again, counting how far it is, and working it off.

python bench/batches.py                                # memory and SQLite, 25,000 jobs
python bench/batches.py --jobs 100000
python bench/servers.py postgres bench/batches.py      # the servers that come with the development install
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from headrace import JobSpec, connect
from headrace.manager import Completed, JobManager

CLAIM_JOBS = 1000


async def measure(jobs: JobManager, count: int) -> None:
    specs = [JobSpec(type="row", payload=n) for n in range(count)]
    callback = JobSpec(type="sum")
    start = time.perf_counter()
    await jobs.submit_batch(specs, callback, batch_id="b")
    stored = time.perf_counter()
    again = await jobs.submit_batch(specs, callback, batch_id="b")
    assert again.created == 0
    repeated = time.perf_counter()
    assert (await jobs.batch("b")).total == count
    counted = time.perf_counter()
    worked = 0
    while claimed := await jobs.claim("w", limit=CLAIM_JOBS):
        done = [Completed(job_id=job.id, token=job.token, known=job) for job in claimed]
        await jobs.settle(done)
        worked += len(claimed)
    ended = time.perf_counter()
    assert (await jobs.batch("b")).completed == count
    print(
        f"{jobs.capabilities.name:<11} {count:,} jobs: stored {stored - start:.2f} s, "
        f"stored again {repeated - stored:.2f} s, counted {(counted - repeated) * 1000:.0f} ms, "
        f"worked off {ended - counted:.2f} s ({worked - count} joins and callback)"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--url", action="append", help="an empty store ({n} becomes a number); may be repeated"
    )
    parser.add_argument("--jobs", type=int, default=25_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = given.url or ["memory:", f"sqlite:///{Path(folder) / 'jobs.db'}"]
        for number, url in enumerate(urls):
            async with await connect(url.replace("{n}", str(number))) as jobs:
                await measure(jobs, given.jobs)


if __name__ == "__main__":
    asyncio.run(main())
