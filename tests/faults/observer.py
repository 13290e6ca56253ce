"""A reader of the log while the storm writes it: what lives, who holds what, and what the reader saw."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter

from headrace import Event, JobManager
from headrace.model import LEASED, TERMINAL, EventKind
from headrace.stores.base import EventQuery
from headrace.testing.checker import Reading

POLL_SECONDS = 0.1


class Observer:
    """Follows the log in pages of any size. What it saw is one of the readings that are checked."""

    def __init__(self, manager: JobManager, dice: random.Random) -> None:
        self._manager = manager
        self._dice = dice
        self._cursor = ""
        self._seqs: list[int] = []
        self.live: dict[str, Event] = {}
        """The last event of each job that has not ended."""
        self.stored = 0
        self.kinds: Counter[EventKind] = Counter()
        self.changed_at = time.monotonic()
        self.longest_silence = 0.0

    @property
    def ended(self) -> int:
        return self.stored - len(self.live)

    @property
    def reading(self) -> Reading:
        return Reading(after="", seqs=self._seqs)

    def held_by(self, pid: int) -> list[Event]:
        """The leases of a worker process; its pid is part of its name."""
        return [
            event
            for event in self.live.values()
            if event.after in LEASED and f"-{pid}-" in (event.worker or "")
        ]

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            limit = self._dice.choice([1, 10, 100, 1000])
            page = await self._manager.store.events(EventQuery(after=self._cursor, limit=limit))
            for event in page:
                self._take(event)
            if page:
                now = time.monotonic()
                self.longest_silence = max(self.longest_silence, now - self.changed_at)
                self.changed_at = now
            if len(page) < limit:
                await asyncio.sleep(POLL_SECONDS)

    def _take(self, event: Event) -> None:
        self._cursor = event.cursor
        self._seqs.append(event.seq)
        self.kinds[event.kind] += 1
        self.stored += event.kind is EventKind.ENQUEUED
        if event.after in TERMINAL:
            self.live.pop(event.job_id, None)
        else:
            self.live[event.job_id] = event
