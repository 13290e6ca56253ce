"""Where a handler runs: on the loop, in a thread, or in a child process. With the middleware around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from headrace.app.context import Context, enter
from headrace.app.middleware import Middleware, around_run
from headrace.app.task import Isolation, Task
from headrace.errors import InvalidPayload

Execute = Callable[[Task[..., Any], Context], Awaitable[Any]]
"""Runs a task for the job of a context. Cancelling it stops the handler."""


class ChildDied(Exception):
    """The child process that ran the handler is gone, and the handler with it."""


class MemoryExceeded(Exception):
    """The handler asked for more memory than it may have."""


class InvalidArguments(Exception):
    """What is stored does not fit what the handler takes, and never will."""


class InvalidResult(Exception):
    """What the handler returned cannot be stored."""


class HandlerRaised(Exception):
    """What the handler raised, known only by its type's name and its message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message or name)
        self.name = name


class Elsewhere(Protocol):
    """Runs handlers outside of the loop."""

    async def __call__(self, task: Task[..., Any], context: Context) -> Any: ...


class Execution:
    """Picks the place for each task, and puts the middleware around it."""

    def __init__(
        self, *, threads: Elsewhere, children: Elsewhere, middleware: Sequence[Middleware]
    ) -> None:
        self._places: dict[Isolation, Execute] = {
            Isolation.LOOP: on_loop,
            Isolation.THREAD: threads,
            Isolation.PROCESS: children,
        }
        self._middleware = middleware

    def of(self, task: Task[..., Any], *, isolated: bool = False) -> Execute:
        """How to run the task; `isolated`: in a child process, wherever it belongs."""
        place = self._places[Isolation.PROCESS if isolated else task.isolation]
        if not self._middleware:
            return place

        async def innermost(context: Context) -> Any:
            return await place(task, context)

        through = around_run(self._middleware, innermost)
        return lambda _, context: through(context)


async def on_loop(task: Task[..., Any], context: Context) -> Any:
    enter(context)
    context.begin()
    return await task.function(**arguments(task, context, context))


def arguments(task: Task[..., Any], context: Context, given: object) -> dict[str, Any]:
    """What the handler is called with; `given` is passed for its context."""
    try:
        keywords = task.load(context.job)
    except InvalidPayload as error:
        raise InvalidArguments(str(error)) from error
    if task.arguments.context_name is not None:
        keywords[task.arguments.context_name] = given
    return keywords
