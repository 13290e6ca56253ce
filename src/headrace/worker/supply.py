"""Claiming: enough jobs for the free slots, in batches, and no busy polling when there are none."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence

from headrace.errors import StoreClosed, StoreError
from headrace.manager import JobManager
from headrace.model import Job
from headrace.retry import Exponential
from headrace.worker.settings import Settings

logger = logging.getLogger("headrace.worker")

_LINGER_SECONDS = 0.002
"""After a slot is freed, others follow: one claim for all of them."""
_AHEAD_SECONDS = 0.03
"""Jobs are claimed before a slot is free if they will start within this time at the present rate."""
_RATE_SECONDS = 0.05
"""The present rate is measured over this."""
_HINTS_FREE = 5
"""Hints in a row that led to nothing before a worker takes them for other workers' jobs: a job of its own
gives one or two, when it starts and when it ends."""
_HINT_PAUSE_SECONDS = 0.05
"""How long it then rests after each."""
_FAILED_REST = Exponential(initial=0.1, cap=5.0, jitter=False)
"""How long it rests after claims in a row that failed, however many they are."""


class Supply:
    """Claims for one worker. `free` says how many handlers could start now, `take` is given the jobs."""

    def __init__(
        self,
        manager: JobManager,
        *,
        worker: str,
        types: Sequence[str],
        settings: Settings,
        free: Callable[[], int],
        take: Callable[[Sequence[Job]], None],
    ) -> None:
        self._manager = manager
        self._worker = worker
        self._types = types
        self._settings = settings
        self._free = free
        self._take = take
        self._freed = asyncio.Event()
        self._failures = 0
        self._finished = 0
        self._rate = 0.0
        self._rate_since = time.monotonic()

    def freed(self) -> None:
        """A handler has ended."""
        self._finished += 1
        self._freed.set()

    async def claim(self, limit: int) -> Sequence[Job]:
        """Take up to so many jobs. A claim that is under way is seen through, also when cancelled.

        The store may have leased jobs already: nobody would know of them until their leases lapse.
        """
        claiming = asyncio.ensure_future(
            self._manager.claim(
                self._worker,
                queues=self._settings.queues,
                types=self._types,
                tags=self._settings.tags,
                limit=limit,
                lease_seconds=self._settings.lease_seconds,
            )
        )
        try:
            jobs = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreError):
                self._take(await claiming)
            raise
        self._failures = 0
        if jobs:
            self._take(jobs)
        return jobs

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._work()
            except StoreClosed:
                raise
            except StoreError as error:
                self._failures += 1
                pause = _FAILED_REST.delay(self._failures)
                logger.warning("no jobs can be claimed, asking again in %.1f s: %s", pause, error)
                await asyncio.sleep(pause)

    async def _work(self) -> None:
        """Claim as long as there are jobs, then wait for a sign of new ones."""
        fruitless = 0
        while True:
            limit = await self._room()
            jobs = await self.claim(limit)
            if len(jobs) == limit:
                continue
            if jobs:
                fruitless = 0
            elif fruitless > _HINTS_FREE:
                await asyncio.sleep(_HINT_PAUSE_SECONDS)
            fruitless = fruitless + 1 if await self._wait_for_more() else 0

    async def _wait_for_more(self) -> bool:
        """Until there may be jobs for us; True if a hint said so."""
        # The end of the log, taken before we look once more: what comes after it wakes us.
        seen = await self._manager.tail()
        if await self.claim(await self._room()):
            return False
        asked = time.monotonic()
        await self._manager.store.wait(seen, self._settings.poll_seconds)
        return time.monotonic() - asked < self._settings.poll_seconds / 2

    async def _room(self) -> int:
        """How many jobs to claim now: waits until there is room for a batch worth a round trip."""
        lingered = False
        while True:
            self._freed.clear()
            free, ahead = self._free(), self._ahead()
            room = min(free + ahead, self._settings.batch)
            enough = min(self._settings.concurrency + ahead, self._settings.batch) // 2
            # While there are jobs to start, claimed ahead, there is no hurry.
            if room > 0 and (room >= enough or (free > 0 and lingered)):
                return room
            if free + ahead > 0:
                await asyncio.sleep(_LINGER_SECONDS)
                lingered = True
            else:
                await self._freed.wait()

    def _ahead(self) -> int:
        now = time.monotonic()
        passed = now - self._rate_since
        if passed >= _RATE_SECONDS:
            self._rate = self._finished / passed
            self._finished = 0
            self._rate_since = now
        return min(int(self._rate * _AHEAD_SECONDS), self._settings.concurrency)
