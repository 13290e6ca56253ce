"""Waiting for the log to grow: hints by NOTIFY and LISTEN, debounced, and polling where one is lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from headrace.errors import HeadraceError
from headrace.retry import doubling
from headrace.stores.postgres import log
from headrace.stores.postgres.connection import Connection, Pool
from headrace.stores.postgres.session import Session

NOTIFY_PAUSE_SECONDS = 0.02
"""At most fifty notifications a second from one process. A NOTIFY takes a lock that the whole server shares
for the length of a commit: one per insert would halve what many producers can submit."""
POLL_SECONDS = 0.5
"""How long a wait trusts that no hint was lost."""
_RETRY_SECONDS = (0.1, 5.0)
_CLOSE_SECONDS = 1.0


async def wait(session: Session, hints: Hints, after: str, timeout_seconds: float) -> None:
    """Here the end comes at once, elsewhere within milliseconds or, a hint lost, POLL_SECONDS."""
    place = log.position(after)
    end = time.monotonic() + timeout_seconds
    while True:
        with hints.hinted() as hint:
            if await log.has_grown(session, place):
                return
            left = end - time.monotonic()
            if left <= 0:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, POLL_SECONDS)):
                    await hint.wait()
                    return


def channel(schema: str) -> str:
    return f"headrace_{schema}"


class Hint(NamedTuple):
    """A notification: the store's channel, and which process it comes from."""

    channel: str
    sender: str


class Hinting(Protocol):
    """Where a write says that it was made."""

    def with_write(self) -> Hint | None: ...

    def wrote(self, *, told: Hint | None = None) -> None: ...


class NoHints:
    """Nobody is told."""

    def with_write(self) -> None:
        pass

    def wrote(self, *, told: Hint | None = None) -> None:
        pass


class Hints:
    """Tells other processes of writes here, and tasks here of writes anywhere.

    Never the truth, only a reason to look.
    """

    def __init__(self, pool: Pool, session: Session, channel: str) -> None:
        self._pool = pool
        self._session = session
        self._hint = Hint(channel, secrets.token_hex(4))
        self._written = False
        self._writes = 0
        self._next_notify = 0.0
        self._notifier: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._waiters: set[asyncio.Event] = set()

    def with_write(self) -> Hint | None:
        """What a write is to say in its own commit, if it is time for that: nothing is quicker."""
        now = time.monotonic()
        if now < self._next_notify:
            return None
        self._next_notify = now + NOTIFY_PAUSE_SECONDS
        return self._hint

    def wrote(self, *, told: Hint | None = None) -> None:
        """Something was committed here. Others are told in the background, if it has not `told` them."""
        self._wake()
        if told is not None:
            return
        self._written = True
        self._writes += 1
        if self._notifier is None or self._notifier.done():
            self._notifier = asyncio.create_task(self._notify())

    @contextlib.contextmanager
    def hinted(self) -> Iterator[asyncio.Event]:
        """An event that is set as soon as somebody has written since.

        Whoever looks at the log with it in hand misses nothing between looking and waiting.
        """
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen())
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)

    async def close(self) -> None:
        """The last writes are told of before the end: a program may submit and be gone."""
        if self._written:
            with contextlib.suppress(HeadraceError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._session.write("notify", *self._hint)
        tasks = [task for task in (self._notifier, self._listener) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._wake()

    def _heard(self, _: Connection, __: int, ___: str, sender: str) -> None:
        if sender != self._hint.sender:  # what was written here has woken everybody then
            self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            waiter.set()

    async def _notify(self) -> None:
        while self._written:
            pause = self._next_notify - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            # The pause counts from here, not from the answer: a loop that stands still between a program's
            # calls reads the answer late, and the next hint would wait for as long again.
            self._next_notify = time.monotonic() + NOTIFY_PAUSE_SECONDS
            writes = self._writes
            with contextlib.suppress(HeadraceError):  # a lost hint costs one poll
                await self._session.write("notify", *self._hint)
            self._written = self._writes > writes

    async def _listen(self) -> None:
        """Keep one connection listening; when it breaks, connect again with backoff."""
        pauses = doubling(*_RETRY_SECONDS)
        while True:
            try:
                connection = await self._pool.dedicated()
            except Exception:  # noqa: BLE001 - whatever it is, polling goes on and so do we
                await asyncio.sleep(next(pauses) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                continue
            try:
                ended = asyncio.Event()
                connection.add_termination_listener(_calling(ended.set))
                await connection.add_listener(self._hint.channel, self._heard)
                pauses = doubling(*_RETRY_SECONDS)
                self._wake()  # whatever happened before it listened
                await ended.wait()
            except Exception:  # noqa: BLE001 - as above
                await asyncio.sleep(next(pauses))
            finally:
                connection.terminate()


def _calling(function: Callable[[], None]) -> Callable[..., None]:
    """A driver's callback: what it is called with does not matter."""

    def called(*_: Connection) -> None:
        function()

    return called
