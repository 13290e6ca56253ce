"""One rendering for all who have been told of the same change: a hundred viewers cost as much as one.

A page says up to which event it has been told (its place in the stream of changes). What is rendered for that
place was read after that event, so it shows it; whoever is at the same place may have it too. Whoever looks
for another reason says no place, and gets a rendering of his own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

KEEP_SECONDS = 1.0
KEPT_MAX = 256

T = TypeVar("T")


class Shared(Generic[T]):
    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[float, asyncio.Task[T]]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """What was made for this key a moment ago, or is being made; otherwise it is made now."""
        now = time.monotonic()
        made = self._made.get(key)
        if made is None or now - made[0] > KEEP_SECONDS or made[1].cancelled():
            if len(self._made) >= KEPT_MAX:
                self._made = {k: v for k, v in self._made.items() if now - v[0] <= KEEP_SECONDS}
            made = now, asyncio.ensure_future(_awaited(make))
            self._made[key] = made
        # Whoever hangs up first must not take it away from the others.
        return await asyncio.shield(made[1])


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()
