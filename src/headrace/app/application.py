"""Headrace, the application: tasks by name, and jobs made of calls to them."""

from __future__ import annotations

import inspect
import math
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import timedelta
from types import MappingProxyType, SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Never,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from headrace import address, validation
from headrace.app import celery_words
from headrace.app.bridge import Bridge
from headrace.app.connections import Connections
from headrace.app.context import Context, SyncContext
from headrace.app.middleware import Middleware, Submit, around_submit
from headrace.app.observers import Observer, observe
from headrace.app.options import TaskOptions, options_of
from headrace.app.results import BatchResult, batch_results, result_of
from headrace.app.startup import HookT, Startup
from headrace.app.task import VERSION_MARK, Isolation, Task, Upcaster
from headrace.app.transaction import Transaction
from headrace.app.workflows import chain, group
from headrace.clock import Clock
from headrace.connect import connect, open_store
from headrace.crypto import KeyRing
from headrace.errors import InvalidInput, InvalidName, JobFailed, NotEnded, UnknownTask
from headrace.input_checks import checked, guarded
from headrace.manager import Batch, BatchProgress, Found, JobManager, Overview, Page
from headrace.manager.batches import PIECE_JOBS
from headrace.manager.submission import SUBMISSION_TIMEOUT_SECONDS, acknowledged
from headrace.manager.watching import LOOK_SECONDS
from headrace.model import Job, State
from headrace.policy import Policies, Policy
from headrace.schedules import Schedule, When
from headrace.schedules.when import when_of
from headrace.spec import JobSpec
from headrace.stores.base import JobStore

if TYPE_CHECKING:
    from headrace.app.sync import SyncHeadrace

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_WAIT_SECONDS = 1.0


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


@guarded
class Headrace:
    """`app = Headrace("sqlite:///jobs.db")`: registers tasks, submits jobs, waits for their results.

    It connects when it is first used, on whatever event loop that is; `async with app:` closes again.
    `app.sync` has the same methods for code without an event loop.
    """

    @checked
    def __init__(
        self,
        url: str | None = None,
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
        token: str | None = None,
        **unknown: Never,
    ) -> None:
        """Connects to nothing yet.

        Without a url the store is that of the environment's HEADRACE_URL, or else the file `headrace.db` in
        the current directory: the one that the command line takes, too.
        `keys` encrypts what jobs hold. `webhook_secrets` sign what callback urls are told;
        `webhook_networks` are private networks that may be told all the same. A submission that the
        store does not acknowledge within `submission_timeout` seconds raises SubmissionTimeout.
        A url `https://…` is that of a server; `token` is what is shown to it.
        """
        for name in unknown:
            raise TypeError(
                f"Headrace() has no argument {name!r}: "
                + celery_words.APPLICATION.get(name, "help(Headrace) lists those it has")
            )
        self.url = address.default_url() if url is None else url
        self.policies = Policies(default=policies) if isinstance(policies, Policy) else policies
        self.tenant = tenant
        self.clock = clock
        self.keys = keys
        self.webhook_secrets = tuple(webhook_secrets)
        self.webhook_networks = tuple(webhook_networks)
        self.middleware: tuple[Middleware, ...] = tuple(middleware)
        self.submission_timeout = validation.check_seconds(submission_timeout, "submission_timeout")
        self.observers: tuple[Observer, ...] = tuple(observers)
        self.state = SimpleNamespace()
        """What handlers share: the hooks of `on_startup` put it here."""
        self.token = token
        self._migrate = migrate
        self._startup = Startup()
        self._tasks: dict[str, Task[..., Any]] = {}
        self._connections = Connections(self.connect)
        self.sync = cast("SyncHeadrace", Bridge(self))

    def __repr__(self) -> str:
        return f"Headrace({address.shown(self.url)!r}, {len(self._tasks)} tasks)"

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
        **options: Unpack[TaskOptions],
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
        **options: Unpack[TaskOptions],
    ) -> Any:
        """Register a function under its name, or the one given; options as in `Options`."""

        def register(function: Callable[..., Any]) -> Task[..., Any]:
            chosen = validation.check_name(name or function.__name__, "name of the task")
            if chosen in self._tasks:
                raise InvalidName(f"a task named {chosen!r} is registered already")
            given = options_of(chosen, options)
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

    # --- what workers open and close -------------------------------------------------------------

    def on_startup(self, hook: HookT) -> HookT:
        """Run a function without arguments, async or not, in each worker before it claims its first job.

        Keep what it opens in `app.state`. Where it raises, the worker ends and has claimed nothing.
        Handlers in child processes do not see it: `isolation="process"`.
        """
        return self._startup.add(hook, at_end=False)

    def on_shutdown(self, hook: HookT) -> HookT:
        """Run such a function in each worker after its last handler has ended, however that came about."""
        return self._startup.add(hook, at_end=True)

    def running_hooks(self) -> AbstractAsyncContextManager[None]:
        """The hooks, around whatever runs jobs: workers and the harness of tests enter it."""
        return self._startup.running()

    # --- connecting ------------------------------------------------------------------------------

    async def connect(self, store: JobStore | None = None) -> JobManager:
        """A manager of one's own on this application's store; the caller closes it."""
        if store is None and address.is_server(self.url):
            return await connect(
                self.url,
                policies=self.policies,
                clock=self.clock,
                tenant=self.tenant,
                keys=self.keys,
                token=self.token,
            )
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

    @overload
    async def submit(
        self, task: Task[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Job[T]: ...

    @overload
    async def submit(self, task: Task[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Job[T]: ...

    @overload
    async def submit(self, task: str, /, *args: Any, **kwargs: Any) -> Job[Any]: ...

    async def submit(self, task: Task[..., Any] | str, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Store a call of the task, named by itself or by its registered name, as a job."""
        named = task if isinstance(task, Task) else self.find_task(task)
        (job,) = await self._submit([named.spec(*args, **kwargs)])
        return job

    async def submit_many(self, specs: Iterable[JobSpec]) -> tuple[Job, ...]:
        """Store what `task.spec(…)` described, all or nothing, in order."""
        return await self._submit(list(specs))

    async def _submit(self, specs: Sequence[JobSpec]) -> tuple[Job, ...]:
        manager = await self.manager()

        async def store(specs: Sequence[JobSpec]) -> tuple[Job, ...]:
            return (await manager.submit_many(specs)).jobs

        return await self._through_middleware(specs, store)

    def on(self, connection: object) -> Transaction:
        """Submit inside the transaction of `connection`: the jobs commit or vanish with it.

        `await app.on(connection).submit(task, …)`, or `app.sync.on(session).submit(task, …)`. On PostgreSQL,
        with connections of asyncpg, psycopg, SQLAlchemy and Django; other stores raise InvalidInput.
        """
        return Transaction(self, connection)

    async def through_middleware(self, specs: Iterable[JobSpec], store: Submit) -> tuple[Job, ...]:
        """Submit in another way than `submit_many` does, with the same care around it."""
        return await self._through_middleware(list(specs), store)

    async def _through_middleware(self, specs: Sequence[JobSpec], store: Submit) -> tuple[Job, ...]:
        steps = max(1, math.ceil(len(specs) / PIECE_JOBS))
        async with acknowledged(self.submission_timeout * steps):
            return await around_submit(self.middleware, store)(specs)

    async def chain(self, first: JobSpec, *then: Task[..., Any]) -> Job:
        """Store a chain in one step, each task called with the result of the one before; the last job."""
        return (await self.submit_many(chain(first, *then)))[-1]

    async def group(self, specs: Iterable[JobSpec], then: Task[..., Any]) -> Job:
        """Store up to 1000 jobs and one that is called with the list of their results; that job."""
        return (await self.submit_many(group(specs, then)))[-1]

    async def overview(self) -> Overview:
        """The depth of every queue, and the age of what waits longest in it."""
        return await (await self.manager()).overview()

    async def submit_batch(
        self,
        specs: Iterable[JobSpec],
        callback: Task[..., Any] | JobSpec | None = None,
        *,
        batch_id: str | None = None,
    ) -> Batch:
        """Store many jobs as one set; when all have ended, the callback runs once, with `batch`.

        All or none up to 10,000. More, up to a million, are stored in steps of so many and need a
        `batch_id`: with one, the same call again finds what is stored and adds the rest.
        """
        manager = await self.manager()
        follow_up = callback.follow_up("batch") if isinstance(callback, Task) else callback
        stored: list[Batch] = []

        async def store(specs: Sequence[JobSpec]) -> tuple[Job, ...]:
            stored.append(await manager.submit_batch(specs, follow_up, batch_id=batch_id))
            # Only middleware looks at the jobs themselves.
            return await manager.get_many(stored[0].job_ids) if self.middleware else ()

        await self.through_middleware(specs, store)
        return stored[0]

    async def batch(self, batch_id: str) -> BatchProgress:
        """How far the jobs of a batch are."""
        return await (await self.manager()).batch(batch_id)

    async def wait_batch(self, batch: Batch | str, timeout: float | None = None) -> BatchProgress:
        """Wait for every job of the batch to end; how they did. Raises TimeoutError: they go on."""
        manager = await self.manager()
        if isinstance(batch, Batch) and not batch.job_ids:
            return BatchProgress(id=batch.id, states=dict.fromkeys(State, 0))
        return await manager.wait_batch(_batch_id(batch), timeout=timeout)

    async def batch_results(self, batch: Batch | str) -> AsyncIterator[BatchResult]:
        """`async for` every job of the batch that has ended, in order: its state, result or failure.

        A result comes as the type its handler is annotated with.
        """
        manager = await self.manager()
        async for one in batch_results(manager, _batch_id(batch), self.task_of):
            yield one

    async def schedule(
        self, name: str, when: When | str | timedelta, spec: JobSpec, **options: Any
    ) -> Schedule:
        """Submit the job at every tick: `Cron("0 3 * * *", "Europe/Berlin")` or `Every(900)`.

        A text is a Cron in UTC (`"0 3 * * *"`, `"@daily"`) or an interval (`"15m"`), as is a timedelta.

        Options as in `JobManager.schedule`. The same again changes nothing, so it may stand in start-up code.
        """
        tick = cast("When", when_of(when))
        return await (await self.manager()).schedule(name, tick, spec, **options)

    @overload
    async def get(self, job: Job[T]) -> Job[T]: ...

    @overload
    async def get(self, job: str) -> Job[Any]: ...

    async def get(self, job: Job[Any] | str) -> Job[Any]:
        """The job as it is now."""
        return await (await self.manager()).get(_id(job))

    def find(
        self,
        *,
        tasks: Iterable[Task[..., Any] | str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        **filters: Any,
    ) -> Found:
        """The jobs that match: `async for job in app.find(states=["dead"])` goes through all of them.

        `await` gives one page. `tasks` are tasks, or the types of jobs; the other filters are those of
        `JobManager.find`: queues, states, tags, assignee, created_from, created_before, newest_first.
        """
        if limit is not None:
            validation.check_limit(limit, "limit")
        if "types" in filters:
            raise InvalidInput(
                f"an application finds jobs by task: write tasks=, not types=; {validation.UNCHANGED}"
            )
        types = None if tasks is None else _types(tasks)

        async def read(start: str | None, count: int) -> Page:
            manager = await self.manager()
            return await manager.find(types=types, limit=count, cursor=start, **filters)

        return Found(read, limit=limit, cursor=cursor)

    async def watch(
        self, job: Job | str, *, look_seconds: float = LOOK_SECONDS, timeout: float | None = None
    ) -> AsyncIterator[Job]:
        """`async for` the job as it is, and again whenever its state or progress changes, to its end.

        What changes twice between two looks is seen once. After `timeout` seconds it stops.
        """
        manager = await self.manager()
        async for seen in manager.watch(_id(job), look_seconds=look_seconds, timeout=timeout):
            yield seen

    async def cancel(self, job: Job | str, reason: str | None = None) -> Job:
        """Ask for the job not to run, or to stop."""
        await (await self.manager()).cancel([_id(job)], reason=reason)
        return await self.get(job)

    async def update(self, job: Job | str, **said: Any) -> Job:
        """Change priority, tags, correlation id or callback url of a job that has not ended.

        Names and rules as in `JobManager.update`.
        """
        return (await (await self.manager()).update(_id(job), **said)).job

    @overload
    async def result(self, job: Job[T]) -> T: ...

    @overload
    async def result(self, job: str) -> Any: ...

    async def result(self, job: Job[Any] | str) -> Any:
        """What the handler returned, as the type it is annotated with.

        Raises NotEnded while there is no outcome, JobFailed where it is not a result.
        """
        return self._result(await self.get(job))

    @overload
    async def wait(self, job: Job[T], timeout: float | None = None) -> T: ...

    @overload
    async def wait(self, job: str, timeout: float | None = None) -> Any: ...

    async def wait(self, job: Job[Any] | str, timeout: float | None = None) -> Any:
        """Wait for the job to end and give its result. Raises TimeoutError: the job is as it was."""
        last: Job | None = None
        async for seen in self.watch(job, look_seconds=_WAIT_SECONDS, timeout=timeout):
            last = seen
        assert last is not None, "a job is seen once at least"
        if last.is_terminal:
            return self._result(last)
        raise TimeoutError(
            f"job {last.id} has not ended within {timeout} s; it is {last.state} and goes on"
        )

    def _result(self, job: Job) -> Any:
        if not job.is_terminal:
            raise NotEnded(f"job {job.id} is {job.state}: there is no result yet", job_id=job.id)
        if job.state is not State.COMPLETED:
            why = "" if job.failure is None else f": {job.failure.message}"
            raise JobFailed(f"job {job.id} is {job.state}{why}", job)
        return result_of(job, self.task_of(job.type))

    def find_task(self, task: Task[..., Any] | str) -> Task[..., Any]:
        """The task itself, or the one registered under that name. Raises UnknownTask."""
        if isinstance(task, Task):
            return task
        found = self._tasks.get(task)
        if found is None:
            raise UnknownTask(
                f"no task is registered as {validation.told(task)}; nothing was stored"
            )
        return found


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job


def _batch_id(batch: Batch | str) -> str:
    return batch.id if isinstance(batch, Batch) else batch


def _types(tasks: Iterable[Task[..., Any] | str]) -> list[str]:
    """The types of jobs that these tasks run, of every version of their arguments."""
    if isinstance(tasks, str | Task):
        raise InvalidInput(
            f"tasks must be a list, not {validation.told(tasks)}; nothing was changed"
        )
    return [
        type_ for task in tasks for type_ in (task.types if isinstance(task, Task) else (task,))
    ]


def _isolation(function: Callable[..., Any], given: str | Isolation | None, name: str) -> Isolation:
    is_async = inspect.iscoroutinefunction(function)
    if given is None:
        return Isolation.LOOP if is_async else Isolation.THREAD
    try:
        chosen = Isolation(given)
    except ValueError as error:
        raise InvalidInput(
            f"isolation={validation.told(given)} of task {name!r}: it is loop, thread or process"
        ) from error
    if is_async != (chosen is Isolation.LOOP) and chosen is not Isolation.PROCESS:
        kind = "an async" if is_async else "a sync"
        raise InvalidInput(f"task {name!r} is {kind} function; it cannot run in a {chosen}")
    return chosen
