"""Workers as the pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.dashboard.asked import Asked
from headrace.manager.presence import is_draining
from headrace.stores.base import WorkerSeen

SEEN_SECONDS = 3600.0
STALE_SECONDS = 15.0
"""A worker writes its presence down every five seconds."""
GONE_SECONDS = 60.0


@dataclass(frozen=True)
class Worker:
    seen: WorkerSeen
    now: datetime

    @property
    def silent_seconds(self) -> float:
        return (self.now - self.seen.seen_at).total_seconds()

    @property
    def health(self) -> str:
        """`present`, `stale` or `gone`."""
        if self.silent_seconds <= STALE_SECONDS:
            return "present"
        return "stale" if self.silent_seconds <= GONE_SECONDS else "gone"

    @property
    def place(self) -> str:
        """Host and process, where it says so."""
        process = self.seen.process
        return "" if process is None else f"{process.host}:{process.pid}"

    @property
    def is_draining(self) -> bool:
        """It claims no more, and ends when what it runs has ended."""
        return is_draining(self.seen)

    @property
    def version(self) -> str | None:
        return None if self.seen.process is None else self.seen.process.version

    @property
    def started_at(self) -> datetime | None:
        return None if self.seen.process is None else self.seen.process.started_at


async def seen_lately(asked: Asked, seconds: float = SEEN_SECONDS) -> list[Worker]:
    """Those heard of within an hour: present ones first."""
    now = asked.now
    found = [
        Worker(one, now) for one in await asked.manager.workers(now - timedelta(seconds=seconds))
    ]
    order = ("present", "stale", "gone")
    return sorted(found, key=lambda one: (order.index(one.health), one.seen.worker))
