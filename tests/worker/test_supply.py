"""How a worker asks for jobs when the store does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from headrace import Headrace, Job
from headrace.errors import StoreClosed, StoreUnavailable
from headrace.stores.base import ClaimRequest, WorkerProcess
from headrace.worker import Settings
from headrace.worker.supply import Supply

FAILURES = 1500
"""At five seconds each, two hours; 2.0**1024 is past the floats."""


async def test_an_outage_of_hours_is_sat_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="headrace.worker")  # a report needs no 1500 warnings
    app = Headrace("memory:")
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def failing_claim(request: ClaimRequest) -> Sequence[Job]:
        if len(pauses) == FAILURES:
            raise StoreClosed("the end of the test")
        raise StoreUnavailable("away")

    async def remembered_sleep(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async with app:
        manager = await app.manager()
        monkeypatch.setattr(manager.store, "claim", failing_claim)
        monkeypatch.setattr(asyncio, "sleep", remembered_sleep)
        supply = Supply(
            manager,
            worker="w",
            types=("t",),
            settings=Settings(),
            free=lambda: Settings().concurrency,
            busy=lambda: 0,
            take=lambda _: None,
            process=WorkerProcess(host="h", pid=1, version="1", started_at=manager.clock.now()),
        )
        with pytest.raises(StoreClosed, match="the end of the test"):
            await supply.run()
    assert pauses[:7] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0])
    assert set(pauses[7:]) == {5.0}
