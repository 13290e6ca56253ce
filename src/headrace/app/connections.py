"""The managers of an application: one per event loop, since connections belong to the loop they came from."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable

from headrace.manager import JobManager
from headrace.stores.base import JobStore


class Connections:
    """Opens a manager on the running loop when it is first asked for.

    A store that is not shared between processes (memory) is one and the same for all loops.
    """

    def __init__(self, open_manager: Callable[[JobStore | None], Awaitable[JobManager]]) -> None:
        self._open = open_manager
        self._managers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, JobManager] = (
            weakref.WeakKeyDictionary()
        )
        self._opening: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )
        self._only_store: JobStore | None = None
        self._mutex = threading.Lock()

    async def get(self) -> JobManager:
        loop = asyncio.get_running_loop()
        manager = self._managers.get(loop)
        if manager is None:
            async with self._opening.setdefault(loop, asyncio.Lock()):
                manager = self._managers.get(loop)
                if manager is None:
                    manager = await self._open(self._only_store)
                    if not manager.capabilities.shared:
                        first = self._first_of(manager.store)
                        if first is not manager.store:  # another loop was quicker
                            manager = await self._open(first)
                    self._managers[loop] = manager
        return manager

    def _first_of(self, store: JobStore) -> JobStore:
        with self._mutex:
            if self._only_store is None:
                self._only_store = store
            return self._only_store

    async def close(self) -> None:
        """Give back the connections of the running loop."""
        manager = self._managers.pop(asyncio.get_running_loop(), None)
        if manager is not None and manager.store is not self._only_store:
            await manager.close()
