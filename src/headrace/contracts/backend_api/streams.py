"""Subscriptions: jobs as they are assigned to a worker, never more of them at once than it can hold.

What a subscription holds is known job by job, so that a slot is freed exactly once, whoever reports it
first: the call that freed the job, when it was made through this queue, or the store's event log, which
also tells what other processes did.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from typing import Any, Self

from headrace.contracts.backend_api.errors import BackendError, translate
from headrace.contracts.backend_api.values import Job, job_of
from headrace.errors import HeadraceError
from headrace.manager import JobManager, Released
from headrace.manager.queries import POLL_SECONDS
from headrace.model import CLAIMABLE, LEASED, State
from headrace.model import Job as StoredJob

EVENTS_PER_READ = 1000
PAUSE_SECONDS = 0.05
"""After a hint that brought no event: whatever a store hints at, a stream does not spin."""

Claim = Callable[[int], Coroutine[Any, Any, Sequence[StoredJob]]]


class Subscription:
    """One stream's capacity, what it holds, and what of that its consumer has not been given yet."""

    def __init__(self, manager: JobManager, claim: Claim, max_assigned: int) -> None:
        self._manager = manager
        self._claim = claim
        self._max_assigned = max_assigned
        self._held: dict[str, int] = {}  # job id to its version when it was assigned
        self._undelivered: dict[str, StoredJob] = {}  # oldest first
        self._claiming: asyncio.Future[Sequence[StoredJob]] | None = None
        self._freed_early: dict[str, int] | None = None  # while a claim is under way
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._ended = False
        self._error: BackendError | None = None
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Keep the capacity filled until the stream ends, then give back what was not delivered.

        Cancelled, it ends the stream; what a claim under way still brings is given back, too.
        """
        try:
            while not self._ended:
                self._wake.clear()
                room = self._max_assigned - len(self._held)
                if room > 0:
                    self._freed_early = {}
                    self._claiming = asyncio.ensure_future(self._claim(room))
                    await self._collect()
                if not self._ended:
                    await self._wake.wait()
        except HeadraceError as error:
            self.fail(error)
        finally:
            self.end()
            # In a task of its own: a second cancellation does not stop it half-way.
            await asyncio.shield(asyncio.ensure_future(self._wind_up()))

    async def next(self) -> Job:
        """Removing a job from the undelivered and handing it over is one step: no await between."""
        while not self._ended:
            if self._undelivered:
                job = job_of(next(iter(self._undelivered.values())))
                del self._undelivered[job.id]
                return job
            self._news.clear()
            await self._news.wait()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        raise StopAsyncIteration

    def look(self) -> None:
        """There may be something to claim."""
        self._wake.set()

    def freed(self, job_id: str, version: int) -> None:
        """The job left its worker by the change that made it this version."""
        assigned = self._held.get(job_id)
        if assigned is not None and assigned < version:
            del self._held[job_id]
            self._undelivered.pop(job_id, None)
            self.look()
        elif assigned is None and self._freed_early is not None:
            self._freed_early[job_id] = version

    def end(self) -> None:
        self._ended = True
        self._wake.set()
        self._news.set()

    def end_soon(self) -> None:
        """`end`, from wherever the garbage collector runs."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is nothing left to end
            self._loop.call_soon_threadsafe(self.end)

    def fail(self, error: HeadraceError) -> None:
        """The consumer gets the error instead of a next job."""
        self._error = translate(error)
        self.end()

    async def _collect(self) -> None:
        """Take what the claim under way brings. Cancelled, the claim goes on: it can be collected later."""
        assert self._claiming is not None
        try:
            jobs = await asyncio.shield(self._claiming)
        except HeadraceError:
            self._claiming = None
            raise
        self._claiming = None
        self._take(jobs)

    async def _wind_up(self) -> None:
        try:
            if self._claiming is not None:
                await self._collect()
        except HeadraceError as error:
            self.fail(error)
        finally:
            await self._give_back()

    def _take(self, jobs: Sequence[StoredJob]) -> None:
        """What was claimed, less what was freed again before the claim's answer arrived."""
        early, self._freed_early = self._freed_early or {}, None
        for job in jobs:
            if early.get(job.id, 0) > job.version:
                self.look()
            else:
                self._held[job.id] = job.version
                self._undelivered[job.id] = job
        self._news.set()

    async def _give_back(self) -> None:
        """With the token of its claim: a job that has another holder by now is left alone."""
        jobs = list(self._undelivered.values())
        self._undelivered.clear()
        if jobs:
            try:
                await self._manager.settle(
                    [Released(job_id=job.id, token=job.token) for job in jobs]
                )
            except HeadraceError as error:
                self.fail(error)


class Subscriptions:
    """The subscriptions of one queue, and the one reader of the event log that they share."""

    def __init__(self, manager: JobManager) -> None:
        self._manager = manager
        self._running: dict[Subscription, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._watching: asyncio.Future[None] | None = None

    def start(self, subscription: Subscription) -> asyncio.Task[None]:
        if self._watch is None or self._watch.done():
            self._watching = asyncio.get_running_loop().create_future()
            self._watch = asyncio.create_task(self._follow(self._watching))
        task = asyncio.create_task(self._run(subscription, self._watching))
        self._running[subscription] = task
        return task

    def changed(self, job_id: str, version: int, state: State) -> None:
        """A job was stored or changed, here or elsewhere. Saying so twice does no harm."""
        if state not in LEASED:
            for subscription in self._running:
                subscription.freed(job_id, version)

    def look(self) -> None:
        for subscription in self._running:
            subscription.look()

    async def close(self) -> None:
        """End every stream; when this returns, nothing undelivered is assigned."""
        for subscription in self._running:
            subscription.end()
        ending = [*self._running.values(), *([] if self._watch is None else [self._watch])]
        await asyncio.gather(*ending, return_exceptions=True)

    async def _run(self, subscription: Subscription, watching: asyncio.Future[None] | None) -> None:
        try:
            if watching is not None:
                await asyncio.shield(watching)  # what it claims, it must also see freed
            await subscription.run()
        finally:
            subscription.end()  # cancelled before it ran: its consumer waits for nothing
            del self._running[subscription]
            if not self._running:
                self._stop_watching()

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _follow(self, watching: asyncio.Future[None]) -> None:
        """Read the log from its end on. A lost hint costs one poll interval, not a job."""
        try:
            cursor = await self._manager.tail()
            watching.set_result(None)
            while True:
                await self._manager.store.wait(cursor, POLL_SECONDS)
                cursor = await self._read(cursor)
        except HeadraceError as error:
            for subscription in self._running:
                subscription.fail(error)
        finally:
            if not watching.done():
                watching.set_result(None)

    async def _read(self, cursor: str) -> str:
        """One page of the log; with more to read, the next wait returns at once."""
        events = await self._manager.events(after=cursor, limit=EVENTS_PER_READ)
        for event in events:
            self.changed(event.job_id, event.version, event.after)
        # A poll that finds nothing looks too: a hint may be lost, and jobs of others fall due.
        if not events or any(event.after in CLAIMABLE for event in events):
            self.look()
        if not events:
            await asyncio.sleep(PAUSE_SECONDS)
            return cursor
        return events[-1].cursor


class JobStream:
    """Jobs one by one, as they are assigned: `async with` and `async for`.

    It starts with the first job asked for (or on entering `async with`) and ends when it is closed, left
    or dropped. Jobs that were assigned and not handed over by then are released: they are eligible again.
    """

    def __init__(self, subscriptions: Subscriptions, subscription: Subscription) -> None:
        self._subscriptions = subscriptions
        self._subscription = subscription
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        # A loop that is left by `break` closes nothing: the stream notices that it was dropped.
        weakref.finalize(self, subscription.end_soon).atexit = False

    def __aiter__(self) -> AsyncIterator[Job]:
        return self

    async def __anext__(self) -> Job:
        self._start()
        return await self._subscription.next()

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def aclose(self) -> None:
        """End the stream; when this returns, nothing undelivered is assigned."""
        self._closed = True
        self._subscription.end()
        if self._task is not None:
            await asyncio.shield(self._task)

    def _start(self) -> None:
        if self._task is None and not self._closed:
            self._task = self._subscriptions.start(self._subscription)
