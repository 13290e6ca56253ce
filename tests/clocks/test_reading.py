"""Reading the store's clock from a process that may be held up while it asks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from headrace.connect import measured_clock
from headrace.stores.base import JobStore


class Stalling:
    """A store whose answers take so long, each as if the asker had been stopped after the question."""

    def __init__(self, *stalls: float) -> None:
        self._stalls = list(stalls)

    async def now(self) -> datetime:
        moment = datetime.now(UTC)
        await asyncio.sleep(self._stalls.pop(0))
        return moment


@pytest.mark.parametrize("stalls", [(0.6, 0.0), (0.3, 0.6, 0.0), (0.0,)])
async def test_an_answer_that_took_long_is_not_trusted(stalls: tuple[float, ...]) -> None:
    store: Any = Stalling(*stalls)
    clock = await measured_clock(cast("JobStore", store))
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=0.1)


async def test_of_slow_answers_the_quickest_counts() -> None:
    store: Any = Stalling(0.2, 1.0, 0.8)
    clock = await measured_clock(cast("JobStore", store))
    off = abs(clock.now() - datetime.now(UTC))
    assert off < timedelta(seconds=0.2)  # half of the quickest, not of the last
