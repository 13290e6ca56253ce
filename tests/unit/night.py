"""Hours of maintenance in a moment: the loops rest on a manual clock, which jumps to whoever is due next."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import datetime, timedelta

from headrace.clock import ManualClock


class Night:
    """Give `rest` to every loop, then `pass_` the time. `sleepers`: how many rest when nothing is due."""

    def __init__(self, clock: ManualClock, sleepers: int) -> None:
        self.clock = clock
        self.rests: list[float] = []
        self._sleepers = sleepers
        self._asleep: list[tuple[datetime, int, asyncio.Event]] = []
        self._number = itertools.count()
        self._lay_down = asyncio.Event()

    async def rest(self, stop: asyncio.Event, seconds: float) -> None:
        wake = asyncio.Event()
        due = self.clock.now() + timedelta(seconds=seconds)
        self.rests.append(seconds)
        heapq.heappush(self._asleep, (due, next(self._number), wake))
        self._lay_down.set()
        waits = [asyncio.ensure_future(event.wait()) for event in (wake, stop)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def pass_(self, seconds: float) -> None:
        """Let everything happen that is due within so many seconds, in order."""
        end = self.clock.now() + timedelta(seconds=seconds)
        await self._all_asleep()
        while self._asleep[0][0] <= end:
            self.clock.set(max(self._asleep[0][0], self.clock.now()))
            while self._asleep and self._asleep[0][0] <= self.clock.now():
                heapq.heappop(self._asleep)[2].set()
            await self._all_asleep()
        self.clock.set(end)

    async def _all_asleep(self) -> None:
        while len(self._asleep) < self._sleepers:
            self._lay_down.clear()
            await self._lay_down.wait()
