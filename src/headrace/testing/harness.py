"""For the tests of applications: your tasks on a store in memory, with a clock that you move.

    async with Harness(app) as harness:
        await send_email.submit("ada@example.org")
        harness.assert_submitted(send_email, to="ada@example.org")
        await harness.drain()

Nothing waits for real time, so retries of tomorrow and crashes of workers take milliseconds.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from datetime import timedelta
from typing import Any, Self

from headrace.app import Context, Headrace, Middleware, Task
from headrace.app.bridge import Bridge
from headrace.app.middleware import Submit
from headrace.clock import ManualClock
from headrace.manager import JobManager, Outcome
from headrace.model import LEASED, Job
from headrace.spec import JobSpec
from headrace.worker import Settings, Worker
from headrace.worker.attempt import Attempt
from headrace.worker.execution import Execution, on_loop

_SETTINGS = Settings(concurrency=10, maintenance=False, isolate_suspects=False)
_PAST_THE_LEASE = timedelta(seconds=1)


class Crash(enum.Enum):
    """Where a worker dies."""

    BEFORE_HANDLER = "before"
    """After the claim: the handler never ran."""
    AFTER_HANDLER = "after"
    """After the side effect, before the acknowledgement: what was done is not recorded."""


class Harness:
    """The application on `memory:` while the block lasts; outside of it nothing has changed.

    `inline`: whatever is submitted has run when `submit` returns.
    """

    def __init__(
        self, app: Headrace, *, clock: ManualClock | None = None, inline: bool = False
    ) -> None:
        self.app = app
        self.clock = clock or ManualClock()
        self.submitted: list[Job] = []
        """Every job that was submitted through the application, in order."""
        self._inline = inline
        self._exits = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._exits.enter_context(
            self.app.using(
                "memory:", clock=self.clock, middleware=(_Recorder(self), *self.app.middleware)
            )
        )
        await self._exits.enter_async_context(self.app)
        await self._exits.enter_async_context(self.app.running_hooks())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._exits.aclose()

    async def manager(self) -> JobManager:
        return await self.app.manager()

    # --- looking ---------------------------------------------------------------------------------

    def assert_submitted(self, task: Task[..., Any], *, times: int = 1, **arguments: Any) -> None:
        """That the task was submitted so often with these arguments, whatever the others were."""
        wanted = task.arguments.partial(arguments)
        same = [job for job in self.submitted if self.app.task_of(job.type) is task]
        found = [job for job in same if wanted.items() <= (job.payload or {}).items()]
        if len(found) != times:
            calls = "".join(f"\n  {task.name}({_shown(job)})" for job in same) or " nothing"
            raise AssertionError(
                f"{task.name} was submitted {len(found)} times with {wanted}, not {times}; "
                f"submitted were:{calls}"
            )

    def assert_not_submitted(self, task: Task[..., Any], **arguments: Any) -> None:
        self.assert_submitted(task, times=0, **arguments)

    # --- running ---------------------------------------------------------------------------------

    async def drain(self, *, jobs: int | None = None) -> int:
        """Run what is due, and what becomes due thereby, by the clock as it stands; how many ran."""
        return await _Here(self.app, _SETTINGS).drain(jobs=jobs)

    async def advance(self, seconds: float) -> int:
        """Let time pass, with all that happens then: lapsed leases, schedules, retries. How many jobs ran."""
        self.clock.advance(seconds)
        manager = await self.manager()
        await manager.maintain()
        await manager.fire_schedules()
        return await self.drain()

    async def crash(self, at: Crash = Crash.AFTER_HANDLER, *, jobs: int = 1) -> int:
        """Let a worker take the next jobs and die at that point. How many it took with it.

        They stay leased, as after a real crash, until `recover`.
        """
        if at is Crash.BEFORE_HANDLER:
            types = [type_ for task in self.app.tasks.values() for type_ in task.types]
            return len(await (await self.manager()).claim("crashed", types=types, limit=jobs))
        return await _Crashing(self.app, _SETTINGS).drain(jobs=jobs)

    async def recover(self) -> int:
        """Let the leases of crashed workers lapse, and run their jobs again. How many jobs ran."""
        manager = await self.manager()
        held = [job.lease_until for job in (await manager.find(states=LEASED, limit=1000)).jobs]
        latest = max((until for until in held if until is not None), default=self.clock.now())
        self.clock.set(max(self.clock.now(), latest + _PAST_THE_LEASE))
        return await self.advance(0)


class SyncHarness(Bridge):
    """The harness for tests without an event loop: everything that Harness has, called without await.

    with SyncHarness(app) as harness:
        send_email.submit_sync("ada@example.org")
        harness.drain()
    """

    def __init__(
        self, app: Headrace, *, clock: ManualClock | None = None, inline: bool = False
    ) -> None:
        self.asynchronous = Harness(app, clock=clock, inline=inline)
        super().__init__(self.asynchronous)

    def __enter__(self) -> Self:
        self._run(self.asynchronous.__aenter__())
        return self

    def __exit__(self, *exc: object) -> None:
        self._run(self.asynchronous.__aexit__(*exc))


class _Here(Worker):
    """Runs everything in this process: a child would load the application anew, with its real store."""

    def _hooks(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()  # the harness has run them when it began

    def _make_execution(self) -> Execution:
        return Execution(
            threads=self._threads, children=self._instead, middleware=self.app.middleware
        )

    async def _instead(self, task: Task[..., Any], context: Context) -> Any:
        is_async = inspect.iscoroutinefunction(task.function)
        return await (on_loop if is_async else self._threads)(task, context)


class _Crashing(_Here):
    """Dies, as far as the store can tell, at the moment a handler has ended."""

    def _close_attempt(self, attempt: Attempt, outcome: Outcome | None) -> None:  # noqa: ARG002 - that is the crash
        super()._close_attempt(attempt, None)


class _Recorder(Middleware):
    """Remembers what was submitted and, inline, runs it."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    async def submit(self, specs: Sequence[JobSpec], call_next: Submit) -> tuple[Job, ...]:
        jobs = await call_next(specs)
        harness = self._harness
        harness.submitted += jobs
        if not harness._inline:  # noqa: SLF001 - its own part
            return jobs
        await harness.drain()
        return await (await harness.manager()).get_many([job.id for job in jobs])


def _shown(job: Job) -> str:
    payload = job.payload
    if not isinstance(payload, dict):
        return repr(payload)
    return ", ".join(f"{name}={value!r}" for name, value in payload.items())
