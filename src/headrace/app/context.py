"""What a handler knows of its job, and what it can say while it runs."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from headrace import codec, completion, lifecycle, validation
from headrace.app.bridge import Bridge
from headrace.app.results import BatchResult, batch_results
from headrace.clock import Clock
from headrace.duration import Seconds
from headrace.errors import InvalidInput, InvalidLimit, Snooze
from headrace.input_checks import guarded
from headrace.manager import JobManager
from headrace.model import Failure, Job
from headrace.redaction import Redacted
from headrace.spec import JobSpec

if TYPE_CHECKING:
    from headrace.app.application import Headrace

LOG_LINES_MAX = 200
LOG_LINE_CHARS_MAX = 2000
LOG_BYTES_MAX = 64 * 1024
TRACEBACKS_MAX = 3
"""So many attempts that failed keep where they did, the last ones."""


class PreviousAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """How the attempt before this one went, as far as the job knows."""

    failures: int
    losses: int
    """Attempts whose worker vanished: what they did to the outside world is not known."""
    failure: Failure | None
    failed_at: datetime | None


class LogLine(Redacted, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line that a handler logged."""

    at: datetime
    attempt: int
    text: str
    fields: dict[str, Any] = {}
    traceback: str | None = None
    """Where the attempt failed, if it did. Only the last few lines that have one keep it."""


@guarded
class Context:
    """One attempt of one job, as its handler sees it.

    Everything it writes is fenced by the lease: once that is lost, each call raises why. A handler that
    takes a parameter annotated `Context` (a sync one: `SyncContext`) is given it; others can ask
    `Context.current()`.
    """

    def __init__(self, app: Headrace, job: Job, manager: JobManager) -> None:
        assert job.token is not None, "a handler runs under a lease"
        self.app = app
        self.job = job
        self.manager = manager
        self.token: str = job.token
        """The fencing token: an outside system that remembers the last can refuse a late attempt."""
        self._has_begun = False
        self._deadline: datetime | None = None
        self._is_cancelled = False
        self.has_seen_cancellation = False
        """The handler has looked at `is_cancelled` since it was told to stop."""
        self._lines: list[LogLine] = []
        self._lines_dirty = False
        self.traceback: str | None = None
        """Where the handler failed, as soon as that is known."""

    @staticmethod
    def current() -> Context:
        """The context of the handler that is running. LookupError outside of one."""
        return _current.get()

    @property
    def is_cancelled(self) -> bool:
        """Somebody asked to stop, or the lease is gone. Handlers in threads should look now and then.

        One that has seen it and then returns has stopped: what it returns is no result.
        """
        if self._is_cancelled:
            self.has_seen_cancellation = True
        return self._is_cancelled

    def tell_cancelled(self) -> None:
        """Let `is_cancelled` say so."""
        self._is_cancelled = True

    def begin(self) -> None:
        """The handler starts now. Its execution timeout counts from the claim: so does the store."""
        self._has_begun = True

    @property
    def deadline(self) -> datetime | None:
        """When the execution timeout strikes, by the store's clock; None before the handler starts."""
        if self._deadline is None and self._has_begun:
            # Worked out when it is first asked for: most handlers have ended before.
            self._deadline = lifecycle.times_out_at(self.job)
        return self._deadline

    @property
    def attempt(self) -> int:
        return self.job.attempt

    @property
    def clock(self) -> Clock:
        return self.manager.clock

    @property
    def previous(self) -> PreviousAttempt | None:
        """None on the first attempt."""
        job = self.job
        if job.attempt <= 1:
            return None
        return PreviousAttempt(
            failures=job.failures,
            losses=job.losses,
            failure=job.failure,
            failed_at=job.last_failed_at,
        )

    @property
    def last_checkpoint(self) -> Any:
        """What an earlier attempt (or this one) left with `checkpoint`; None if nothing."""
        return self.job.checkpoint

    @property
    def remaining_seconds(self) -> float | None:
        """Until the execution timeout. None: there is none."""
        if self.deadline is None:
            return None
        return (self.deadline - self.clock.now()).total_seconds()

    async def progress(self, fraction: float, note: str | None = None) -> None:
        """How far the attempt is, 0 to 1."""
        await self.manager.progress(self.job.id, self.token, fraction, note)

    async def checkpoint(self, value: Any) -> None:
        """What the next attempt should know, should this one not finish."""
        await self.manager.checkpoint(self.job.id, self.token, value)
        self.job = msgspec.structs.replace(self.job, checkpoint_json=codec.encode(value))

    async def spawn(self, *specs: JobSpec) -> tuple[Job, ...]:
        """Submit jobs as children of this one: all or none, and only while the lease holds."""

        async def store(specs: Sequence[JobSpec]) -> tuple[Job, ...]:
            return (await self.manager.spawn(self.job.id, self.token, specs)).jobs

        return await self.app.through_middleware(specs, store)

    async def batch_results(self) -> AsyncIterator[BatchResult]:
        """In the callback of a batch: `async for` every job of it, its state and its result or failure.

        Raises InvalidInput in any other job.
        """
        batch_id = completion.batch_of(self.job)
        jobs = self.manager if self.manager.tenant else self.manager.scoped(self.job.tenant)
        async for one in batch_results(jobs, batch_id, self.app.task_of):
            yield one

    def snooze(self, seconds: Seconds | None = None, *, until: datetime | None = None) -> None:
        """End this attempt here and run the job again later, at no cost to its budget."""
        raise Snooze(seconds, until=until)

    def shorten_timeout(self, seconds: Seconds) -> None:
        """Ask for a shorter execution timeout, from now. A longer one is refused."""
        left = validation.check_seconds(seconds, "the timeout", zero=True)
        wanted = self.clock.now() + timedelta(seconds=left)
        if self.deadline is not None and wanted > self.deadline:
            raise InvalidLimit(
                f"{seconds} s from now is later than the job's own deadline; it stays as it was"
            )
        self._deadline = wanted

    def log(self, text: str, **fields: Any) -> None:
        """Keep a line with the job. Written with the next flush, at the latest when the attempt ends."""
        line = LogLine(
            at=self.clock.now(),
            attempt=self.attempt,
            text=text[:LOG_LINE_CHARS_MAX],
            fields=fields,
        )
        try:
            msgspec.json.encode(line)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the fields of a log line must be JSON: {error}") from error
        self._lines.append(line)
        del self._lines[:-LOG_LINES_MAX]
        self._lines_dirty = True

    def keep_traceback(self, traceback: str) -> None:
        """Where the handler failed: said by the child process that ran it."""
        self.traceback = traceback

    def log_failure(self, text: str) -> None:
        """Keep where the attempt failed, if that is known, with the job."""
        if self.traceback is not None:
            self.log(text.encode("utf-8", "replace").decode())
            self._lines[-1] = msgspec.structs.replace(self._lines[-1], traceback=self.traceback)

    @property
    def has_unwritten_log(self) -> bool:
        return self._lines_dirty

    async def flush_log(self) -> None:
        """Write the lines logged so far. The oldest give way when there are too many."""
        kept: Sequence[Any] = _with_last_tracebacks(
            [*self.job.log, *msgspec.to_builtins(self._lines)][-LOG_LINES_MAX:]
        )
        while len(msgspec.json.encode(kept)) > LOG_BYTES_MAX:
            kept = kept[len(kept) // 4 + 1 :]
        lines = msgspec.to_builtins(kept)
        self._lines_dirty = False
        try:
            await self.manager.keep_log(self.job.id, self.token, lines)
        except BaseException:
            self._lines_dirty = True
            raise


def _with_last_tracebacks(lines: Sequence[Any]) -> list[Any]:
    """The lines, oldest first, with the tracebacks of the last that have one."""
    kept: list[Any] = []
    tracebacks = 0
    for line in reversed(lines):
        has_one = isinstance(line, dict) and "traceback" in line
        tracebacks += has_one
        if has_one and tracebacks > TRACEBACKS_MAX:
            line = {name: value for name, value in line.items() if name != "traceback"}  # noqa: PLW2901
        kept.append(line)
    return kept[::-1]


class SyncContext(Bridge):
    """The context of a sync handler: everything that Context has, called without await."""


def enter(context: Any) -> None:
    """Let `Context.current` give this context for the rest of the present task or thread call."""
    _current.set(context)


_current: contextvars.ContextVar[Context] = contextvars.ContextVar("headrace_context")
