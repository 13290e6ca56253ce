"""Submitting the calls of tasks inside a transaction of the caller's own."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from headrace.app.bridge import Bridged
from headrace.model import Job
from headrace.spec import JobSpec

if TYPE_CHECKING:
    from headrace.app.application import Headrace
    from headrace.app.task import Task

P = ParamSpec("P")
T = TypeVar("T")


class Transaction(Bridged):
    """What is submitted through it commits, or vanishes, with everything else in the transaction.

    It lives as long as that. Workers are not woken by the commit: they find the jobs at their next look.
    """

    def __init__(self, app: Headrace, connection: object) -> None:
        """Called where the connection is used: Django's proxy stands for another one in other threads."""
        self._app = app
        self._connection = _of_this_thread(connection)

    @overload
    async def submit(
        self, task: Task[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Job[T]: ...

    @overload
    async def submit(self, task: Task[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Job[T]: ...

    @overload
    async def submit(self, task: str, /, *args: Any, **kwargs: Any) -> Job[Any]: ...

    async def submit(self, task: Task[..., Any] | str, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """As `Headrace.submit`."""
        (job,) = await self.submit_many([self._app.find_task(task).spec(*args, **kwargs)])
        return job

    async def submit_many(self, specs: Iterable[JobSpec]) -> tuple[Job, ...]:
        """As `Headrace.submit_many`."""
        manager = (await self._app.manager()).on(self._connection)

        async def store(specs: Sequence[JobSpec]) -> tuple[Job, ...]:
            return (await manager.submit_many(specs)).jobs

        return await self._app.through_middleware(specs, store)


def _of_this_thread(connection: Any) -> object:
    """Proxies stand for the connection or session of the thread that looks at them; others look later."""
    home = type(connection).__module__
    if home == "sqlalchemy.orm.scoping":
        return connection()
    if home == "django.utils.connection":
        return connection._connections[connection._alias]  # noqa: SLF001 - Django has no other way
    return connection
