"""How long `headrace list` takes, as a whole command, on a store with many jobs.

    python bench/listing.py --url 'sqlite:////tmp/listing-{n}.db'
    python bench/servers.py postgres bench/listing.py --jobs 300000
    python bench/servers.py redis bench/listing.py --jobs 300000

A third of the jobs is of each of three types, one after the other, so that the oldest type is the farthest
from where a list begins; with `--drain` so many have been worked on. Prints the best
of three of each command.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time

from headrace import JobSpec, connect
from headrace.manager import Completed

TYPES = ("mail", "bulk", "report")
STEP_JOBS = 10_000
COMMANDS = (
    ("list",),
    ("list", "--type", "mail"),
    ("list", "--type", "mail", "--limit", "1000"),
    ("list", "--type", "nothing"),
    ("list", "--queue", "nothing"),
    ("list", "--worker", "nobody"),
    ("list", "--worker", "w-0"),
    ("list", "--state", "completed", "--type", "mail"),
    ("list", "--state", "pending", "--type", "bulk"),
    ("list", "--tag", "customer=7"),
)


async def _fill(url: str, jobs: int, drain: int) -> None:
    async with await connect(url, migrate=True) as manager:
        start = time.perf_counter()
        for first in range(0, jobs, STEP_JOBS):
            await manager.submit_many(
                [
                    JobSpec(
                        type=TYPES[n * len(TYPES) // jobs],
                        tags=[f"customer={n % 1000}", "spring"],
                        payload={"n": n},
                    )
                    for n in range(first, min(first + STEP_JOBS, jobs))
                ]
            )
        submitted = time.perf_counter()
        print(f"submitted {jobs} in {submitted - start:.1f} s", flush=True)
        done = 0
        while done < drain and (held := await manager.claim("w-0", limit=500)):
            await manager.settle([Completed(job_id=job.id, token=job.token) for job in held])
            done += len(held)
        if done:
            print(f"worked on {done} in {time.perf_counter() - submitted:.1f} s", flush=True)


def _seconds(url: str, command: tuple[str, ...]) -> float:
    words = [sys.executable, "-m", "headrace.cli", "--url", url, *command]
    start = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ})
    return time.perf_counter() - start


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", required=True, help="with {n} where a number goes")
    options.add_argument("--jobs", type=int, default=300_000)
    options.add_argument("--drain", type=int, default=0, help="so many of them are worked on")
    given = options.parse_args()
    url = given.url.format(n=0)
    asyncio.run(_fill(url, given.jobs, given.drain))
    for command in COMMANDS:
        best = min(_seconds(url, command) for _ in range(3))
        print(f"{best:6.2f} s  headrace {' '.join(command)}", flush=True)


if __name__ == "__main__":
    main()
