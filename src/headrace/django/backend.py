"""The backend: each task of Django is a task of Headrace, and a call of it a job."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import close_old_connections, connections, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from headrace import Context, Headrace, SyncContext, error_text, lifecycle
from headrace.app.bridge import Bridge
from headrace.app.options import TaskOptions
from headrace.django.interface import (
    BaseTaskBackend,
    TaskContext,
    TaskResultDoesNotExist,
    TaskResultStatus,
    signals,
)
from headrace.django.results import RAISED, Results, path_of, result_of
from headrace.errors import InvalidInput, JobNotFound
from headrace.model import Job, Priority
from headrace.spec import JobSpec

_OPTIONS = frozenset({"app", "url", "tenant", "database", "max_attempts", "timeout"})
_URGENT = 50
"""Django counts from -100 to 100, the most urgent last; Headrace has five levels, the most urgent first."""


class HeadraceBackend(BaseTaskBackend):  # type: ignore[misc]  # Django has no types
    """`OPTIONS`: `url` and `tenant` of the store, or `app`, the path of an application of yours.

    `max_attempts` (1: Django's tasks are not retried unless you say so) and `timeout` of a task's jobs.
    `database`: an alias of DATABASES; inside a transaction on it, jobs are submitted in that transaction,
    which needs Headrace's tables in the same PostgreSQL database.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        unknown = sorted(self.options.keys() - _OPTIONS)
        if unknown:
            raise InvalidInput(
                f"TASKS[{alias!r}]: there is no option {unknown[0]!r}; known are "
                f"{', '.join(sorted(_OPTIONS))}"
            )
        self._tasks: dict[str, Any] = {}

    @functools.cached_property
    def app(self) -> Headrace:
        """The application that submits and runs the jobs, with the tasks that were made so far."""
        named = self.options.get("app")
        if named is None:
            app = Headrace(self.options.get("url"), tenant=self.options.get("tenant"))
        else:
            app = import_string(named)
            if not isinstance(app, Headrace):
                raise InvalidInput(f"TASKS[{self.alias!r}]: {named} is no Headrace application")
        for task in self._tasks.values():
            self._register(app, task)
        return app

    def validate_task(self, task: Any) -> None:
        """Called for every task that is made: so they are known, wherever their modules are."""
        super().validate_task(task)
        path = path_of(task)
        if path not in self._tasks:
            self._tasks[path] = task
            if "app" in self.__dict__:
                self._register(self.app, task)

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        self.validate_task(task)
        spec = self._spec(task, args, kwargs)
        database = self.options.get("database")
        if database is not None and transaction.get_connection(database).in_atomic_block:
            jobs = self.app.sync.on(connections[database]).submit_many([spec])
        else:
            jobs = self.app.sync.submit_many([spec])
        return self._enqueued(task, jobs[0])

    async def aenqueue(self, task: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self.options.get("database") is not None:
            return await super().aenqueue(task, args, kwargs)  # transactions belong to threads
        self.validate_task(task)
        (job,) = await self.app.submit_many([self._spec(task, args, kwargs)])
        return self._enqueued(task, job)

    def get_result(self, result_id: str) -> Any:
        with _told_as_missing(result_id):
            return Bridge(self._results).read(result_id)

    async def aget_result(self, result_id: str) -> Any:
        with _told_as_missing(result_id):
            return await self._results.read(result_id)

    @property
    def _results(self) -> Results:
        return Results(self.app, self.alias)

    def _enqueued(self, task: Any, job: Job) -> Any:
        result = result_of(task, job, self.alias)
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def _spec(self, task: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> JobSpec:
        options: TaskOptions = {"queue": task.queue_name, "priority": priority_of(task.priority)}
        if task.run_after is not None:
            options["run_at"] = task.run_after
        known = self.app.find_task(path_of(task))
        return known.options(**options).spec(args=list(args), kwargs=dict(kwargs))

    def _register(self, app: Headrace, task: Any) -> None:
        path = path_of(task)
        if path in app.tasks:
            return
        options: TaskOptions = {"max_attempts": self.options.get("max_attempts", 1)}
        if "timeout" in self.options:
            options["timeout"] = self.options["timeout"]
        is_async = inspect.iscoroutinefunction(task.func)
        run = self._run_async(task) if is_async else self._run_in_thread(task)
        app.task(name=path, **options)(run)

    def _run_in_thread(self, task: Any) -> Callable[..., Any]:
        def run(context: SyncContext, args: list[Any], kwargs: dict[str, Any]) -> Any:
            close_old_connections()  # what Django does between requests
            try:
                with self._attempt(task, context) as attempt:
                    attempt.returned = task.call(*attempt.first, *args, **kwargs)
                return attempt.returned
            finally:
                close_old_connections()

        return run

    def _run_async(self, task: Any) -> Callable[..., Any]:
        async def run(context: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
            with self._attempt(task, context) as attempt:
                attempt.returned = await task.acall(*attempt.first, *args, **kwargs)
            return attempt.returned

        return run

    @contextmanager
    def _attempt(self, task: Any, context: Context | SyncContext) -> Iterator[_Attempt]:
        """One run of a task, with Django's signals around it."""
        attempt = _Attempt(task, result_of(task, context.job, self.alias))
        signals.task_started.send(type(self), task_result=attempt.result)
        try:
            yield attempt
        except BaseException as error:
            context.log(RAISED, exception=class_path(error))
            if lifecycle.is_last_attempt(context.job):
                attempt.end(TaskResultStatus.FAILED)
                signals.task_finished.send(type(self), task_result=attempt.result)
            raise
        attempt.end(TaskResultStatus.SUCCESSFUL)
        signals.task_finished.send(type(self), task_result=attempt.result)


class _Attempt:
    """What a task is run with, and what it gives."""

    def __init__(self, task: Any, result: Any) -> None:
        self.result = result
        self.first = [TaskContext(task_result=result)] if task.takes_context else []
        """What comes before the task's own arguments."""
        self.returned: Any = None

    def end(self, status: Any) -> None:
        """Results of Django's are frozen, and this is how its own backends write them."""
        object.__setattr__(self.result, "status", status)
        object.__setattr__(self.result, "finished_at", timezone.now())
        object.__setattr__(self.result, "_return_value", self.returned)


@contextmanager
def _told_as_missing(result_id: str) -> Iterator[None]:
    try:
        yield
    except JobNotFound as error:
        raise TaskResultDoesNotExist(result_id) from error


def priority_of(number: int) -> Priority:
    if number > 0:
        return Priority.CRITICAL if number >= _URGENT else Priority.HIGH
    if number < 0:
        return Priority.BULK if number <= -_URGENT else Priority.LOW
    return Priority.NORMAL


def class_path(error: BaseException) -> str:
    return f"{type(error).__module__}.{error_text.name_of(error)}"
