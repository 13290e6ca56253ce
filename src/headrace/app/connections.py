"""The managers of an application: one per event loop, since connections belong to the loop they came from."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable

from headrace.manager import JobManager
from headrace.stores.base import JobStore

_GOODBYE_SECONDS = 1.0


class Connections:
    """Opens a manager on the running loop when it is first asked for, and closes it when the loop ends.

    A store that is not shared between processes (memory) is one and the same for all loops.
    """

    def __init__(self, open_manager: Callable[[JobStore | None], Awaitable[JobManager]]) -> None:
        self._open = open_manager
        self._opened: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._only_store: JobStore | None = None
        self._mutex = threading.Lock()

    async def get(self) -> JobManager:
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            await self._forget_ended()
            opened = self._opened.setdefault(loop, _Opened())
        if opened.manager is None:
            async with opened.lock:
                if opened.manager is None:
                    opened.manager = await self._connect()
                    opened.until_the_end = self._until_the_end(opened)
                    await anext(opened.until_the_end)
        return opened.manager

    async def close(self) -> None:
        """Give back the connections of the running loop."""
        opened = self._opened.pop(asyncio.get_running_loop(), None)
        if opened is not None and opened.until_the_end is not None:
            await opened.until_the_end.aclose()

    async def _forget_ended(self) -> None:
        """Loops that were closed by hand, without their last rites: what they had open, as far as it goes.

        A store cannot say goodbye on a loop that is gone; its threads end here, its sockets with its objects.
        """
        with self._mutex:
            ended = [self._opened.pop(loop) for loop in list(self._opened) if loop.is_closed()]
        for opened in ended:
            manager, opened.manager = opened.manager, None
            if manager is not None and manager.store is not self._only_store:
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(_GOODBYE_SECONDS):
                        await manager.close()

    async def _connect(self) -> JobManager:
        manager = await self._open(self._only_store)
        if not manager.capabilities.shared:
            first = self._first_of(manager.store)
            if first is not manager.store:  # another loop was quicker
                return await self._open(first)
        return manager

    async def _until_the_end(self, opened: _Opened) -> AsyncGenerator[None]:
        """Suspended while the loop runs: `asyncio.run` closes it, as all generators, before it ends the loop.

        There is no other sign of that: a program that runs a loop for each call would keep the connections
        and threads of each.
        """
        assert opened.manager is not None
        manager, loop = opened.manager, asyncio.get_running_loop()
        try:
            yield
        finally:
            if self._opened.get(loop) is opened:
                del self._opened[loop]
            if manager.store is not self._only_store:
                with contextlib.suppress(asyncio.CancelledError):
                    await manager.close()

    def _first_of(self, store: JobStore) -> JobStore:
        with self._mutex:
            if self._only_store is None:
                self._only_store = store
            return self._only_store


class _Opened:
    """What one loop has open."""

    __slots__ = ("lock", "manager", "until_the_end")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.manager: JobManager | None = None
        self.until_the_end: AsyncGenerator[None] | None = None
