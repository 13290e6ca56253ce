"""Waiting for the log to grow, each caller in his own loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.stores.memory.tables import Tables  # they hold those who wait


class Waiters:
    def __init__(self) -> None:
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def enlist(self) -> asyncio.Event:
        """What is set, in the caller's own loop, when the log has grown."""
        grown = asyncio.Event()
        self._waiters.append((asyncio.get_running_loop(), grown))
        return grown

    def dismiss(self, grown: asyncio.Event) -> None:
        self._waiters = [waiter for waiter in self._waiters if waiter[1] is not grown]

    def wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for loop, grown in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(grown.set)


async def wait(tables: Tables, after: str, timeout_seconds: float) -> None:
    with tables:
        if tables.log.has_more(after):
            return
        grown = tables.log.waiters.enlist()
    try:
        async with asyncio.timeout(timeout_seconds):
            await grown.wait()
    except TimeoutError:
        return
    finally:
        with tables:
            tables.log.waiters.dismiss(grown)
