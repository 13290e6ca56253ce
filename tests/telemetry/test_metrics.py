"""Metrics: what was counted, by the numbers a scrape gives."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from headrace import Headrace, PermanentError
from headrace.clock import ManualClock
from headrace.stores.base import JobStore
from headrace.telemetry.metrics import Metrics
from headrace.worker import Settings, Worker


async def test_a_scrape_tells_depth_age_times_and_outcomes(store_url: str) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    clock = ManualClock()
    app = Headrace(store_url, observers=[metrics], clock=clock)

    @app.task(queue="mail")
    async def send(how: str) -> None:
        if how == "bad":
            raise PermanentError("no")
        if how == "late":
            raise TimeoutError("slow")

    async with app:
        metrics.watch(app)
        for how in ("good", "good", "bad", "late"):
            await send.submit(how)
        clock.advance(7)

        def value(name: str, **labels: str) -> float | None:
            return registry.get_sample_value(name, labels)

        queue = {"tenant": "default", "queue": "mail"}
        assert await asyncio.to_thread(value, "headrace_jobs", **queue, state="pending") == 4
        assert await asyncio.to_thread(value, "headrace_oldest_ready_seconds", **queue) == 7
        await Worker(app, Settings(maintenance=False)).drain()
        own = {"queue": "mail", "type": "send"}
        for outcome, count in (("completed", 2), ("failed_permanent", 1), ("failed_timeout", 1)):
            assert (
                await asyncio.to_thread(value, "headrace_attempts_total", **own, outcome=outcome)
                == count
            )
        assert await asyncio.to_thread(value, "headrace_job_wait_seconds_sum", **own) == 28
        assert await asyncio.to_thread(value, "headrace_job_run_seconds_count", **own) == 4
        inserted = await asyncio.to_thread(value, "headrace_store_seconds_count", verb="insert")
        assert inserted == 4
        assert await asyncio.to_thread(value, "headrace_oldest_ready_seconds", **queue) is None
        await asyncio.to_thread(app.sync.close)


async def test_a_verb_that_raises_is_counted_and_raises() -> None:
    registry = CollectorRegistry()
    app = Headrace("memory:", observers=[Metrics(registry)])
    async with app:
        store: JobStore = (await app.manager()).store
        await store.close()
        with pytest.raises(Exception, match="closed"):
            await store.tail()
    errors = {"verb": "tail", "error": "StoreClosed"}
    assert registry.get_sample_value("headrace_store_errors_total", errors) == 1
