"""One attempt of one job: from the claimed job to the outcome that is to be recorded."""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from headrace import codec, error_text, validation
from headrace.app.context import Context
from headrace.app.inputs import SEALED_SNOOZE_SECONDS, needs_results, with_results
from headrace.app.task import Task
from headrace.errors import (
    Contention,
    HandlerError,
    HeadraceError,
    InvalidInput,
    JobNotFound,
    Refusal,
    Snooze,
    StoreError,
    TemporaryError,
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
from headrace.model import Category, Failure, Job, failure_told
from headrace.worker.execution import (
    ChildDied,
    Execute,
    HandlerRaised,
    InvalidArguments,
    InvalidResult,
    MemoryExceeded,
)
from headrace.worker.tracebacks import traceback_of

logger = logging.getLogger("headrace.worker")

SNOOZE_SECONDS_DEFAULT = 60.0
REFUSALS_MAX = 5
"""An outcome that is refused for what it holds is replaced, so often at most."""
_LAST_WORDS = timedelta(seconds=1)
UNEXPECTED_MAX = 3
"""One that met an error which is not Headrace's is tried as it is, so often."""


class Why(enum.Enum):
    """Why a running handler was told to stop."""

    CANCELLED = "cancelled"
    LOST = "lost"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"


class NotStarted(Exception):
    """The store could not say what the handler is to be told: nothing was run, nothing is charged."""


def _failure_of(error: Any) -> Failure:
    """What becomes of the job by what its handler raised; it may be of any class, and bite."""
    text, name = error_text.text_of(error), error_text.name_of(error)
    if error_text.is_a(error, InvalidArguments):
        return Failure(text, Category.PERMANENT, "invalid_arguments")
    if error_text.is_a(error, InvalidResult):
        return Failure(text, Category.PERMANENT, "invalid_result")
    if error_text.is_a(error, ChildDied):
        return Failure(text, Category.SYSTEM, "process_died")
    if error_text.is_a(error, MemoryExceeded, MemoryError):
        message = "out of memory" if text == name else text
        return Failure(message, Category.SYSTEM, "memory_exceeded")
    if error_text.is_a(error, HandlerRaised):
        return failure_of(error, code=error.name)
    return failure_of(error)


def _one_line(text: str) -> str:
    """What a handler says is no line of the log's own."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _retry_after(error: Any) -> float | None:
    """What a handler asks for, if it can be meant."""
    if not error_text.is_a(error, TemporaryError):
        return None
    try:
        wanted = error.retry_after
        return None if wanted is None else validation.check_seconds(wanted, "it", zero=True)
    except BaseException:  # noqa: BLE001 - it is the handler's object, and may do anything
        return None


def _encoded(result: Any) -> Any:
    """The result as it will be stored. Here, since what looks at a handler's object may meet anything."""
    if result is None:
        return None
    try:
        return codec.Encoded(codec.encode(result, what="result", limit=codec.PAYLOAD_BYTES_MAX))
    except InvalidInput as error:
        raise InvalidResult(error.message) from error


class Attempt:
    """A claimed job on its way. `stop` may be called at any time, on the worker's loop."""

    __slots__ = (
        "_done",
        "_execute",
        "_has_begun",
        "_has_ended",
        "_log_writer",
        "_refusals",
        "_runner",
        "_started",
        "_stopping",
        "context",
        "job",
        "key",
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
        self._runner: asyncio.Task[None] | None = None
        self._has_begun = False
        self._has_ended = False
        self._log_writer: asyncio.Task[None] | None = None
        self._refusals = 0
        self._started: float | None = None
        self.context = Context(task.app, job, manager)
        self.key = (job.id, self.context.token)
        """Unlike that of any other attempt."""

    def start(
        self,
        done: Callable[[Attempt, Outcome | None], None],
        stopping: Callable[[Attempt], None],
    ) -> None:
        """Run on the present loop.

        `done` hears the outcome, None where there is none to record; `stopping` that the handler was
        told to stop.
        """
        self._done = done
        self._stopping = stopping
        self._runner = asyncio.get_running_loop().create_task(self._run())

    def stop(self, why: Why) -> None:
        """Tell the handler to stop, once. The first reason counts, but a lost lease overrules it."""
        was_told = self.why is not None
        if not was_told or why is Why.LOST:
            self.why = why
        self.context.tell_cancelled()
        if was_told or self._has_ended:
            return  # it is cleaning up, or its outcome is known already
        if self._runner is None or self._runner.done():
            return
        self._runner.cancel()
        if self._has_begun:
            self._stopping(self)
        else:
            self._done(self, self._stopped())  # it never gets to say so itself

    def stop_if_late(self, now: datetime) -> None:
        """Stop a handler that has run into its execution timeout, or the end of its job's lifetime.

        What it has to say of the latter is refused, and the job is dead.
        """
        deadlines = (self.context.deadline, self.job.expires_at)
        ends = min((end for end in deadlines if end is not None), default=None)
        if ends is None or self.why is not None or self._has_ended:
            return
        if now >= ends:
            self.stop(Why.TIMEOUT)
        elif ends - now <= self._last_words and self._log_writer is None:
            # What it has logged could not be written any more then.
            self._log_writer = asyncio.get_running_loop().create_task(self._write_log())

    @property
    def _last_words(self) -> timedelta:
        """So long before the deadline the log is written."""
        seconds = self.job.timeout_seconds
        return _LAST_WORDS if seconds is None else min(_LAST_WORDS, timedelta(seconds=seconds / 4))

    async def _write_log(self) -> None:
        if self.context.has_unwritten_log:
            await self._flush_log()

    @property
    def seconds(self) -> float:
        """How long the handler has run."""
        return 0.0 if self._started is None else time.monotonic() - self._started

    def give_up(self) -> Outcome | None:
        """The outcome of a handler that did not stop when it was told to; it is left behind."""
        return self._stopped()

    def after_refusal(self, outcome: Outcome, error: Exception) -> Outcome | None:
        """What to record instead of an outcome that was refused; None: nothing."""
        if isinstance(error, Refusal | JobNotFound):
            return None  # the job is not ours any more
        self._refusals += 1
        if self._refusals > REFUSALS_MAX:
            return None
        if isinstance(error, Contention):
            return outcome
        if not isinstance(error, HeadraceError) and self._refusals <= UNEXPECTED_MAX:
            return outcome  # it says nothing of the outcome yet: a store may stumble, too
        if isinstance(outcome, Completed):
            return self._failed(InvalidResult(error_text.text_of(error)))
        return self._failure(
            Failure("the outcome could not be recorded", Category.SYSTEM, "unrecordable")
        )

    async def _run(self) -> None:
        """Whatever happens here, the attempt is closed: a job must not be forgotten while it is held."""
        self._has_begun = True
        self._started = time.monotonic()
        outcome: Outcome | None = None
        try:
            outcome = await self._outcome()
        except BaseException as error:  # noqa: BLE001 - a defect of ours, or a handler's object that bites
            outcome = self._failure(
                Failure(
                    f"a {error_text.name_of(error)} went astray", Category.SYSTEM, "attempt_failed"
                )
            )
        finally:
            self._has_ended = True
            self._done(self, outcome)

    async def _handled(self) -> Any:
        """What the handler returns; a follow-up that is not needed has none."""
        job = self.job
        if job.is_sealed:
            raise Snooze(SEALED_SNOOZE_SECONDS)  # another worker may have the key
        if not job.tags and not needs_results(job):
            return await self._execute(self.task, self.context)
        try:
            hook_call = await self.context.manager.hook_call(job) if job.tags else None
            if needs_results(job):
                self.context.job = job = await with_results(job, self.context.manager)
        except StoreError as error:
            raise NotStarted from error
        if hook_call is not None:
            if not hook_call.wanted:
                return hook_call.note
            self.context.job = replace(
                job,
                payload_json=codec.encode(
                    hook_call.payload(job.payload), limit=codec.PAYLOAD_BYTES_MAX
                ),
            )
        return await self._execute(self.task, self.context)

    async def _outcome(self) -> Outcome | None:
        job = self.job
        try:
            result = _encoded(await self._handled())
            outcome: Outcome | None = Completed(
                job_id=job.id, token=job.token, known=job, result=result
            )
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug(
                    "job %s (%s) returned, attempt %d, after %.3f s",
                    job.id,
                    job.type,
                    job.attempt,
                    self.seconds,
                )
        except asyncio.CancelledError:
            outcome = self._stopped()
        except NotStarted:
            outcome = Released(job_id=job.id, token=job.token, known=job)
        except Snooze as snooze:
            outcome = self._snoozed(snooze)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            # What it raises while it is being stopped is part of that.
            outcome = self._failed(error) if self.why is None else self._stopped()
        self._has_ended = True
        if self.context.has_unwritten_log and self.why is not Why.LOST:
            await self._flush_log()
        return outcome

    async def _flush_log(self) -> None:
        """What the handler logged. Whatever keeps it from being written, the outcome is what it is."""
        left = self.context.remaining_seconds
        try:
            # A result that is known must not come too late because its log is slow to write.
            async with asyncio.timeout(None if left is None else max(left, 0.0) / 2):
                await self.context.flush_log()
        except (HeadraceError, TimeoutError):
            pass  # a lease that is gone is what recording the outcome will hear of, too
        except Exception as error:  # noqa: BLE001 - its fields are the handler's objects
            logger.warning(
                "the log of job %s, attempt %d, cannot be written: %s",
                self.job.id,
                self.job.attempt,
                error_text.text_of(error),
            )

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
        try:
            seconds = snooze.seconds
            if seconds is None and snooze.until is None:
                seconds = SNOOZE_SECONDS_DEFAULT
            until = later(self.context.clock.now(), until=snooze.until, seconds=seconds)
        except InvalidInput as error:
            return self._failed(error)
        except BaseException:  # noqa: BLE001 - what it asks for is the handler's object
            return self._failed(InvalidInput("the handler snoozed for a time that cannot be read"))
        return Snoozed(job_id=self.job.id, token=self.job.token, known=self.job, until=until)

    def _failed(self, error: BaseException) -> Outcome:
        failure = _failure_of(error)
        try:
            self._log(failure, error)
        except BaseException:  # noqa: BLE001 - its traceback asks it for its text
            logger.warning("what job %s raised cannot be logged", self.job.id)
        self._keep_traceback(failure, error)
        return self._failure(failure, _retry_after(error))

    def _log(self, failure: Failure, error: BaseException) -> None:
        """Tell what went wrong.

        What a handler raises to say how it failed needs no traceback. Of an encrypted job neither the
        message nor the traceback is told: they may quote what it holds.
        """
        job = self.job
        is_secret = job.seals is not None
        is_expected = error_text.is_a(error, HandlerError, InvalidArguments, InvalidResult)
        logger.log(
            logging.INFO if is_expected else logging.WARNING,
            "job %s (%s) failed, attempt %d: %s",
            job.id,
            job.type,
            job.attempt,
            _one_line(failure_told(failure.code, None if is_secret else failure.message)),
            exc_info=None if is_secret or is_expected else error,
            extra={
                "job_id": job.id,
                "type": job.type,
                "queue": job.queue,
                "attempt": job.attempt,
                "category": failure.category.value,
                "error_code": failure.code,
            },
        )

    def _keep_traceback(self, failure: Failure, error: BaseException) -> None:
        """Where it failed is kept with the job; a handler in a child process has said so already."""
        if self.context.traceback is None:
            self.context.traceback = traceback_of(error)
        self.context.log_failure(failure.told)

    def _failure(self, failure: Failure, retry_after: float | None = None) -> Failed:
        job = self.job
        return Failed(
            job_id=job.id, token=job.token, known=job, failure=failure, retry_after=retry_after
        )
