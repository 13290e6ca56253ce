"""What can be told of a running application: every verb of the store, every submission, every attempt."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from headrace.manager import Outcome
from headrace.model import Job
from headrace.stores.base import JobStore


class Observer:
    """Override what you need. Called where the work is done: be quick, and do not raise."""

    def verb(self, name: str) -> AbstractContextManager[object]:  # noqa: ARG002 - for those that override it
        """Around one verb of the store. What it raises passes through."""
        return nullcontext()

    def verb_ended(self, name: str, seconds: float, error: BaseException | None) -> None:
        """One verb of the store has answered."""

    def attempt_ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        """A handler has ended; None: with nothing to record, because the lease was lost."""


class ObservedStore:
    """A store whose verbs are told to observers. Everything else is the store's own."""

    def __init__(self, store: JobStore, observers: Sequence[Observer]) -> None:
        self._store = store
        self._observers = tuple(observers)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute
        observed = _observed(name, attribute, self._observers)
        setattr(self, name, observed)  # found at once from now on
        return observed


def observe(store: JobStore, observers: Sequence[Observer]) -> JobStore:
    return cast("JobStore", ObservedStore(store, observers)) if observers else store


def _observed(
    name: str, verb: Callable[..., Any], observers: Sequence[Observer]
) -> Callable[..., Any]:
    @functools.wraps(verb)
    async def call(*args: Any, **kwargs: Any) -> Any:
        error: BaseException | None = None
        start = time.perf_counter()
        around = [observer.verb(name) for observer in observers]
        for one in around:
            one.__enter__()
        try:
            return await verb(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            for one in reversed(around):
                one.__exit__(
                    None if error is None else type(error),
                    error,
                    None if error is None else error.__traceback__,
                )
            seconds = time.perf_counter() - start
            for observer in observers:
                observer.verb_ended(name, seconds, error)

    return call
