"""One attempt of one job: from the claimed job to the outcome that is to be recorded."""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.app.context import Context
from headrace.app.task import Task
from headrace.errors import (
    HeadraceError,
    InvalidInput,
    InvalidPayload,
    Snooze,
)
from headrace.manager import (
    CancelAcknowledged,
    Completed,
    Failed,
    JobManager,
    Outcome,
    Released,
    Snoozed,
)
from headrace.manager.settlement import failure_of, later
from headrace.model import Category, Failure, Job
from headrace.worker.execution import ChildDied, Execute, HandlerRaised, MemoryExceeded

SNOOZE_SECONDS_DEFAULT = 60.0


class Why(enum.Enum):
    """Why a running handler was told to stop."""

    CANCELLED = "cancelled"
    LOST = "lost"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"


class Attempt:
    """A claimed job on its way. `stop` may be called at any time, on the worker's loop."""

    __slots__ = (
        "_deadline_timer",
        "_execute",
        "_runner",
        "_stopping",
        "context",
        "job",
        "task",
        "why",
    )

    def __init__(
        self, job: Job, task: Task[..., Any], manager: JobManager, execute: Execute
    ) -> None:
        self.job = job
        self.task = task
        self.why: Why | None = None
        self._execute = execute
        self._runner: asyncio.Task[Outcome | None] | None = None
        self._deadline_timer: asyncio.TimerHandle | None = None
        deadline = None
        if job.timeout_seconds is not None:
            deadline = manager.clock.now() + timedelta(seconds=job.timeout_seconds)
        self.context = Context(job, manager, deadline=deadline)

    def start(
        self,
        done: Callable[[Attempt, Outcome | None], None],
        stopping: Callable[[Attempt], None],
    ) -> None:
        """Run on the present loop.

        `done` hears the outcome, None where there is none to record; `stopping` that the handler was
        told to stop.
        """
        self._stopping = stopping
        loop = asyncio.get_running_loop()
        if self.job.timeout_seconds is not None:
            self._deadline_timer = loop.call_later(self.job.timeout_seconds, self.stop, Why.TIMEOUT)
        self.context.on_deadline = lambda: loop.call_soon_threadsafe(self._rearm)
        self._runner = loop.create_task(self._run())
        self._runner.add_done_callback(lambda runner: self._ended(runner, done))

    def stop(self, why: Why) -> None:
        """Tell the handler to stop. The first reason counts, except that a lost lease overrules all."""
        if self.why is None or why is Why.LOST:
            self.why = why
        self.context.is_cancelled = True
        if self._runner is not None and not self._runner.done():
            self._runner.cancel()
            self._stopping(self)

    def give_up(self) -> Outcome | None:
        """The outcome of a handler that did not stop when it was told to; it is left behind."""
        return self._stopped()

    def after_refusal(self, outcome: Outcome, error: HeadraceError) -> Outcome | None:
        """What to record instead of an outcome that was refused; None: nothing."""
        if isinstance(outcome, Completed) and isinstance(error, InvalidInput):
            return self._failure(Failure(str(error), Category.PERMANENT, "invalid_result"))
        return None

    def _rearm(self) -> None:
        remaining = self.context.remaining_seconds
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        if remaining is not None:
            self._deadline_timer = asyncio.get_running_loop().call_later(
                max(0.0, remaining), self.stop, Why.TIMEOUT
            )

    def _ended(
        self,
        runner: asyncio.Task[Outcome | None],
        done: Callable[[Attempt, Outcome | None], None],
    ) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        # Cancelled before its first step, it never got to say so itself.
        done(self, self._stopped() if runner.cancelled() else runner.result())

    async def _run(self) -> Outcome | None:
        job = self.job
        try:
            result = await self._execute(self.task, self.context)
            outcome: Outcome | None = Completed(
                job_id=job.id, token=job.token, known=job, result=result
            )
        except asyncio.CancelledError:
            outcome = self._stopped()
        except Snooze as snooze:
            outcome = self._snoozed(snooze)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            outcome = self._failed(error)
        if self.context.has_unwritten_log and self.why is not Why.LOST:
            # A lease that is gone is what recording the outcome will hear of, too.
            with contextlib.suppress(HeadraceError):
                await self.context.flush_log()
        return outcome

    def _stopped(self) -> Outcome | None:
        job = self.job
        match self.why:
            case Why.LOST:
                return None
            case Why.CANCELLED:
                return CancelAcknowledged(
                    job_id=job.id, token=job.token, known=None, was_executing=True
                )
            case Why.SHUTDOWN:
                return Released(job_id=job.id, token=job.token, known=job)
            case Why.TIMEOUT:
                return self._failure(
                    Failure(
                        f"the handler ran longer than {job.timeout_seconds:g} s"
                        if job.timeout_seconds is not None
                        else "the handler ran longer than it asked for",
                        Category.TIMEOUT,
                        "execution_timeout",
                    )
                )
            case None:
                return self._failure(
                    Failure("the handler cancelled itself", Category.TEMPORARY, "CancelledError")
                )

    def _snoozed(self, snooze: Snooze) -> Outcome:
        seconds = snooze.seconds
        if seconds is None and snooze.until is None:
            seconds = SNOOZE_SECONDS_DEFAULT
        try:
            until = later(self.context.clock.now(), until=snooze.until, seconds=seconds)
        except InvalidInput as error:
            return self._failed(error)
        return Snoozed(job_id=self.job.id, token=self.job.token, known=self.job, until=until)

    def _failed(self, error: BaseException) -> Outcome:
        match error:
            case InvalidPayload():
                # Not the handler's doing: what is stored does not fit, and never will.
                failure = Failure(str(error), Category.PERMANENT, "invalid_arguments")
            case ChildDied():
                failure = Failure(str(error), Category.SYSTEM, "process_died")
            case MemoryExceeded() | MemoryError():
                failure = Failure(str(error) or "out of memory", Category.SYSTEM, "memory_exceeded")
            case HandlerRaised(name=name):
                failure = failure_of(error, code=name)
            case _:
                failure = failure_of(error)
        return self._failure(failure, getattr(error, "retry_after", None))

    def _failure(self, failure: Failure, retry_after: float | None = None) -> Failed:
        job = self.job
        return Failed(
            job_id=job.id, token=job.token, known=job, failure=failure, retry_after=retry_after
        )
