"""The worker: claims jobs, runs their handlers, keeps their leases, records how they ended."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta

from msgspec.structs import replace

from headrace import address, webhooks
from headrace.app import Headrace
from headrace.errors import UnknownTask
from headrace.manager import JobManager, Outcome
from headrace.model import Job, Lease
from headrace.stores.base import WorkerProcess
from headrace.version import VERSION
from headrace.worker.attempt import Attempt, Why
from headrace.worker.builtin import builtin_tasks
from headrace.worker.children import Children, is_isolable
from headrace.worker.execution import Execution
from headrace.worker.keeper import Keeper
from headrace.worker.settings import Settings, worker_name
from headrace.worker.settling import Settler
from headrace.worker.supply import Supply
from headrace.worker.threads import Threads

logger = logging.getLogger("headrace.worker")

_DEADLINE_SECONDS = 0.05
"""How exactly execution timeouts are kept."""
_AHEAD_MAX = timedelta(seconds=1)
"""How long a job may wait here for its start; then others may have it."""
_SETTLE_SECONDS = 10.0
"""How long a worker that ends waits for a store that does not take its last outcomes."""
_STOP_SLACK_SECONDS = 0.5
"""Threads and children have waited `stop_seconds` themselves by then."""


class Worker:
    """Runs the jobs of one application in this process, on the running event loop.

    `run` goes on until `stop`; a stopping worker claims no more, lets handlers finish within the grace
    period and gives the rest back at no cost to their budget. Killed, its leases lapse and others go on.
    """

    def __init__(
        self, app: Headrace, settings: Settings | None = None, *, name: str | None = None
    ) -> None:
        self.app = app
        self.settings = _with_webhooks(settings or Settings(), app)
        self.name = name or worker_name()
        if not app.tasks:
            raise UnknownTask(
                "the application has no tasks: there is nothing to run; let the module of the application "
                "import the modules whose functions are decorated with @app.task"
            )
        self._tasks = {
            type_: task
            for task in (*app.tasks.values(), *builtin_tasks(app))
            for type_ in task.types
        }
        self._running: dict[tuple[str, str], Attempt] = {}
        self._claimed: deque[Attempt] = deque()
        self._left_behind: set[Attempt] = set()
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._ended = asyncio.Event()

    def stop(self, *, now: bool = False) -> None:
        """Stop claiming and come to an end; `now`: without waiting for handlers."""
        self._stop.set()
        if now:
            self._stop_now.set()

    @property
    def is_stopping(self) -> bool:
        """It claims no more."""
        return self._stop.is_set()

    async def reach_store(self) -> None:
        """Raises where the store does not answer."""
        await (await self.app.manager()).tail()

    async def run(self) -> None:
        """Work until `stop`. The application's hooks of start and end run before and after."""
        async with self._hooks():
            await self._run()

    async def _run(self) -> None:
        await self._set_up()
        self._keeper.start()
        logger.info("%s", self._introduction(), extra={"worker": self.name})
        supply = asyncio.create_task(self._supply.run())
        present = asyncio.create_task(self._supply.stay_present())
        settle = asyncio.create_task(self._settler.run())
        deadlines = asyncio.create_task(self._watch_deadlines())
        stopping = asyncio.create_task(self._stop.wait())
        grace_seconds = self.settings.grace_seconds
        try:
            await asyncio.wait(
                {supply, present, settle, deadlines, stopping},
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            grace_seconds = 0.0
            raise
        finally:
            # However it ends: no handler goes on without its lease, and no job is forgotten.
            self._stop.set()
            supply.cancel()
            self._supply.drain()
            await asyncio.wait({supply})
            ended_by = [_error_of(one) for one in (supply, present, settle, deadlines)]
            if any(ended_by):
                grace_seconds = 0.0  # what holds the worker together is gone: others do it better
            try:
                await self._wind_down(grace_seconds, settle)
            finally:
                for helper in (stopping, settle, deadlines, present):
                    helper.cancel()
                await asyncio.wait({present})
                _error_of(present)  # how it ended while we wound down is nobody's trouble any more
                await self._close()
        for error in ended_by:
            if error is not None:
                raise error

    def _introduction(self) -> str:
        """Where it works, and on what: the first thing to compare when jobs are waited for in vain."""
        queues = self.settings.queues
        tasks = ", ".join(sorted(self.app.tasks)) or "none"
        return (
            f"worker {self.name} on {address.shown(self.app.url)}"
            f"{'' if self.app.tenant is None else f', tenant {self.app.tenant}'}; "
            f"queues: {'all' if queues is None else ', '.join(queues)}; tasks: {tasks}"
        )

    @property
    def has_left_behind(self) -> bool:
        """A handler still runs, though it was told to stop."""
        return bool(self._left_behind)

    async def drain(self, *, jobs: int | None = None) -> int:
        """Run what is due now, and what becomes due thereby, until there is no more; how many ran.

        Leases are kept; there is no maintenance. For tests, and for scripts that end.
        """
        async with self._hooks():
            return await self._drain(jobs)

    def _hooks(self) -> AbstractAsyncContextManager[None]:
        return self.app.running_hooks()

    async def _drain(self, jobs: int | None) -> int:
        await self._set_up()
        settle = asyncio.create_task(self._settler.run())
        deadlines = asyncio.create_task(self._watch_deadlines())
        present = asyncio.create_task(self._supply.stay_present())
        self._keeper.start(lazily=True)
        count = 0
        try:
            while jobs is None or count < jobs:
                room = min(self.settings.batch, self.settings.concurrency)
                limit = room if jobs is None else min(room, jobs - count)
                claimed = (await self._supply.claim(limit)).jobs
                if not claimed:
                    break
                count += len(claimed)
                while self._running or self._claimed:
                    self._ended.clear()
                    await self._ended.wait()
                await self._flush(settle, None)
                if settle.done():
                    settle.result()  # raises what ended it
            return count
        finally:
            for helper in (settle, deadlines, present):
                helper.cancel()
            await self._close()

    async def _close(self) -> None:
        """Whatever else went wrong: threads that stay would keep the process from ending."""
        try:
            await self._keeper.close()
        finally:
            self._threads.close()
            await self._children.close()

    async def _set_up(self) -> None:
        self._manager: JobManager = await self.app.manager()
        settings = self.settings
        self._threads = Threads(settings.concurrency, settings.stop_seconds)
        self._children = Children(settings)
        self._execution = self._make_execution()
        self._executes = {type_: self._execution.of(task) for type_, task in self._tasks.items()}
        self._keeper = Keeper(self.app, self.name, settings, self._reported)
        self._settler = Settler(self._manager, batch=settings.batch, on_settled=self._settled)
        self._supply = Supply(
            self._manager,
            worker=self.name,
            types=tuple(self._tasks),
            settings=settings,
            free=lambda: settings.concurrency - len(self._running) - len(self._claimed),
            busy=lambda: len(self._running),
            take=self._take,
            process=WorkerProcess(
                host=socket.gethostname(),
                pid=os.getpid(),
                version=VERSION,
                started_at=self._manager.clock.now(),
            ),
        )

    def _make_execution(self) -> Execution:
        return Execution(
            threads=self._threads, children=self._children, middleware=self.app.middleware
        )

    # --- the way of a job ------------------------------------------------------------------------

    def _take(self, jobs: Sequence[Job]) -> None:
        attempts = [self._attempt(job) for job in jobs]
        self._claimed.extend(self._keeper.hold(attempts, self._manager.clock.now()))
        self._start()

    def _attempt(self, job: Job) -> Attempt:
        task = self._tasks[job.type]
        if job.losses > 1 and self.settings.isolate_suspects and is_isolable(task):
            execute = self._execution.of(task, isolated=True)
        else:
            execute = self._executes[job.type]
        return Attempt(job, task, self._manager, execute)

    def _start(self) -> None:
        while (
            self._claimed
            and len(self._running) < self.settings.concurrency
            and not self._stop.is_set()
        ):
            attempt = self._claimed.popleft()
            self._running[attempt.key] = attempt
            attempt.start(self._finished, self._stopping)

    def _finished(self, attempt: Attempt, outcome: Outcome | None) -> None:
        if attempt in self._left_behind:
            self._left_behind.discard(attempt)
            return
        self._close_attempt(attempt, outcome)

    def _close_attempt(self, attempt: Attempt, outcome: Outcome | None) -> None:
        self._running.pop(attempt.key, None)
        for observer in self.app.observers:
            try:
                observer.attempt_ended(attempt.job, outcome, attempt.seconds)
            except Exception:
                logger.exception("an observer failed; the job is none the worse")
        if outcome is None:
            self._keeper.drop(attempt)
        else:
            self._settler.put(attempt, outcome)
        if self._claimed:
            self._start()
        self._supply.freed()
        self._ended.set()

    def _settled(self, attempt: Attempt) -> None:
        self._keeper.drop(attempt)

    def _reported(self, lease: Lease, why: Why) -> None:
        """The keeper says that the attempt must stop."""
        attempt = self._running.get((lease.job_id, lease.token))
        if attempt is not None:
            attempt.stop(why)
            return
        for waiting in [one for one in self._claimed if one.key == (lease.job_id, lease.token)]:
            self._claimed.remove(waiting)
            waiting.why = why
            self._close_attempt(waiting, waiting.give_up())

    async def _watch_deadlines(self) -> None:
        """One look at all handlers every now and then is cheaper than a timer for each."""
        while True:
            await asyncio.sleep(_DEADLINE_SECONDS)
            now = self._manager.clock.now()
            for attempt in list(self._running.values()):
                attempt.stop_if_late(now)
            self._give_back_what_waits(now)

    def _give_back_what_waits(self, now: datetime) -> None:
        """Jobs claimed ahead that do not get to start are for others to run."""
        while self._claimed:
            claimed_at = self._claimed[0].job.assigned_at
            if claimed_at is None or now - claimed_at < _AHEAD_MAX:
                return
            attempt = self._claimed.popleft()
            attempt.why = Why.SHUTDOWN
            self._close_attempt(attempt, attempt.give_up())

    def _stopping(self, attempt: Attempt) -> None:
        """A handler was told to stop. One that does not is left behind: it must not keep its slot."""
        assert attempt.why is not None
        logger.info(
            "job %s is told to stop: %s",
            attempt.job.id,
            attempt.why.value,
            extra={
                "job_id": attempt.job.id,
                "attempt": attempt.job.attempt,
                "why": attempt.why.value,
            },
        )
        asyncio.get_running_loop().call_later(
            self.settings.stop_seconds + _STOP_SLACK_SECONDS, self._leave_behind, attempt
        )

    def _leave_behind(self, attempt: Attempt) -> None:
        if self._running.get(attempt.key) is attempt:
            logger.warning("the handler of job %s did not stop; it is left behind", attempt.job.id)
            self._left_behind.add(attempt)
            self._close_attempt(attempt, attempt.give_up())

    # --- the end ---------------------------------------------------------------------------------

    async def _wind_down(self, grace_seconds: float, settle: asyncio.Task[None]) -> None:
        """What has not started is given back at once; what runs may finish within the grace period."""
        while self._claimed:
            attempt = self._claimed.popleft()
            attempt.why = Why.SHUTDOWN
            self._close_attempt(attempt, attempt.give_up())
        if self._running:
            logger.info("worker %s waits for %d handlers", self.name, len(self._running))
        await self._until_idle(grace_seconds)
        for attempt in list(self._running.values()):
            attempt.stop(Why.SHUTDOWN)
        await self._until_idle(self.settings.stop_seconds)
        for attempt in list(self._running.values()):
            self._leave_behind(attempt)
        if not settle.done():
            await self._flush(settle, _SETTLE_SECONDS)
            return
        again = asyncio.create_task(self._settler.run())  # for what the first has left
        try:
            await self._flush(again, _SETTLE_SECONDS)
        finally:
            again.cancel()

    async def _flush(self, settle: asyncio.Task[None], seconds: float | None) -> None:
        """Until every outcome is recorded; not beyond the settler's end, or that of our patience."""
        flushed = asyncio.create_task(self._settler.flushed())
        now = asyncio.create_task(self._stop_now.wait())
        await asyncio.wait(
            {flushed, now, settle}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not flushed.done():
            logger.error("worker %s ends with outcomes that are not recorded", self.name)
        flushed.cancel()
        now.cancel()

    async def _until_idle(self, seconds: float) -> None:
        now = asyncio.create_task(self._stop_now.wait())
        try:
            async with asyncio.timeout(seconds):
                while self._running and not self._stop_now.is_set():
                    self._ended.clear()
                    ended = asyncio.create_task(self._ended.wait())
                    await asyncio.wait({ended, now}, return_when=asyncio.FIRST_COMPLETED)
                    ended.cancel()
        except TimeoutError:
            pass
        finally:
            now.cancel()


def _with_webhooks(settings: Settings, app: Headrace) -> Settings:
    """A worker of named queues delivers webhooks, too: else it might be that nobody does."""
    if settings.queues is None or not app.webhook_secrets:
        return settings
    return replace(settings, queues=[*settings.queues, webhooks.QUEUE])


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    """What ended it; None while it runs, or when it was told to end."""
    return task.exception() if task.done() and not task.cancelled() else None
