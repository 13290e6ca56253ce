"""One reader of the log for everybody who waits: event streams, waits for jobs, claims that wait.

However many wait, the log is read once. It runs while somebody waits, and stops soon after the last has gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

import msgspec

from headrace.errors import LogTrimmed, StoreError, TooManyRequests
from headrace.manager import Claimed, JobManager
from headrace.model import CLAIMABLE, LEASED, Event, Job

logger = logging.getLogger("headrace.server")

RING_EVENTS = 8192
"""So far may a stream fall behind before it is told that it has missed something."""
PUBLISH_SECONDS = 0.05
"""Streams are told of what came within this time together: one piece for each, made once for all."""
READ_EVENTS = 1000
LINGER_SECONDS = 5.0
"""The reader goes on for so long when nobody waits: the next one is seldom far."""
RETRY_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""A claim that waits looks by itself this often: a queue that is resumed makes no event."""
CLAIM_PAUSE_SECONDS = 0.01
"""A claim that waits for a time looks no sooner: clocks differ a little."""
CHECK_SECONDS = 1.0
"""So often at least a stream is given the chance to see whether it may go on."""
PIECES_KEPT = 256

Render = Callable[[Sequence[Event]], bytes]
"""What a stream sends for some events; nothing where none of them is for it."""


class Missed(msgspec.Struct, frozen=True):
    """A stream that was too slow: what lies between the two cursors was not sent to it."""

    after: str
    upto: str


class Reset(msgspec.Struct, frozen=True):
    """The log was trimmed behind the reader's cursor: what came before `start` is gone."""

    start: str


class View(msgspec.Struct, frozen=True):
    """What a stream shows: streams with equal views share what is made for them."""

    key: tuple[object, ...]
    render: Render


class _Asking:
    """A claim that waits."""

    __slots__ = ("takes", "woken")

    def __init__(self, takes: Callable[[Event], bool]) -> None:
        self.takes = takes
        self.woken = asyncio.Event()


class Hub:
    """The fan-out of one store's log, on one event loop."""

    def __init__(
        self, operator: Callable[[], Awaitable[JobManager]], *, waits_max: int, streams_max: int
    ) -> None:
        self._operator = operator
        self._waits_max, self._streams_max = waits_max, streams_max
        self.waits = 0
        self.streams = 0
        self._reader: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._ring: deque[Event] = deque()
        self._first = 0
        """The number of the first event in the ring; they are counted from the start of the reader."""
        self._places: dict[str, int] = {}
        """By cursor: the number of the event that comes behind it."""
        self._cursor = ""
        self._published = 0
        self._news = asyncio.Event()
        self._publishing: asyncio.TimerHandle | None = None
        self._pieces: dict[tuple[object, ...], bytes] = {}
        self._ends: dict[str, set[asyncio.Event]] = {}
        self._asking: deque[_Asking] = deque()
        self._idle_since = 0.0

    # --- waiting for a job ------------------------------------------------------------------------

    async def wait_for_end(self, manager: JobManager, job_id: str, seconds: float) -> Job:
        """The job once it has ended, or as it is when the time is up."""
        job = await manager.get(job_id)
        if job.is_terminal or seconds <= 0:
            return job
        until = time.monotonic() + seconds
        with self._counted_wait():
            await self._start()
            ended = asyncio.Event()
            self._ends.setdefault(job_id, set()).add(ended)
            try:
                while True:
                    job = await manager.get(job_id)
                    if job.is_terminal or not await _happens(ended, until - time.monotonic()):
                        return job
                    ended.clear()
            finally:
                others = self._ends[job_id]
                others.discard(ended)
                if not others:
                    del self._ends[job_id]

    async def events(
        self, read: Callable[[], Awaitable[tuple[Event, ...]]], seconds: float
    ) -> tuple[Event, ...]:
        """What is read of the log: where that is nothing, what is read when it has grown."""
        found = await read()
        if found or seconds <= 0:
            return found
        until = time.monotonic() + seconds
        with self._counted_wait():
            await self._start()
            while True:
                news = self._news
                found = await read()
                if found or not await _happens(news, until - time.monotonic()):
                    return found

    # --- waiting for jobs to claim ----------------------------------------------------------------

    async def claim(
        self,
        claim: Callable[[], Awaitable[Claimed]],
        takes: Callable[[Event], bool],
        seconds: float,
        now: Callable[[], float],
    ) -> Claimed:
        """Claim, and again whenever there may be something, until there is or the time is up.

        Of several that wait for the same, one is woken for each job that can be had: the one that has
        waited longest. `now` is the store's time as a timestamp.
        """
        claimed = await claim()
        if claimed.jobs or seconds <= 0:
            return claimed
        until = time.monotonic() + seconds
        with self._counted_wait():
            await self._start()
            asking = _Asking(takes)
            self._asking.append(asking)
            try:
                while True:
                    asking.woken.clear()
                    claimed = await claim()
                    left = until - time.monotonic()
                    if claimed.jobs or left <= 0:
                        return claimed
                    pause = min(left, LOOK_SECONDS)
                    if claimed.next_at is not None:
                        due = claimed.next_at.timestamp() - now()
                        pause = min(pause, max(due, CLAIM_PAUSE_SECONDS))
                    await _happens(asking.woken, pause)
            finally:
                self._asking.remove(asking)

    # --- streams ----------------------------------------------------------------------------------

    def check_room(self) -> None:
        """Raises TooManyRequests where as many streams are open as may be."""
        if self.streams >= self._streams_max:
            raise TooManyRequests(f"{self.streams} streams are open already; try again later")

    async def stream(
        self, manager: JobManager, view: View, after: str | None
    ) -> AsyncIterator[bytes | Missed | Reset | None]:
        """What the view shows of the log behind the cursor (None: of what is new), then of what comes.

        None is given now and then, so that whoever sends can look after the stream.
        """
        self.streams += 1
        try:
            await self._start()
            cursor = self._cursor if after is None else after
            place = self._end if after is None else None
            yield None  # from here on nothing is missed
            while True:
                if place is None:
                    async for piece in self._catch_up(manager, view, cursor):
                        if isinstance(piece, str):
                            cursor = piece
                        else:
                            yield piece
                    place = self._places.get(cursor, self._end)
                if place < self._first:
                    upto = self._ring[0].cursor if self._ring else self._cursor
                    yield Missed(cursor, upto)
                    cursor, place = upto, self._first
                if self._published > place:
                    end = self._published
                    piece = self._piece(view, place, end)
                    cursor, place = self._ring[end - self._first - 1].cursor, end
                    if piece:
                        yield piece
                        continue  # more may have come while it was sent
                news = self._news
                if not await _happens(news, CHECK_SECONDS):
                    yield None
        finally:
            self.streams -= 1
            self._left()

    async def _catch_up(
        self, manager: JobManager, view: View, cursor: str
    ) -> AsyncIterator[bytes | str | Reset | None]:
        """Read the log itself up to where the ring begins. Gives pieces, and where it has come to."""
        while cursor not in self._places:
            end = await manager.tail()
            try:
                events = await manager.events(after=cursor, limit=READ_EVENTS)
            except LogTrimmed as error:
                yield Reset(error.start)
                cursor = error.start
                continue
            if events:
                if piece := view.render(events):
                    yield piece
                cursor = events[-1].cursor
            else:
                # Up to there everything is somebody else's.
                cursor = end or cursor
                if cursor not in self._places:
                    await _happens(self._news, CHECK_SECONDS)
                    yield None
            yield cursor

    def _piece(self, view: View, start: int, end: int) -> bytes:
        key = (view.key, start, end)
        piece = self._pieces.get(key)
        if piece is None:
            events = [self._ring[number - self._first] for number in range(start, end)]
            piece = view.render(events)
            if len(self._pieces) >= PIECES_KEPT:
                self._pieces.clear()
            self._pieces[key] = piece
        return piece

    # --- the reader -------------------------------------------------------------------------------

    @property
    def _end(self) -> int:
        return self._first + len(self._ring)

    @contextlib.contextmanager
    def _counted_wait(self) -> Iterator[None]:
        if self.waits >= self._waits_max:
            raise TooManyRequests(f"{self.waits} requests wait already; try again later")
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1
            self._left()

    def _left(self) -> None:
        if not self._is_used:
            self._idle_since = time.monotonic()

    @property
    def _is_used(self) -> bool:
        return self.waits > 0 or self.streams > 0

    async def _start(self) -> None:
        """Have the reader run, from a cursor on that is known."""
        while True:
            if self._reader is None or self._reader.done():
                self._ready.clear()
                self._reader = asyncio.create_task(self._run())
            if self._ready.is_set():
                return
            ready = asyncio.create_task(self._ready.wait())
            try:
                await asyncio.wait({ready, self._reader}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ready.cancel()
            if self._reader.done() and not self._ready.is_set():
                self._reader.result()  # raises why it could not begin

    async def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.wait({reader})

    async def _run(self) -> None:
        manager = await self._operator()
        self._begin(await manager.tail())
        following = asyncio.create_task(self._follow(manager))
        try:
            while self._is_used or time.monotonic() - self._idle_since < LINGER_SECONDS:
                await asyncio.wait({following}, timeout=CHECK_SECONDS)
                if following.done():
                    following.result()
        finally:
            self._ready.clear()
            following.cancel()
            await asyncio.wait({following})

    async def _follow(self, manager: JobManager) -> None:
        while True:
            try:
                async for event in manager.follow(after=self._cursor):
                    self._take(event)
            except LogTrimmed:
                logger.warning("the log was trimmed before it was read; streams are told")
                self._begin(await self._tail(manager))
            except StoreError as error:
                logger.warning("the log cannot be read now: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _tail(self, manager: JobManager) -> str:
        while True:
            try:
                return await manager.tail()
            except StoreError as error:
                logger.warning("the log cannot be read now: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    def _begin(self, cursor: str) -> None:
        """What is behind is unknown: streams see that they have missed something, and all others look."""
        self._first = self._end + 1
        self._ring.clear()
        self._pieces.clear()
        self._cursor = cursor
        self._places = {cursor: self._first}
        self._published = self._first
        for waiting in self._ends.values():
            for ended in waiting:
                ended.set()
        for asking in self._asking:
            asking.woken.set()
        self._ready.set()
        self._publish()

    def _take(self, event: Event) -> None:
        self._ring.append(event)
        self._cursor = event.cursor
        self._places[event.cursor] = self._end
        if len(self._ring) > RING_EVENTS:
            gone = self._ring.popleft()
            self._first += 1
            self._places.pop(gone.cursor, None)
        if event.after not in CLAIMABLE and event.after not in LEASED:
            for ended in self._ends.get(event.job_id, ()):
                ended.set()
        if self._asking and _may_be_claimed(event):
            self._wake_one(event)
        if self._publishing is None:
            loop = asyncio.get_running_loop()
            self._publishing = loop.call_later(PUBLISH_SECONDS, self._publish)

    def _wake_one(self, event: Event) -> None:
        for asking in self._asking:
            if not asking.woken.is_set() and asking.takes(event):
                asking.woken.set()
                return

    def _publish(self) -> None:
        self._publishing = None
        self._published = self._end
        self._news.set()
        self._news = asyncio.Event()


def _may_be_claimed(event: Event) -> bool:
    """It makes a job claimable, or gives room below a limit."""
    return event.after in CLAIMABLE or (event.before in LEASED and event.after not in LEASED)


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether it is set within the time."""
    if seconds <= 0:
        return event.is_set()
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
