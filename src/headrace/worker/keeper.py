"""Keeping leases: heartbeats and a look-out for cancellations, in a thread with connections of its own.

A handler that blocks the worker's event loop, or holds it up, therefore loses nothing. The keeper only
speaks up: what happens to an attempt is decided on the worker's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime

from headrace.app import Context, Headrace
from headrace.errors import HeadraceError, StoreError
from headrace.maintenance import Maintenance
from headrace.manager import JobManager
from headrace.model import Lease, State
from headrace.worker.attempt import Attempt, Why
from headrace.worker.settings import Settings

logger = logging.getLogger("headrace.worker")

_TICK_SECONDS = (0.02, 1.0)
_RESTART_SECONDS = 1.0
_CONNECT_SECONDS = 1.0
_BEAT_SECONDS_MIN = 0.5

Report = Callable[[Lease, Why], None]


class _Hold:
    """A lease that is to be kept. Times are this host's monotonic clock."""

    __slots__ = ("beat_at", "context", "lapses_at", "lease", "reported", "since")

    def __init__(
        self, lease: Lease, left_seconds: float | None, context: Context, now: float
    ) -> None:
        self.lease = lease
        self.context = context
        self.since = now
        self.reported: Why | None = None
        # The store has counted since it leased the job, however long we took to hear of it.
        self.beat_at = now + (left_seconds or 0.0) - 2 * (lease.seconds or 0.0) / 3
        self.lapses_at = None if left_seconds is None else now + left_seconds

    def beaten(self, at: float) -> None:
        if self.lease.seconds is not None:
            self.beat_at = at + self.lease.seconds / 3
            self.lapses_at = at + self.lease.seconds


class Keeper:
    """Keeps the leases it is told of until it is told otherwise. `hold` and `drop` from any thread."""

    def __init__(self, app: Headrace, worker: str, settings: Settings, report: Report) -> None:
        self._app = app
        self._worker = worker
        self._settings = settings
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._holds: dict[tuple[str, str], _Hold] = {}
        self._stopped = threading.Event()
        self._wake: Callable[[], None] = lambda: None
        self._lazily = False
        self._thread = threading.Thread(target=self._main, name="headrace-keeper", daemon=True)

    def start(self, *, lazily: bool = False) -> None:
        """`lazily`: connect only once a lease has been held for so long that it will need to be kept."""
        self._lazily = lazily
        self._thread.start()

    def hold(self, attempts: Iterable[Attempt], now: datetime) -> Iterator[Attempt]:
        """Those whose leases are kept from now on; of the others they have lapsed already.

        All were claimed together: the time is looked at once.
        """
        at = time.monotonic()
        asked = self._settings.lease_seconds
        for attempt in attempts:
            job, context = attempt.job, attempt.context
            left = None
            if job.lease_until is not None:
                left = (job.lease_until - now).total_seconds()
                if left <= 0:
                    continue
            seconds = job.lease_seconds if asked is None else asked
            lease = Lease(job.id, context.token, seconds)
            self._holds[attempt.key] = _Hold(lease, left, context, at)
            yield attempt

    def drop(self, attempt: Attempt) -> None:
        self._holds.pop(attempt.key, None)

    async def close(self) -> None:
        self._stopped.set()
        with contextlib.suppress(RuntimeError):  # its loop is gone: it is about to start again
            self._wake()
        if self._thread.is_alive():
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join, 10.0)

    # --- in the keeper's own thread --------------------------------------------------------------

    def _main(self) -> None:
        """Without it every lease would lapse, so whatever ends it, it starts again."""
        while self._lazily and not self._is_needed():
            if self._stopped.wait(_TICK_SECONDS[0]):
                return
        while not self._stopped.is_set():
            try:
                asyncio.run(self._keep())
            except* StoreError as errors:
                (error, *_) = errors.exceptions
                logger.warning("worker %s cannot keep its leases: %s", self._worker, error)
            except* Exception:
                logger.exception("the keeper of worker %s failed; it starts again", self._worker)
            self._stopped.wait(_RESTART_SECONDS)

    async def _keep(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(stop.set)

        self._wake = wake
        if self._stopped.is_set():
            return
        async with asyncio.TaskGroup() as group:
            # Apart from whatever waits for the store: this is for when it does not answer.
            group.create_task(self._every(stop, self._tick_seconds, self._look_for_lapses))
            group.create_task(self._keep_in(stop))

    async def _keep_in(self, stop: asyncio.Event) -> None:
        """What the store is needed for."""
        manager = await self._app.manager()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    self._every(stop, self._tick_seconds, lambda: self._beat(manager))
                )
                group.create_task(
                    self._every(
                        stop, lambda: self._settings.watch_seconds, lambda: self._watch(manager)
                    )
                )
                if self._settings.maintenance and not manager.capabilities.looks_after_itself:
                    group.create_task(Maintenance(manager).run(stop))
        finally:
            await self._app.close()

    async def _every(
        self,
        stop: asyncio.Event,
        seconds: Callable[[], float],
        step: Callable[[], Awaitable[None]],
    ) -> None:
        while not stop.is_set():
            try:
                await step()
            except (StoreError, TimeoutError) as error:
                why = str(error) or "it did not answer in time"
                logger.warning("worker %s cannot reach the store: %s", self._worker, why)
            try:
                async with asyncio.timeout(seconds()):
                    await stop.wait()
            except TimeoutError:
                pass

    def _tick_seconds(self) -> float:
        shortest, longest = _TICK_SECONDS
        leases = [hold.lease.seconds for hold in self._snapshot() if hold.lease.seconds is not None]
        return min(longest, max(shortest, min(leases, default=longest) / 6))

    def _is_needed(self) -> bool:
        """Before the first heartbeat is due there must be time to connect."""
        soon = time.monotonic() + _CONNECT_SECONDS
        held = self._snapshot()
        return any(hold.lapses_at is not None and hold.beat_at <= soon for hold in held)

    def _snapshot(self) -> Sequence[_Hold]:
        return list(self._holds.values())

    async def _look_for_lapses(self) -> None:
        """A lease that has lapsed is not ours any more, whatever the store may say when it answers."""
        now = time.monotonic()
        for hold in self._snapshot():
            if hold.lapses_at is not None and hold.lapses_at <= now:
                self._tell(hold, Why.LOST)

    async def _beat(self, manager: JobManager) -> None:
        now = time.monotonic()
        due = [
            hold
            for hold in self._snapshot()
            if hold.lapses_at is not None
            and hold.beat_at <= now < hold.lapses_at
            and hold.reported is not Why.LOST
            and not (_is_late(hold, manager) and now < _last_call(hold))
        ]
        if not due:
            return
        asked_at = time.monotonic()
        patience = min(hold.lapses_at for hold in due if hold.lapses_at is not None) - asked_at
        async with asyncio.timeout(max(_BEAT_SECONDS_MIN, patience)):
            answer = await manager.heartbeat([hold.lease for hold in due])
        lost = set(answer.lost)
        for hold in due:
            extended = answer.extended.get(hold.lease.job_id)
            if hold.lease in lost or extended is None:
                self._tell(hold, Why.LOST)
                continue
            hold.beaten(asked_at)
            if extended.state is State.CANCELLING:
                self._tell(hold, Why.CANCELLED)

    async def _watch(self, manager: JobManager) -> None:
        """Ask which of the jobs that have run for a while are still ours: one read, not a write."""
        now = time.monotonic()
        old = [
            hold
            for hold in self._snapshot()
            if hold.reported is None and now - hold.since >= self._settings.watch_seconds
        ]
        if not old:
            return
        states = await manager.held([hold.lease for hold in old])
        for hold in old:
            state = states.get(hold.lease.job_id)
            if state is None:
                self._tell(hold, Why.LOST)
            elif state is State.CANCELLING:
                self._tell(hold, Why.CANCELLED)

    def _tell(self, hold: _Hold, why: Why) -> None:
        if (hold.lease.job_id, hold.lease.token) not in self._holds:
            return  # settled meanwhile
        if hold.reported in (why, Why.LOST):
            return
        hold.reported = why
        try:
            self._loop.call_soon_threadsafe(self._report, hold.lease, why)
        except RuntimeError as error:
            raise HeadraceError("the worker's event loop has ended") from error


def _is_late(hold: _Hold, manager: JobManager) -> bool:
    """Its handler is past its timeout, and has been told to stop. It may use up the lease it has."""
    deadline = hold.context.deadline
    return deadline is not None and manager.clock.now() > deadline


def _last_call(hold: _Hold) -> float:
    """One that has not stopped by then must be holding up the loop: its heartbeat is refused, and ends it."""
    assert hold.lapses_at is not None
    return hold.lapses_at - (hold.lease.seconds or 0.0) / 3
