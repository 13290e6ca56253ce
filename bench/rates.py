"""How well rates are kept: asked and reached, by rate, burst, store and number of workers.

    python bench/rates.py                             # memory and SQLite
    python bench/servers.py postgres bench/rates.py   # the servers that come with the development install
    python bench/rates.py --rates 200/s:1 --workers 1 --seconds 10

Workers run on one event loop, each with its own connection, more jobs waiting than can start. `reached` is
by the times of the claims; `over` is the most by which any span had more starts than its burst and its
length allow (of spans as long as a whole number of tokens, at most 0); `verbs` is what all workers asked of
the store in a second.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from headrace.app import Context
from headrace.limits import QueueLimits, Rate
from headrace.worker import Settings, Worker

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.worker.counting import Counted

ASKED = ("5/s:1", "20/s:1", "50/s:1", "200/s:1", "50/s:5", "5/s", "20/s", "50/s", "200/s")
SPAN_SECONDS = 1.0


async def measure(url: str, rate: Rate, workers: int, seconds: float) -> str:
    starts: list[datetime] = []
    apps = [Counted(url) for _ in range(1 if url == "memory:" else workers)]
    for app in apps:

        @app.task(queue="paced")
        async def paced(ctx: Context) -> None:
            assert ctx.job.assigned_at is not None
            starts.append(ctx.job.assigned_at)

    first = await apps[0].manager()
    await first.set_limits("paced", QueueLimits(rate=rate))
    jobs = int(rate.capacity + 1.2 * seconds * rate.jobs / rate.per_seconds) + 10
    task = apps[0].tasks["paced"]
    for _ in range(0, jobs, 1000):
        await apps[0].submit_many([task.spec() for _ in range(min(jobs, 1000))])
    running = [
        Worker(apps[n % len(apps)], Settings(maintenance=False, grace_seconds=2.0))
        for n in range(workers)
    ]
    tasks = [asyncio.create_task(worker.run()) for worker in running]
    await asyncio.sleep(0.5)
    before = sum(app.verbs.total() for app in apps)
    await asyncio.sleep(seconds)
    verbs = sum(app.verbs.total() for app in apps) - before
    for worker in running:
        worker.stop()
    await asyncio.gather(*tasks)
    for app in apps:
        await app.close()
    return _line(sorted(starts), rate, verbs / seconds)


def _line(starts: Sequence[datetime], rate: Rate, verbs: float) -> str:
    """The first burst is what had been saved: the rate is what came after it."""
    asked = rate.jobs / rate.per_seconds
    times = [(start - starts[0]).total_seconds() for start in starts]
    later = times[rate.capacity - 1 :]
    reached = (len(later) - 1) / (later[-1] - times[0]) if len(later) > 1 else 0.0
    most = max(sum(1 for time in times if begin <= time < begin + SPAN_SECONDS) for begin in times)
    over = most - (rate.capacity + SPAN_SECONDS * asked)
    return f"{reached:8.1f}/s {reached / asked:6.1%}   over {over:+5.1f}   verbs {verbs:6.0f}/s"


def rate_of(text: str) -> Rate:
    jobs, _, burst = text.partition("/s:")
    return Rate(int(jobs.removesuffix("/s")), burst=int(burst) if burst else None)


async def run(url: str, rates: Sequence[str], workers: Sequence[int], seconds: float) -> None:
    print(f"{url.split(':', maxsplit=1)[0]}: {seconds:g} s each")
    number = 0
    for count in workers:
        for asked in rates:
            line = await measure(url.format(n=number), rate_of(asked), count, seconds)
            print(f"  {count} worker{'s' * (count > 1):<1}  {asked:<8} {line}", flush=True)
            number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--url", help="an empty store; {n} becomes a number")
    parser.add_argument("--rates", nargs="+", default=ASKED, help="jobs a second, `:burst`")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    logging.getLogger("headrace").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        urls = [given.url] if given.url else ["memory:", f"sqlite:///{folder}/{{n}}.db"]
        for url in urls:
            asyncio.run(run(url, given.rates, given.workers, given.seconds))


if __name__ == "__main__":
    main()
