"""Calling async code from code without an event loop: one loop, in one thread, for everything."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
)
from typing import Any, TypeVar

from headrace.errors import InvalidInput

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread, started when it is first needed, anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for it here, while it runs there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                threading.Thread(
                    target=self._loop.run_forever, name="headrace-bridge", daemon=True
                ).start()
            return self._loop


_loop_thread = LoopThread()


class Bridged:
    """What a method of a bridged object gives is bridged as well, if it is one of these."""


class Bridge:
    """Any object, with its async methods made to be called, and waited for, without an event loop.

    Where a method is for `async for`, calling it here gives what `for` takes.
    """

    def __init__(self, target: object, run: Callable[[Any], Any] = _loop_thread.run) -> None:
        self._target = target
        self._run = run

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not inspect.iscoroutinefunction(attribute) and not inspect.ismethod(attribute):
            return attribute

        @functools.wraps(attribute)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not inspect.iscoroutinefunction(attribute):
                answer = attribute(*args, **kwargs)
                if isinstance(answer, Bridged):
                    return Bridge(answer, self._run)
                return self._each(name, answer) if isinstance(answer, AsyncIterable) else answer
            _refuse_on_loop(name)
            return self._run(attribute(*args, **kwargs))

        return call

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._target) if not name.startswith("_")]

    def _each(self, name: str, items: AsyncIterable[Any]) -> Iterator[Any]:
        """What `async for` gives, without an event loop."""
        iterator = aiter(items)
        try:
            while True:
                _refuse_on_loop(name)
                item = self._run(_next(iterator))
                if item is _END:
                    return
                yield item
        finally:
            if isinstance(iterator, AsyncGenerator) and not is_on_loop():
                self._run(_close(iterator))


_END = object()


async def _next(iterator: AsyncIterator[Any]) -> Any:
    return await anext(iterator, _END)


async def _close(iterator: AsyncGenerator[Any, None]) -> None:
    await iterator.aclose()


def _refuse_on_loop(name: str) -> None:
    if is_on_loop():
        raise InvalidInput(
            f"{name} was called through the bridge inside an event loop, which it would block: "
            "await it instead"
        )


def is_on_loop() -> bool:
    """Whether an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
