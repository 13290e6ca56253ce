"""Inside a child process: run one handler after the other, as the worker says.

The pipe to the worker carries pickled tuples of plain values; it is private to the two processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from headrace import codec, error_text, validation
from headrace.app import Headrace
from headrace.app.bridge import is_on_loop
from headrace.app.context import Context, enter
from headrace.app.task import Task
from headrace.completion import batch_of
from headrace.crypto import KeyRing
from headrace.errors import (
    InvalidInput,
    PermanentError,
    Snooze,
    TemporaryError,
)
from headrace.manager import settlement
from headrace.model import Job
from headrace.redaction import Redacted
from headrace.worker.execution import InvalidArguments, arguments
from headrace.worker.tracebacks import traceback_of

_MB = 1 << 20

# What goes to the worker: (kind, …).
CALL = "call"  # a method of the context, its arguments; the answer comes back as (ok, value)
DONE = "done"  # the result as JSON, the memory used in bytes
RAISED = "raised"  # kind of error, message, details, the memory used in bytes


def main(pipe: Connection, memory_mb: int | None) -> None:
    """Serve until the pipe closes. The worker's death is ours, whatever the handler does meanwhile."""
    if hasattr(os, "setsid"):
        os.setsid()  # so that what handlers start can be killed with us
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker to handle
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, name="headrace-parent", daemon=True).start()
    if memory_mb is not None:
        _limit_memory(memory_mb)
    while True:
        try:
            module, name, job, setup = pipe.recv()
            pipe.send(_attempt(pipe, module, name, job, setup))
        except (EOFError, OSError):
            return  # the worker is gone, and with it everyone who could be told


def _attempt(pipe: Connection, module: str, name: str, job: Job, setup: Setup) -> tuple[Any, ...]:
    try:
        task = find(module, name)
        assert task is not None
        setup.apply(task.app)
        context: Any = _RemoteContext(pipe, job, task.app)
        enter(context)
        result = _run(task, context)
        try:
            encoded = codec.encode(result, what="result", limit=codec.PAYLOAD_BYTES_MAX)
        except InvalidInput as error:
            return (RAISED, "result", error_text.text_of(error), None, _memory())
        return (DONE, encoded, _memory())
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
        kind, text, detail = _raised(error)
        return (RAISED, kind, text, detail, _memory())


def _raised(error: Any) -> tuple[str, str, Any]:
    """The kind of error, its message and details, in values that any process can read."""
    text, name = error_text.text_of(error), error_text.name_of(error)
    try:
        if error_text.is_a(error, InvalidArguments):
            return "arguments", text, None
        if error_text.is_a(error, Snooze):
            until = error.until
            in_utc = None if until is None else validation.check_time(until, "until")
            return "snooze", text, (_plain_seconds(error.seconds), in_utc)
        if error_text.is_a(error, TemporaryError):
            return "temporary", text, _retry_after(error)
        if error_text.is_a(error, PermanentError):
            return "permanent", text, settlement.failure_of(error).code
    except InvalidInput as wrong:
        return "other", wrong.message, error_text.name_of(wrong)
    except BaseException:  # noqa: BLE001 - what it holds is the handler's object
        return "other", f"a {name} that cannot be read", name
    if error_text.is_a(error, TimeoutError):
        return "timeout", text, None
    if error_text.is_a(error, MemoryError):
        return "memory", "the handler asked for more memory than it may have", None
    return "other", text, name


def _plain_seconds(seconds: Any) -> float | None:
    return None if seconds is None else validation.check_seconds(seconds, "seconds", zero=True)


def _retry_after(error: Any) -> float | None:
    """None where what it asks for cannot be meant: then the backoff says when."""
    try:
        return _plain_seconds(error.retry_after)
    except BaseException:  # noqa: BLE001 - what it holds is the handler's object
        return None


def _run(task: Task[..., Any], context: Any) -> Any:
    """What the handler returns. Where it fails is told at once: frames do not go through the pipe."""
    try:
        result = task.function(**arguments(task, context, context))
        if inspect.iscoroutine(result):
            result = asyncio.run(_to_its_end(result, task.app))
    except BaseException as error:
        where = traceback_of(error)
        if where is not None:
            context.keep_traceback(where)
        raise
    return result


async def _to_its_end(handler: Coroutine[Any, Any, Any], app: Headrace) -> Any:
    try:
        return await handler
    finally:
        await app.close()  # connections belong to the loop, and it ends here


class Setup(Redacted, frozen=True):
    """What the worker was told about the application, on its command line or in its environment."""

    url: str
    tenant: str | None
    keys: KeyRing | None

    @classmethod
    def of(cls, app: Headrace) -> Setup:
        return cls(app.url, app.tenant, app.keys)

    def apply(self, app: Headrace) -> None:
        app.url, app.tenant, app.keys = self.url, self.tenant, self.keys


class _RemoteContext:
    """The handler's context, with every call carried out by the worker."""

    def __init__(self, pipe: Connection, job: Job, app: Headrace) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self.app = app  # this process's own, with connections of its own
        self.job = job
        self.attempt = job.attempt
        self.token = job.token
        self.is_cancelled = False  # a child that must stop is killed

    @property
    def deadline(self) -> Any:
        return self._ask("deadline", None, None)

    @property
    def last_checkpoint(self) -> Any:
        return self._ask("last_checkpoint", None, None)

    def snooze(self, seconds: Any = None, *, until: Any = None) -> None:
        raise Snooze(seconds, until=until)

    def batch_results(self) -> Any:
        """Read by this process itself: only plain values go through the pipe."""
        app = self.app if is_on_loop() else self.app.sync
        return app.batch_results(batch_of(self.job))

    def __getattr__(self, name: str) -> Any:
        member = getattr(Context, name, None)
        if member is None or name.startswith("_"):
            raise AttributeError(name)
        if not callable(member):
            return self._ask(name, None, None)
        if inspect.iscoroutinefunction(member) and is_on_loop():

            async def call_async(*args: Any, **kwargs: Any) -> Any:
                return self._ask(name, args, kwargs)

            return call_async

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._ask(name, args, kwargs)

        return call

    def _ask(self, name: str, args: Any, kwargs: Any) -> Any:
        with self._lock:  # a handler may have threads
            self._pipe.send((CALL, name, args, kwargs))
            ok, value = self._pipe.recv()
        if not ok:
            raise value
        return value


def find(module: str, name: str) -> Task[..., Any] | None:
    """The task at that place; None if there is none, as for functions inside functions."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, Task) else None


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _limit_memory(megabytes: int) -> None:
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - not on every platform

        resource.setrlimit(resource.RLIMIT_AS, (megabytes * _MB, megabytes * _MB))


def _memory() -> int:
    """The most that this process has held, in bytes; 0 where that cannot be told."""
    if sys.platform == "win32":
        return 0
    if sys.platform == "linux":
        # Not getrusage: what it tells outlives fork and exec, so a child of a large process would seem large.
        with contextlib.suppress(OSError, ValueError, StopIteration):
            lines = Path("/proc/self/status").read_text().splitlines()
            told = next(line for line in lines if line.startswith("VmHWM:"))
            return int(told.split()[1]) * 1024
    import resource  # noqa: PLC0415 - not on every platform

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
