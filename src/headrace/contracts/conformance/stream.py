"""The live event stream, and how it knows where to start although nobody awaits the subscription."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator
from typing import Self

from headrace.contracts.conformance.errors import QueueError, translated
from headrace.contracts.conformance.projection import event_of
from headrace.contracts.conformance.values import JobEvent
from headrace.manager import JobManager
from headrace.manager.queries import POLL_SECONDS

# Reading the log's end takes an await, and `event_stream(ctx)` is not awaited. So the reading starts at
# the call, as a task, and every call that can write an event, on whatever backend of this loop, first
# lets the readings under way finish: what is written after the subscription lies after its position.
_positions: set[asyncio.Task[str]] = set()


async def positions_taken() -> None:
    """Return once every stream that was opened before this call knows where it starts."""
    loop = asyncio.get_running_loop()
    under_way = [task for task in list(_positions) if task.get_loop() is loop]
    if under_way:
        await asyncio.wait(under_way)


def _forget(task: asyncio.Task[str]) -> None:
    _positions.discard(task)
    if not task.cancelled():
        task.exception()  # whoever reads the stream is told; an unread stream must not warn


class EventStream(AsyncIterator[JobEvent]):
    """One tenant's events from the moment of subscription on, in order, each once, without end.

    `async for`, `anext(stream)` and `stream.next()` all read it. Giving up on a read (a timeout, a
    cancellation) loses nothing: the next read goes on. Awaiting the stream itself returns it, positioned.
    """

    def __init__(self, manager: JobManager) -> None:
        self._manager = manager
        self._position = asyncio.get_running_loop().create_task(manager.tail())
        _positions.add(self._position)
        self._position.add_done_callback(_forget)
        self._cursor: str | None = None
        self._ready: deque[JobEvent] = deque()
        self._ended = asyncio.Event()
        self._reading = asyncio.Lock()

    def __await__(self) -> Generator[object, None, Self]:
        yield from self._positioned().__await__()
        return self

    async def __anext__(self) -> JobEvent:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def next(self) -> JobEvent | None:
        """The next event, waiting for it if need be. None: the stream is closed."""
        async with self._reading:
            while not self._ready and not self._ended.is_set():
                try:
                    with translated():
                        await self._read()
                except QueueError:
                    if not self._ended.is_set():
                        raise  # a backend that closes ends its streams: that is no error of theirs
            return None if self._ended.is_set() else self._ready.popleft()

    async def aclose(self) -> None:
        """End the stream; whoever waits for an event is told at once. Closing twice is fine."""
        self._ended.set()
        self._position.cancel()

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def _positioned(self) -> str:
        if self._cursor is None:
            await asyncio.wait({self._position})  # a reader that gives up leaves the task alone
            if self._ended.is_set():
                return ""
            with translated():
                self._cursor = self._position.result()
        return self._cursor

    async def _read(self) -> None:
        """Fill `_ready`, or wait until the log may have grown."""
        cursor = await self._positioned()
        if self._ended.is_set():
            return
        tail = await self._manager.tail()
        events = await self._manager.events(after=cursor)
        self._ready.extend(told for event in events if (told := event_of(event)) is not None)
        # Nothing of this tenant's up to `tail`: go on from there, or other tenants' events would make
        # every wait return at once.
        self._cursor = events[-1].cursor if events else tail
        if not events:
            await self._growth(tail)

    async def _growth(self, cursor: str) -> None:
        grown = asyncio.create_task(self._manager.store.wait(cursor, POLL_SECONDS))
        ended = asyncio.create_task(self._ended.wait())
        both: set[asyncio.Task[None] | asyncio.Task[bool]] = {grown, ended}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            if not grown.done():
                grown.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        if not self._ended.is_set() and not grown.cancelled():
            grown.result()
