"""What `app.sync` offers, for type checkers and editors: at run time it is a Bridge.

Made by `make docs` from the application's own methods; a test fails when it drifts from them.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator
from datetime import timedelta
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from headrace.app.results import BatchResult
from headrace.app.task import Task
from headrace.manager import Batch, BatchProgress, Overview
from headrace.manager.watching import LOOK_SECONDS
from headrace.model import Job
from headrace.schedules import Schedule, When
from headrace.spec import JobSpec

P = ParamSpec("P")
T = TypeVar("T")


class SyncTransaction(Protocol):
    """Transaction, without an event loop."""

    @overload
    def submit(
        self, task: Task[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Job[T]:
        """As `Headrace.submit`."""
        ...

    @overload
    def submit(self, task: Task[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Job[T]: ...

    @overload
    def submit(self, task: str, /, *args: Any, **kwargs: Any) -> Job[Any]: ...

    def submit_many(self, specs: Iterable[JobSpec]) -> tuple[Job, ...]:
        """As `Headrace.submit_many`."""
        ...


class SyncHeadrace(Protocol):
    """Headrace, without an event loop."""

    def close(self) -> None: ...

    @overload
    def submit(
        self, task: Task[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Job[T]:
        """Store a call of the task, named by itself or by its registered name, as a job."""
        ...

    @overload
    def submit(self, task: Task[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Job[T]: ...

    @overload
    def submit(self, task: str, /, *args: Any, **kwargs: Any) -> Job[Any]: ...

    def submit_many(self, specs: Iterable[JobSpec]) -> tuple[Job, ...]:
        """Store what `task.spec(…)` described, all or nothing, in order."""
        ...

    def on(self, connection: object) -> SyncTransaction:
        """Submit inside the transaction of `connection`: the jobs commit or vanish with it.

        `app.on(connection).submit(task, …)`, or `app.sync.on(session).submit(task, …)`. On PostgreSQL,
        with connections of asyncpg, psycopg, SQLAlchemy and Django; other stores raise InvalidInput.
        """
        ...

    def chain(self, first: JobSpec, *then: Task[..., Any]) -> Job:
        """Store a chain in one step, each task called with the result of the one before; the last job."""
        ...

    def group(self, specs: Iterable[JobSpec], then: Task[..., Any]) -> Job:
        """Store up to 1000 jobs and one that is called with the list of their results; that job."""
        ...

    def overview(self) -> Overview:
        """The depth of every queue, and the age of what waits longest in it."""
        ...

    def submit_batch(
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
        ...

    def batch(self, batch_id: str) -> BatchProgress:
        """How far the jobs of a batch are."""
        ...

    def wait_batch(self, batch: Batch | str, timeout: float | None = None) -> BatchProgress:
        """Wait for every job of the batch to end; how they did. Raises TimeoutError: they go on."""
        ...

    def batch_results(self, batch: Batch | str) -> Iterator[BatchResult]:
        """`for` every job of the batch that has ended, in order: its state, result or failure.

        A result comes as the type its handler is annotated with.
        """
        ...

    def schedule(
        self, name: str, when: When | str | timedelta, spec: JobSpec, **options: Any
    ) -> Schedule:
        """Submit the job at every tick: `Cron("0 3 * * *", "Europe/Berlin")` or `Every(900)`.

        A text is a Cron in UTC (`"0 3 * * *"`, `"@daily"`) or an interval (`"15m"`), as is a timedelta.

        Options as in `JobManager.schedule`. The same again changes nothing, so it may stand in start-up code.
        """
        ...

    @overload
    def get(self, job: Job[T]) -> Job[T]:
        """The job as it is now."""
        ...

    @overload
    def get(self, job: str) -> Job[Any]: ...

    def find(
        self,
        *,
        tasks: Iterable[Task[..., Any] | str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        **filters: Any,
    ) -> Iterator[Job]:
        """The jobs that match: `for job in app.find(states=["dead"])` goes through all of them.

        `await` gives one page. `tasks` are tasks, or the types of jobs; the other filters are those of
        `JobManager.find`: queues, states, tags, assignee, created_from, created_before, newest_first.
        """
        ...

    def watch(
        self, job: Job | str, *, look_seconds: float = LOOK_SECONDS, timeout: float | None = None
    ) -> Iterator[Job]:
        """`for` the job as it is, and again whenever its state or progress changes, to its end.

        What changes twice between two looks is seen once. After `timeout` seconds it stops.
        """
        ...

    def cancel(self, job: Job | str, reason: str | None = None) -> Job:
        """Ask for the job not to run, or to stop."""
        ...

    def update(self, job: Job | str, **said: Any) -> Job:
        """Change priority, tags, correlation id or callback url of a job that has not ended.

        Names and rules as in `JobManager.update`.
        """
        ...

    @overload
    def result(self, job: Job[T]) -> T:
        """What the handler returned, as the type it is annotated with.

        Raises NotEnded while there is no outcome, JobFailed where it is not a result.
        """
        ...

    @overload
    def result(self, job: str) -> Any: ...

    @overload
    def wait(self, job: Job[T], timeout: float | None = None) -> T:
        """Wait for the job to end and give its result. Raises TimeoutError: the job is as it was."""
        ...

    @overload
    def wait(self, job: str, timeout: float | None = None) -> Any: ...
