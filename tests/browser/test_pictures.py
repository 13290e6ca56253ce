"""The pictures of the documentation: an hour of a small service, told to a store with a clock of its own.

    HEADRACE_PICTURES=docs/pictures python -m pytest tests/browser/test_pictures.py -m "long or not long"

draws them anew; otherwise they go to a folder of the test's own, so that it is known that they can be drawn.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from headrace.clock import ManualClock
from headrace.connect import connect
from headrace.limits import QueueLimits, Rate
from headrace.manager import Completed, JobManager
from headrace.model import Category, Dependency, DependencyKind
from headrace.policy import Policy
from headrace.retry import Exponential
from headrace.schedules import Cron, Every
from headrace.spec import JobSpec
from tests.browser.conftest import Browser, Site, free_port

MINUTES = 60
WORKERS = ("web-1.worker", "web-2.worker", "batch-1.worker")
TRACE = """Traceback (most recent call last):
  File "shop/mail.py", line 41, in send_receipt
    customer = customers.by_id(order.customer)
  File "shop/customers.py", line 88, in by_id
    raise UnknownCustomer(number)
shop.customers.UnknownCustomer: customer 4711 is unknown"""


async def an_hour(manager: JobManager, clock: ManualClock) -> dict[str, str]:
    """Up to now; the ids of jobs worth a picture."""
    dice = random.Random(3)
    await manager.set_limits("images", QueueLimits(concurrency=12, rate=Rate(20)))
    await manager.schedule(
        "nightly-report", Cron("0 3 * * *", "Europe/Berlin"), JobSpec(type="report")
    )
    await manager.schedule("poll-stock", Every(300), JobSpec(type="poll_stock", queue="imports"))
    ids = {"story": await _story(manager)}
    for minute in range(MINUTES):
        busy = 1.0 + 0.6 * (20 < minute < 38)
        for queue, type_, count in (
            ("mail", "send_receipt", 9),
            ("images", "resize", 6),
            ("imports", "import_feed", 2),
        ):
            number = int(count * busy * dice.uniform(0.7, 1.3))
            await manager.submit_many(
                [JobSpec(type=type_, queue=queue, payload={"order": dice.randrange(9000)})] * number
            )
        for _ in range(4):
            clock.advance(15)
            await _work(manager, clock, dice, slow=20 < minute < 38)
        await manager.maintain()
    await _left_over(manager, ids)
    await manager.maintain()
    return ids


async def _work(
    manager: JobManager, clock: ManualClock, dice: random.Random, *, slow: bool
) -> None:
    for worker in WORKERS:
        taken = await manager.claim_ahead(
            worker, limit=dice.randint(1, 3 if slow else 5), slots=8, busy=4
        )
        for job in taken.jobs:
            luck = dice.random()
            if job.type == "import_feed" and luck < 0.45:
                await manager.fail(
                    job.id, job.token, f"feed {dice.randrange(90)} answered 503", code="BadGateway"
                )
            elif luck < 0.012:
                await manager.fail(
                    job.id,
                    job.token,
                    f"customer {dice.randrange(9000)} is unknown",
                    code="UnknownCustomer",
                    category=Category.PERMANENT,
                )
            else:
                await manager.settle(
                    [Completed(job_id=job.id, token=job.token, result={"ok": True}, known=job)]
                )


async def _story(manager: JobManager) -> str:
    """One whose worker was given up, wrote too late, and whose second attempt failed."""
    job = (
        await manager.submit(
            JobSpec(
                type="send_receipt",
                queue="mail",
                max_attempts=2,
                priority=1,
                payload={"order": 1207, "customer": 4711, "lines": [{"sku": "A-3", "count": 2}]},
                tags=["customer=4711", "shop=berlin"],
            )
        )
    ).job
    clock = manager.clock
    assert isinstance(clock, ManualClock)
    clock.advance(4)
    (first,) = await manager.claim(WORKERS[2], types=["send_receipt"], lease_seconds=20)
    clock.advance(21)
    await manager.reap()
    clock.advance(2)
    (second,) = await manager.claim(WORKERS[0], types=["send_receipt"])
    clock.advance(6)
    await manager.settle([Completed(job_id=first.id, token=first.token, known=first)])  # refused
    line = {
        "at": clock.now().isoformat(),
        "attempt": 2,
        "level": "error",
        "text": "customer 4711 is unknown",
        "traceback": TRACE,
    }
    await manager.keep_log(
        second.id,
        second.token or "",
        [
            {
                "at": clock.now().isoformat(),
                "attempt": 2,
                "level": "info",
                "text": "order 1207 has 1 line",
            },
            line,
        ],
    )
    clock.advance(9)
    await manager.fail(second.id, second.token, "customer 4711 is unknown", code="UnknownCustomer")
    return job.id


async def _left_over(manager: JobManager, ids: dict[str, str]) -> None:
    """What waits and runs at the end: a graph, a batch, a paused queue."""
    first = (await manager.submit(JobSpec(type="extract", queue="pipeline"))).job
    split = [Dependency(first.id, DependencyKind.FAN_OUT)]
    middle = (
        await manager.submit_many(
            [
                JobSpec(type=f"transform_{one}", queue="pipeline", after=split)
                for one in ("users", "orders", "prices")
            ]
        )
    ).jobs
    last = (
        await manager.submit(
            JobSpec(type="load", queue="pipeline", after=[Dependency(one.id) for one in middle])
        )
    ).job
    ids["load"] = last.id
    (running,) = await manager.claim(WORKERS[2], types=["extract"])
    await manager.complete(running.id, running.token)
    taken = await manager.claim(WORKERS[2], queues=["pipeline"], limit=2)
    await manager.complete(taken[0].id, taken[0].token)
    await manager.progress(taken[1].id, taken[1].token or "", 0.4, "page 4 of 10")
    await manager.submit_many([JobSpec(type="export", queue="exports")] * 3)
    await manager.pause("exports")
    await manager.submit_many([JobSpec(type="resize", queue="images", payload={"order": 1})] * 14)
    for job in await manager.claim(WORKERS[1], queues=["images"], limit=7):
        await manager.progress(job.id, job.token or "", 0.1 * (1 + job.seq % 8))
    for worker in WORKERS:
        await manager.announce(worker, slots=8, busy=len(worker) % 4 + 3)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    now = datetime.now(UTC)
    clock = ManualClock(now - timedelta(minutes=MINUTES, seconds=45))
    policies = Policy(max_attempts=3, backoff=Exponential(initial=20))
    manager = await connect("memory:", clock=clock, policies=policies)
    made = Site(manager, free_port())
    made.ids = await an_hour(manager, clock)  # type: ignore[attr-defined]  # what the pictures are of
    await made.start()
    yield made
    await made.stop()
    await manager.close()


@pytest.mark.long
async def test_the_pictures_are_drawn(site: Site, browser: Browser, tmp_path: Path) -> None:
    folder = Path(os.environ.get("HEADRACE_PICTURES", tmp_path))
    ids: dict[str, str] = site.ids  # type: ignore[attr-defined]
    pictures: list[tuple[str, str, Literal["light", "dark"], int, int]] = [
        ("overview", "/", "light", 1280, 1120),
        ("overview-dark", "/", "dark", 1280, 1120),
        ("job", f"/job?id={ids['story']}", "light", 1280, 1180),
        ("graph", f"/job?id={ids['load']}#graph", "dark", 1280, 900),
        ("errors", "/errors", "light", 1280, 760),
        ("history", "/history", "light", 1280, 1000),
        ("phone", "/", "dark", 390, 844),
    ]
    for name, place, theme, width, height in pictures:
        page: Any = await browser.page(place, theme=theme, width=width)
        await page.set_viewport_size({"width": width, "height": height})
        await page.locator("#live.on").wait_for()
        file = folder / f"{name}.png"
        await page.screenshot(path=file)
        assert 10_000 < file.stat().st_size < 400_000, file
