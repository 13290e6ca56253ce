"""Headrace, the application: tasks by name, and jobs made of calls to them."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from headrace import validation
from headrace.app.bridge import Bridge
from headrace.app.connections import Connections
from headrace.app.context import Context, SyncContext
from headrace.app.middleware import Middleware, Submit, around_submit
from headrace.app.observers import Observer, observe
from headrace.app.task import VERSION_MARK, Isolation, Options, Task, Upcaster
from headrace.clock import Clock
from headrace.connect import connect, open_store
from headrace.crypto import KeyRing
from headrace.errors import InvalidInput, InvalidName, JobFailed, NotEnded, UnknownTask
from headrace.manager import Batch, BatchProgress, JobManager, Overview
from headrace.manager.submission import SUBMISSION_TIMEOUT_SECONDS, acknowledged
from headrace.model import Job, State
from headrace.policy import Policies, Policy
from headrace.schedules import Schedule, When
from headrace.spec import JobSpec
from headrace.stores.base import JobStore

P = ParamSpec("P")
R = TypeVar("R")

_WAIT_SECONDS = 1.0
_WAIT_PAUSE_SECONDS = 0.005


class Registration(Protocol):
    """What `app.task(…)` gives: makes a task of the function it decorates.

    A first parameter of type Context or SyncContext is filled in by the worker, so callers do not see it.
    """

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[SyncContext, P], R], /) -> Task[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class Headrace:
    """`app = Headrace("sqlite:///jobs.db")`: registers tasks, submits jobs, waits for their results.

    It connects when it is first used, on whatever event loop that is; `async with app:` closes again.
    `app.sync` has the same methods for code without an event loop.
    """

    def __init__(
        self,
        url: str = "sqlite:///jobs.db",
        *,
        policies: Policies | Policy | None = None,
        tenant: str | None = None,
        middleware: Iterable[Middleware] = (),
        observers: Iterable[Observer] = (),
        clock: Clock | None = None,
        keys: KeyRing | None = None,
        webhook_secrets: Sequence[str] = (),
        webhook_networks: Sequence[str] = (),
        submission_timeout: float = SUBMISSION_TIMEOUT_SECONDS,
        migrate: bool = False,
    ) -> None:
        """Connects to nothing yet.

        `keys` encrypts what jobs hold. `webhook_secrets` sign what callback urls are told;
        `webhook_networks` are private networks that may be told all the same. A submission that the
        store does not acknowledge within `submission_timeout` seconds raises SubmissionTimeout.
        """
        self.url = url
        self.policies = Policies(default=policies) if isinstance(policies, Policy) else policies
        self.tenant = tenant
        self.clock = clock
        self.keys = keys
        self.webhook_secrets = tuple(webhook_secrets)
        self.webhook_networks = tuple(webhook_networks)
        self.middleware: tuple[Middleware, ...] = tuple(middleware)
        self.submission_timeout = validation.check_seconds(submission_timeout, "submission_timeout")
        self.observers: tuple[Observer, ...] = tuple(observers)
        self._migrate = migrate
        self._tasks: dict[str, Task[..., Any]] = {}
        self._connections = Connections(self.connect)
        self.sync: Any = Bridge(self)

    # --- tasks -----------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...

    @overload
    def task(self, function: Callable[Concatenate[SyncContext, P], R], /) -> Task[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        version: int = 1,
        isolation: str | Isolation | None = None,
        upcasters: Mapping[int, Upcaster] = ...,
        **options: Any,
    ) -> Registration: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        version: int = 1,
        isolation: str | Isolation | None = None,
        upcasters: Mapping[int, Upcaster] = MappingProxyType({}),
        **options: Any,
    ) -> Any:
        """Register a function under its name, or the one given; options as in `Options`."""

        def register(function: Callable[..., Any]) -> Task[..., Any]:
            chosen = validation.check_name(name or function.__name__, "name of the task")
            if chosen in self._tasks:
                raise InvalidName(f"a task named {chosen!r} is registered already")
            try:
                given = Options(**options)
            except TypeError as error:
                raise InvalidInput(f"task {chosen!r}: {error}") from error
            task: Task[..., Any] = Task(
                self,
                function,
                name=chosen,
                version=version,
                isolation=_isolation(function, isolation, chosen),
                options=given,
                upcasters=upcasters,
            )
            self._tasks[chosen] = task
            return task

        return register if function is None else register(function)

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        return MappingProxyType(self._tasks)

    def task_of(self, type_: str) -> Task[..., Any] | None:
        """The task that runs jobs of this type, None if there is none here."""
        task = self._tasks.get(type_.partition(VERSION_MARK)[0])
        return task if task is not None and type_ in task.types else None

    # --- connecting ------------------------------------------------------------------------------

    async def connect(self, store: JobStore | None = None) -> JobManager:
        """A manager of one's own on this application's store; the caller closes it."""
        if store is None:
            store = observe(await open_store(self.url, migrate=self._migrate), self.observers)
        return await connect(
            store,
            policies=self.policies,
            clock=self.clock,
            tenant=self.tenant,
            keys=self.keys,
        )

    @contextmanager
    def using(
        self, url: str, *, clock: Clock | None = None, middleware: Iterable[Middleware] = ()
    ) -> Iterator[Self]:
        """The same tasks on another store while the block lasts: for tests."""
        before = (self.url, self.clock, self.middleware, self._connections)
        self.url, self.clock, self.middleware = url, clock, tuple(middleware)
        self._connections = Connections(self.connect)
        try:
            yield self
        finally:
            self.url, self.clock, self.middleware, self._connections = before

    async def manager(self) -> JobManager:
        """The manager of the running event loop, connected when it is first asked for."""
        return await self._connections.get()

    async def close(self) -> None:
        await self._connections.close()

    async def __aenter__(self) -> Self:
        await self.manager()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # --- jobs ------------------------------------------------------------------------------------

    async def submit(self, task: Task[..., Any] | str, /, *args: Any, **kwargs: Any) -> Job:
        """Store a call of the task, named by itself or by its registered name, as a job."""
        (job,) = await self.submit_many([self._task(task).spec(*args, **kwargs)])
        return job

    async def submit_many(self, specs: Iterable[JobSpec]) -> tuple[Job, ...]:
        """Store what `task.spec(…)` described, all or nothing, in order."""
        manager = await self.manager()

        async def store(specs: Sequence[JobSpec]) -> tuple[Job, ...]:
            return (await manager.submit_many(specs)).jobs

        return await self.through_middleware(specs, store)

    async def through_middleware(self, specs: Iterable[JobSpec], store: Submit) -> tuple[Job, ...]:
        """Submit in another way than `submit_many` does, with the same care around it."""
        async with acknowledged(self.submission_timeout):
            return await around_submit(self.middleware, store)(list(specs))

    async def overview(self) -> Overview:
        """The depth of every queue, and the age of what waits longest in it."""
        return await (await self.manager()).overview()

    async def submit_batch(
        self, specs: Iterable[JobSpec], callback: Task[..., Any] | JobSpec | None = None
    ) -> Batch:
        """Store many jobs as one set; when all have ended, the callback runs once, with `batch`."""
        manager = await self.manager()
        follow_up = callback.follow_up() if isinstance(callback, Task) else callback
        stored: list[Batch] = []

        async def store(specs: Sequence[JobSpec]) -> tuple[Job, ...]:
            stored.append(await manager.submit_batch(list(specs), follow_up))
            # Only middleware looks at the jobs themselves.
            return await manager.get_many(stored[0].job_ids) if self.middleware else ()

        await self.through_middleware(specs, store)
        return stored[0]

    async def batch(self, batch_id: str) -> BatchProgress:
        """How far the jobs of a batch are."""
        return await (await self.manager()).batch(batch_id)

    async def schedule(self, name: str, when: When, spec: JobSpec, **options: Any) -> Schedule:
        """Submit the job at every tick: `Cron("0 3 * * *", "Europe/Berlin")` or `Every(900)`.

        Options as in `JobManager.schedule`. The same again changes nothing, so it may stand in start-up code.
        """
        return await (await self.manager()).schedule(name, when, spec, **options)

    async def get(self, job: Job | str) -> Job:
        """The job as it is now."""
        return await (await self.manager()).get(_id(job))

    async def cancel(self, job: Job | str, reason: str | None = None) -> Job:
        """Ask for the job not to run, or to stop."""
        await (await self.manager()).cancel([_id(job)], reason=reason)
        return await self.get(job)

    async def result(self, job: Job | str) -> Any:
        """What the handler returned, as the type it is annotated with.

        Raises NotEnded while there is no outcome, JobFailed where it is not a result.
        """
        return self._result(await self.get(job))

    async def wait(self, job: Job | str, timeout: float | None = None) -> Any:
        """Wait for the job to end and give its result. Raises TimeoutError: the job is as it was."""
        manager = await self.manager()
        job_id = _id(job)
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            seen = await manager.tail()
            now = await manager.get(job_id)
            if now.is_terminal:
                return self._result(now)
            left = _WAIT_SECONDS if end is None else min(_WAIT_SECONDS, end - time.monotonic())
            if left <= 0:
                raise TimeoutError(
                    f"job {job_id} has not ended within {timeout} s; it is {now.state} and goes on"
                )
            await manager.store.wait(seen, left)
            await asyncio.sleep(_WAIT_PAUSE_SECONDS)

    def _result(self, job: Job) -> Any:
        if not job.is_terminal:
            raise NotEnded(f"job {job.id} is {job.state}: there is no result yet", job_id=job.id)
        if job.state is not State.COMPLETED:
            why = "" if job.failure is None else f": {job.failure.message}"
            raise JobFailed(f"job {job.id} is {job.state}{why}", job)
        task = self.task_of(job.type)
        return job.result if task is None else task.arguments.result(job.result)

    def _task(self, task: Task[..., Any] | str) -> Task[..., Any]:
        if isinstance(task, Task):
            return task
        found = self._tasks.get(task)
        if found is None:
            raise UnknownTask(f"no task is registered as {task!r}; nothing was stored")
        return found


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job


def _isolation(function: Callable[..., Any], given: str | Isolation | None, name: str) -> Isolation:
    is_async = inspect.iscoroutinefunction(function)
    if given is None:
        return Isolation.LOOP if is_async else Isolation.THREAD
    try:
        chosen = Isolation(given)
    except ValueError as error:
        raise InvalidInput(
            f"isolation={given!r} of task {name!r}: it is loop, thread or process"
        ) from error
    if is_async != (chosen is Isolation.LOOP) and chosen is not Isolation.PROCESS:
        kind = "an async" if is_async else "a sync"
        raise InvalidInput(f"task {name!r} is {kind} function; it cannot run in a {chosen}")
    return chosen
