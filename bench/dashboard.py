"""How long the server takes for a page of the dashboard, with few jobs and with many.

    python bench/dashboard.py --sizes 10000 1000000
    python bench/servers.py postgres bench/dashboard.py --sizes 10000 1000000

Each size is a store of its own: nine in ten jobs wait, the others have completed, failed for good or run out
of attempts. Measured is a whole answer of the application, without a network: reading, rendering, hashing.
With `--ratio-max` it ends with exit code 1 where the largest store takes more than so many times as long.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from headrace import JobManager, JobSpec, connect
from headrace.dashboard import pages
from headrace.manager import Completed, Failed
from headrace.model import Category, Failure
from headrace.server import create_app

PIECE = 10_000
ENDED_MAX = 20_000
"""So many are run; a store of many jobs is one in which most have not been."""
QUEUES = ("mail", "images", "imports", "reports", "billing")
ROUNDS = 60
WARM = 5


async def fill(manager: JobManager, size: int) -> str:
    """Up to `size` jobs; the id of one that has failed."""
    for start in range(0, size, PIECE):
        await manager.submit_many(
            [
                JobSpec(
                    type=f"type_{number % 12}",
                    queue=QUEUES[number % len(QUEUES)],
                    payload={"order": number, "note": "x" * 100},
                    tags=[f"customer={number % 1000}"],
                    max_attempts=1,
                )
                for number in range(start, min(start + PIECE, size))
            ]
        )
    one = ""
    ended = min(size // 10, ENDED_MAX)
    while ended > 0:
        jobs = await manager.claim("bench", limit=min(1000, ended))
        outcomes: list[Completed | Failed] = []
        for number, job in enumerate(jobs):
            if number % 5:
                outcomes.append(Completed(job_id=job.id, token=job.token, result=number, known=job))
                continue
            one = job.id
            failure = Failure(
                f"order {number} is unknown",
                Category.PERMANENT if number % 2 else Category.TEMPORARY,
                f"Error{number % 9}",
            )
            outcomes.append(Failed(job_id=job.id, token=job.token, failure=failure, known=job))
        await manager.settle(outcomes)
        ended -= len(jobs)
    while await manager.roll_up():
        pass
    return one


async def measure(manager: JobManager, job_id: str) -> Mapping[str, list[float]]:
    """Milliseconds of each page, warm."""
    places = {
        "overview": "/",
        "jobs": "/jobs",
        "jobs, dead": "/jobs?state=dead",
        "jobs, tag": "/jobs?tag=customer%3D7",
        "job": f"/job?id={job_id}",
        "errors": "/errors",
        "queue": "/queue?name=mail",
        "history": "/history?range=1h",
    }
    application = create_app(manager, open_to_all=True, pages=pages)
    found: dict[str, list[float]] = {}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application), base_url="http://localhost", timeout=600
    ) as client:
        for name, place in places.items():
            times = []
            for turn in range(ROUNDS + WARM):
                start = time.perf_counter()
                answer = await client.get(place, headers={"Headrace-Fragment": "main"})
                spent = (time.perf_counter() - start) * 1000
                if answer.status_code != 200:
                    raise SystemExit(f"{place} answered {answer.status_code}: {answer.text[:300]}")
                if turn >= WARM:
                    times.append(spent)
                if spent > 2000 and turn >= WARM:
                    break  # it is slow: that is known now
            found[name] = times
    await application.service.close()
    return found


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a store with {n} where each size gets a name of its own")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--ratio-max", type=float)
    arguments = parser.parse_args()
    results: dict[int, Mapping[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes:
            default = f"sqlite:///{Path(folder) / 'jobs-{n}.db'}?synchronous=normal"
            url = (arguments.url or default).replace("{n}", str(size))
            async with await connect(url) as manager:
                start = time.monotonic()
                one = await fill(manager, size)
                print(f"{size:,} jobs stored in {time.monotonic() - start:.0f} s", flush=True)
                results[size] = await measure(manager, one)
    names = results[arguments.sizes[0]]
    print(f"{'page':12}" + "".join(f"{size:>22,}" for size in results) + f"{'ratio':>8}")
    worst = 0.0
    for name in names:
        cells = "".join(
            f"{statistics.median(times[name]):9.1f} {p95(times[name]):9.1f} ms"
            for times in results.values()
        )
        medians = [statistics.median(times[name]) for times in results.values()]
        ratio = medians[-1] / medians[0]
        worst = max(worst, ratio)
        print(f"{name:12}{cells}{ratio:8.1f}")
    print("each: median and 95th percentile")
    return int(arguments.ratio_max is not None and worst > arguments.ratio_max)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
