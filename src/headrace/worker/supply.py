"""Claiming: enough jobs for the free slots, in batches, and no busy polling when there are none."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from headrace.errors import StoreClosed, StoreError
from headrace.manager import Claimed, JobManager
from headrace.model import Job
from headrace.retry import Exponential
from headrace.stores.base import WorkerProcess
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
_SOON_SECONDS = 0.02
"""What comes within this time is waited for without a look at the log: new jobs can wait as long."""
_JITTER_SECONDS = (0.001, 0.1)
"""Of many workers that wait for the same moment one gets the job. Each that gets nothing comes later to the
next one, by up to twice as much each time, from the first of these to the second."""
_BEATEN_MAX = 10
_PRESENCE_SECONDS = 1.0
"""How often it says that it is there. The manager writes it down only if nothing was for five seconds."""
_FAILED_REST = Exponential(initial=0.1, cap=5.0, jitter=False)
"""How long it rests after claims in a row that failed, however many they are."""


class Supply:
    """Claims for one worker, and says that it is there.

    `free` says how many handlers could start now, `busy` how many run, `take` is given the jobs.
    """

    def __init__(
        self,
        manager: JobManager,
        *,
        worker: str,
        types: Sequence[str],
        settings: Settings,
        free: Callable[[], int],
        busy: Callable[[], int],
        take: Callable[[Sequence[Job]], None],
        process: WorkerProcess,
    ) -> None:
        self._manager = manager
        self._worker = worker
        self._types = types
        self._settings = settings
        self._free = free
        self._busy = busy
        self._take = take
        self._process = process
        self._freed = asyncio.Event()
        self._dice = random.Random()  # noqa: S311 - jitter, not secrets
        self._failures = 0
        self._hinted = 0
        """Hints in a row that led to nothing."""
        self._beaten = 0
        """Moments in a row that others were quicker at."""
        self._is_time = False
        """The next claim is made because its time has come."""
        self._finished = 0
        self._rate = 0.0
        self._rate_since = time.monotonic()

    def freed(self) -> None:
        """A handler has ended."""
        self._finished += 1
        self._freed.set()

    async def claim(self, limit: int, *, look_ahead: bool = False) -> Claimed:
        """Take up to so many jobs. A claim that is under way is seen through, also when cancelled.

        The store may have leased jobs already: nobody would know of them until their leases lapse.
        """
        claiming = asyncio.ensure_future(
            self._manager.claim_ahead(
                self._worker,
                queues=self._settings.queues,
                types=self._types,
                tags=self._settings.tags,
                limit=limit,
                lease_seconds=self._settings.lease_seconds,
                look_ahead=look_ahead,
                slots=self._settings.concurrency,
                busy=self._busy(),
            )
        )
        try:
            claimed = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreError):
                self._take((await claiming).jobs)
            raise
        self._failures = 0
        if claimed.jobs:
            self._hinted = self._beaten = 0
            self._take(claimed.jobs)
        elif self._is_time:
            self._beaten += 1
        self._is_time = False
        return claimed

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

    async def stay_present(self) -> None:
        """Until cancelled. A worker without room does not claim, and would be taken for gone."""
        while True:
            try:
                await self._manager.announce(
                    self._worker,
                    queues=self._settings.queues,
                    types=self._types,
                    tags=self._settings.tags,
                    slots=self._settings.concurrency,
                    busy=self._busy(),
                    process=self._process,
                )
            except StoreClosed:
                raise
            except StoreError as error:
                logger.debug("that worker %s is there was not written: %s", self._worker, error)
            await asyncio.sleep(_PRESENCE_SECONDS)

    def drain(self) -> None:
        """It claims no more, and says so from now on."""
        self._process = msgspec.structs.replace(self._process, draining=True)

    async def _work(self) -> None:
        """Claim as long as there are jobs, then wait for a sign of new ones, or for their time."""
        while True:
            limit = await self._room()
            claimed = await self.claim(limit)
            if len(claimed.jobs) == limit:
                continue
            is_resting = self._hinted > _HINTS_FREE
            pause = self._pause(claimed.next_at)
            if claimed.next_at and pause <= (_HINT_PAUSE_SECONDS if is_resting else _SOON_SECONDS):
                await asyncio.sleep(pause)
                self._is_time = True
                continue
            if is_resting:
                await asyncio.sleep(_HINT_PAUSE_SECONDS)
            await self._wait_for_more()

    async def _wait_for_more(self) -> None:
        """Until there may be jobs for us: a hint says so, or one is due, or it is time to look again."""
        # The end of the log, taken before we look once more: what comes after it wakes us.
        seen = await self._manager.tail()
        claimed = await self.claim(await self._room(), look_ahead=True)
        if claimed.jobs:
            return
        pause = self._pause(claimed.next_at)
        asked = time.monotonic()
        await self._manager.store.wait(seen, pause)
        passed = time.monotonic() - asked
        self._is_time = claimed.next_at is not None and passed >= pause
        if passed >= self._settings.poll_seconds / 2:
            self._hinted = 0
        elif not self._is_time:
            self._hinted += 1

    def _pause(self, next_at: datetime | None) -> float:
        """How long to wait for this moment, but not longer than to the next look."""
        poll_seconds = self._settings.poll_seconds
        if next_at is None:
            return poll_seconds
        shortest, longest = _JITTER_SECONDS
        jitter = min(shortest * float(2 ** min(self._beaten, _BEATEN_MAX) - 1), longest)
        seconds = (next_at - self._manager.clock.now()).total_seconds()
        return min(max(seconds, 0.0) + self._dice.random() * jitter, poll_seconds)

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
