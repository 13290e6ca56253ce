"""An idle worker leaves its store alone, nearly."""

from __future__ import annotations

import asyncio

from headrace.worker import Settings
from tests.worker.counting import Counted
from tests.worker.running import working

SECONDS = 4.0
VERBS_PER_SECOND_MAX = 10
"""Measured: 6.8 with these settings (bench/idle.py)."""


async def test_an_idle_worker_asks_a_few_times_a_second(store_url: str) -> None:
    app = Counted(store_url)

    @app.task
    async def nothing() -> None: ...

    usual = Settings()
    async with (
        app,
        working(app, poll_seconds=usual.poll_seconds, watch_seconds=usual.watch_seconds),
    ):
        await asyncio.sleep(SECONDS / 4)  # connections, and a first round of maintenance
        app.verbs.clear()
        await asyncio.sleep(SECONDS)
        asked = app.verbs.copy()
    assert asked["claim"] >= SECONDS - 1, "it must look now and then"
    assert asked.total() < SECONDS * VERBS_PER_SECOND_MAX, asked
