"""Work on its way to a thread, and its outcome on the way back to whichever loop asked.

The caller may have been cancelled, and its loop closed, by the time the outcome is there: then nobody
is told. The work is done, or not, all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

Context = TypeVar("Context")
Result = TypeVar("Result")


class Call(Generic[Context, Result]):
    """One piece of work, made on the loop of the caller that awaits `future`."""

    def __init__(self, work: Callable[[Context], Result]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Result] = self.loop.create_future()

    @property
    def is_given_up(self) -> bool:
        """The caller was cancelled: work that has not begun need not begin."""
        return self.future.cancelled()


class Outcome(NamedTuple):
    call: Call[Any, Any]
    value: Any = None
    error: Exception | None = None


def deliver(outcomes: Iterable[Outcome]) -> None:
    """Tell every caller, each on its own loop. From any thread; one wake-up per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Outcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome.call.loop, []).append(outcome)
    for loop, told in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle, told)


def _settle(outcomes: list[Outcome]) -> None:
    for call, value, error in outcomes:
        if call.future.done():
            continue
        if error is None:
            call.future.set_result(value)
        else:
            call.future.set_exception(error)
