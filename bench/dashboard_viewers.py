"""What open dashboards cost the queue, and how soon they see a change.

    python bench/dashboard_viewers.py --viewers 20

A real server and a real worker, each a process of its own, on one SQLite file. Rounds with and without
viewers alternate: the ratio is that of their medians. A viewer does what a page does: it holds the stream of
changes, and asks for its own content again when something has changed, once a second at most. They are
clients in this process, which costs the machine as well; a browser would cost another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from headrace import JobManager, JobSpec, connect

JOBS = 4000
ROUNDS = 5
PLACES = ("/", "/jobs", "/queues", "/history?range=1h")
APP = """
from headrace import Headrace
app = Headrace()

@app.task(name="nothing")
async def nothing() -> None:
    pass
"""


async def drained(manager: JobManager) -> float:
    """Jobs a second, from the first that completes to the last."""
    before = (await manager.stats(queues=["default"])).states["completed"]  # type: ignore[index]
    await manager.submit_many([JobSpec(type="nothing")] * JOBS)
    start = time.monotonic()
    while True:
        states = (await manager.stats(queues=["default"])).states
        if states["completed"] - before >= JOBS:  # type: ignore[index]
            return JOBS / (time.monotonic() - start)
        await asyncio.sleep(0.05)


async def view(client: httpx.AsyncClient, place: str, looks: list[int]) -> None:
    """One page that somebody has open."""
    stale = asyncio.Event()
    place_of = [""]

    async def listen() -> None:
        async with client.stream("GET", "/changes", timeout=None) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("id: "):
                    place_of[0] = line.removeprefix("id: ")
                elif line.startswith("event: changed"):
                    stale.set()

    listening = asyncio.create_task(listen())
    tag = ""
    try:
        while True:
            await stale.wait()
            stale.clear()
            headers = {
                "Headrace-Fragment": "main",
                "If-None-Match": tag,
                "Headrace-Seen": place_of[0],
            }
            answer = await client.get(place, headers=headers)
            tag = answer.headers.get("etag", tag)
            looks.append(answer.status_code)
            await asyncio.sleep(1.0)
    finally:
        listening.cancel()


async def seen(manager: JobManager, client: httpx.AsyncClient) -> Sequence[float]:
    """Milliseconds from a commit to an answer that shows it, for a page that was at rest."""
    told: asyncio.Queue[str] = asyncio.Queue()

    async def listen() -> None:
        async with client.stream("GET", "/changes", timeout=None) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: {") and "jobs" in line:
                    for job_id in json.loads(line.removeprefix("data: "))["jobs"] or ():
                        told.put_nowait(job_id)

    listening = asyncio.create_task(listen())
    await asyncio.sleep(1.0)
    times = []
    for _ in range(40):
        job = (await manager.submit(JobSpec(type="watched", queue="other"))).job
        start = time.monotonic()
        while await told.get() != job.id:
            pass
        answer = await client.get("/jobs", headers={"Headrace-Fragment": "main"})
        assert job.id in answer.text
        times.append((time.monotonic() - start) * 1000)
        await asyncio.sleep(0.05)
    listening.cancel()
    return times


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'jobs.db'}"
        (Path(folder) / "nothing_app.py").write_text(APP)
        program = [sys.executable, "-m", "headrace.cli"]
        server = subprocess.Popen(
            [*program, "serve", url, "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        worker = subprocess.Popen(
            [*program, "--url", url, "worker", "nothing_app:app"],
            cwd=folder,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None
            limits = httpx.Limits(max_connections=None)
            async with (
                await connect(url) as manager,
                httpx.AsyncClient(base_url=address[0], limits=limits, timeout=30) as client,
            ):
                await drained(manager)
                rates: dict[int, list[float]] = {0: [], arguments.viewers: []}
                looks: list[int] = []
                for _ in range(ROUNDS):
                    for viewers, found in rates.items():
                        views = [
                            asyncio.create_task(view(client, PLACES[one % len(PLACES)], looks))
                            for one in range(viewers)
                        ]
                        await asyncio.sleep(1.0)
                        found.append(await drained(manager))
                        for one in views:
                            one.cancel()
                times = sorted(await seen(manager, client))
        finally:
            for process in (worker, server):
                process.terminate()
                process.wait()
    without, with_them = (statistics.median(found) for found in rates.values())
    print(
        f"without viewers {without:,.0f} jobs/s, with {arguments.viewers} {with_them:,.0f} jobs/s: ratio "
        f"{with_them / without:.2f} ({len(looks)} looks)"
    )
    print(
        f"a change is seen after {statistics.median(times):.0f} ms (median), "
        f"{times[-1]:.0f} ms (slowest of {len(times)})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
