"""Handlers in child processes: each can be killed, limited in memory, and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from headrace import codec, error_text
from headrace.app.context import Context
from headrace.app.task import Task
from headrace.errors import HeadraceError, PermanentError, Snooze, TemporaryError
from headrace.worker import child
from headrace.worker.child import Setup, find
from headrace.worker.execution import (
    ChildDied,
    HandlerRaised,
    InvalidArguments,
    InvalidResult,
    MemoryExceeded,
)
from headrace.worker.settings import Settings

_MB = 1 << 20
_spawn = multiprocessing.get_context("spawn")  # a fork would copy the locks of our threads


class Children:
    """Runs handlers in child processes, at most so many at once. A child that must stop is killed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._room = asyncio.Semaphore(settings.children)
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._pool = ThreadPoolExecutor(settings.children + 1, thread_name_prefix="headrace-child")

    async def __call__(self, task: Task[..., Any], context: Context) -> Any:
        async with self._room:
            one = self._reuse() or await self._start()
            self._busy.add(one)
            context.begin()
            try:
                result = await self._attempt(one, task, context)
            finally:
                self._busy.discard(one)
                self._put_back(one)
            return result

    async def close(self) -> None:
        for one in [*self._idle, *self._busy]:
            one.kill()
        self._idle.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _reuse(self) -> _Child | None:
        while self._idle:
            one = self._idle.pop()
            if one.is_alive:
                return one
            one.kill()
        return None

    async def _start(self) -> _Child:
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, _Child, self._settings.child_memory_mb
        )

    def _put_back(self, one: _Child) -> None:
        settings = self._settings
        worn = settings.child_jobs is not None and one.jobs >= settings.child_jobs
        grown = (
            settings.child_recycle_mb is not None and one.memory > settings.child_recycle_mb * _MB
        )
        if one.is_alive and not one.is_engaged and not worn and not grown:
            self._idle.append(one)
        else:
            one.kill()

    async def _attempt(self, one: _Child, task: Task[..., Any], context: Context) -> Any:
        loop = asyncio.get_running_loop()
        one.is_engaged = True
        one.jobs += 1
        message: tuple[Any, ...] = (*_place(task), context.job, Setup.of(context.app))
        while True:
            try:
                answer = await loop.run_in_executor(self._pool, one.exchange, message)
            except asyncio.CancelledError:
                one.kill()
                raise
            except (EOFError, OSError) as error:
                one.kill()
                raise ChildDied(
                    f"the process of the handler ended ({one.how_it_ended()})"
                ) from error
            match answer:
                case (child.CALL, name, args, kwargs):
                    message = await _carry_out(context, name, args, kwargs)
                case (child.DONE, result_json, memory):
                    one.is_engaged, one.memory = False, memory
                    return codec.Encoded(result_json)
                case (child.RAISED, kind, text, detail, memory):
                    one.is_engaged, one.memory = False, memory
                    raise _error(kind, text, detail)
                case _:
                    raise AssertionError(f"a child said {answer!r}")


class _Child:
    """One child process and the pipe to it."""

    def __init__(self, memory_mb: int | None) -> None:
        self._pipe: Connection
        self._pipe, theirs = _spawn.Pipe()
        self._process = _spawn.Process(
            target=child.main, args=(theirs, memory_mb), name="headrace-child", daemon=True
        )
        self._process.start()
        theirs.close()
        self.jobs = 0
        self.memory = 0
        self.is_engaged = False

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def exchange(self, message: tuple[Any, ...]) -> Any:
        """Say something and wait for the answer. In a thread: the pipe blocks."""
        self._pipe.send(message)
        return self._pipe.recv()

    def kill(self) -> None:
        """With whatever it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.pid is not None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join(1.0)
        with contextlib.suppress(OSError):
            self._pipe.close()

    def how_it_ended(self) -> str:
        code = self._process.exitcode
        return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"


def is_isolable(task: Task[..., Any]) -> bool:
    """A child finds the task by its module and name: only those at the top of a module can be found."""
    try:
        return find(*_place(task)) is not None
    except Exception:  # noqa: BLE001 - importing its module runs the user's code
        return False


def _place(task: Task[..., Any]) -> tuple[str, str]:
    return task.function.__module__, task.function.__qualname__


async def _carry_out(context: Context, name: str, args: Any, kwargs: Any) -> tuple[bool, Any]:
    """A call of the handler's to its context."""
    try:
        member = getattr(context, name)
        if args is None:
            return True, member
        answer = member(*args, **kwargs)
        if asyncio.iscoroutine(answer):
            answer = await answer
        return True, answer
    except HeadraceError as error:
        return False, RuntimeError(f"{error.code}: {error}")
    except Exception as error:  # noqa: BLE001 - what was wrong with the call is for the handler to hear
        return False, RuntimeError(error_text.told(error))


def _error(kind: str, text: str, detail: Any) -> BaseException:
    match kind:
        case "snooze":
            seconds, until = detail
            return Snooze(seconds, until=until)
        case "temporary":
            return TemporaryError(text, retry_after=detail)
        case "permanent":
            return PermanentError(text, code=detail)
        case "timeout":
            return TimeoutError(text)
        case "memory":
            return MemoryExceeded(text)
        case "arguments":
            return InvalidArguments(text)
        case "result":
            return InvalidResult(text)
        case _:
            return HandlerRaised(detail, text)
