"""Sync handlers in threads, each of which can be told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headrace.app.context import Context, SyncContext, enter
from headrace.app.task import Task
from headrace.worker.execution import arguments

_SPARE_THREADS = 1000
_THREAD_NAME = "headrace-handler"
_IDLE_EXIT_SECONDS = 0.2
_POLITE_SECONDS = 0.3
"""How long a handler that was told to stop has to notice by itself."""


class Interrupted(BaseException):
    """Raised inside a sync handler that must stop. Not an Exception: handlers must not swallow it."""


class Threads:
    """Runs sync handlers, at most `count` at once.

    A handler that is told to stop sees `is_cancelled`, and a moment later has Interrupted raised in it, as
    soon as it executes Python code again: a single long call into C (a sleep, a query) is not cut short.
    """

    def __init__(self, count: int, stop_seconds: float) -> None:
        # Room for those that are left behind: their threads are taken, but not their places.
        self._pool = ThreadPoolExecutor(2 * count + _SPARE_THREADS, thread_name_prefix=_THREAD_NAME)
        self._stop_seconds = stop_seconds

    async def __call__(self, task: Task[..., Any], context: Context) -> Any:
        loop = asyncio.get_running_loop()
        call = _Call(task, context, loop)
        inherited = contextvars.copy_context()
        future = loop.run_in_executor(self._pool, inherited.run, call)
        try:
            ended = await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future], timeout=_POLITE_SECONDS)
            if not future.done():
                call.interrupt()
                await asyncio.wait([future], timeout=self._stop_seconds)
            if future.done() and not future.cancelled():
                with contextlib.suppress(Interrupted):
                    # It ended by itself after all: with a result, or with an error of its own. One
                    # that has seen that it must stop has done so, whatever it returned.
                    result = future.result().take()
                    if not context.has_seen_cancellation:
                        return result
            raise
        return ended.take()

    def close(self) -> None:
        """Do not wait: a handler that would not stop must not keep the worker."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def threads_are_stuck() -> bool:
    """Whether a handler still runs in a thread, though it was told to stop."""
    handlers = [one for one in threading.enumerate() if one.name.startswith(_THREAD_NAME)]
    for one in handlers:
        one.join(_IDLE_EXIT_SECONDS)
    return any(one.is_alive() for one in handlers)


class _Ended:
    """How a handler ended. As a value: a future refuses to carry some exceptions, and would wait for ever."""

    __slots__ = ("_error", "_result")

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self._result = result
        self._error = error

    def take(self) -> Any:
        """What it returned; raises what it raised."""
        error, self._error = (
            self._error,
            None,
        )  # an error that holds on to itself is garbage for long
        if error is not None:
            raise error
        return self._result


class _Call:
    """One handler in one thread."""

    def __init__(
        self, task: Task[..., Any], context: Context, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._task = task
        self._context = context
        self._bridged = SyncContext(
            context, run=lambda work: asyncio.run_coroutine_threadsafe(work, loop).result()
        )
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._stopped = False

    def __call__(self) -> _Ended:
        with self._lock:
            if self._stopped:
                return _Ended(error=Interrupted())
            self._thread = threading.get_ident()
        try:
            enter(self._bridged)
            self._context.begin()
            keywords = arguments(self._task, self._context, self._bridged)
            return _Ended(self._task.function(**keywords))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return _Ended(error=error)
        finally:
            with self._lock:
                # What was raised too late must not strike the thread's next call.
                _raise_in(self._thread, None)
                self._thread = None

    def interrupt(self) -> None:
        with self._lock:
            self._stopped = True
            if self._thread is not None:
                _raise_in(self._thread, Interrupted)


def _raise_in(thread: int | None, error: type[BaseException] | None) -> None:
    """Let the thread raise the error at its next step; None takes back what it has not raised yet."""
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), raised)
