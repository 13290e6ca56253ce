"""The frame of the conformance kit: cases, suites, and the fresh store each case gets.

A case is an async function of an `Env`. It needs no test framework: it returns, or it raises. A suite
belongs to one text (a specification, or the store protocol), and a case names the part of the text that
it proves. Nothing here knows a store by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol, TypeVar

from headrace.clock import Clock, ManualClock
from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.manager import JobManager
from headrace.policy import Policies, Policy


class Closeable(Protocol):
    async def close(self) -> None: ...


class Openable(Protocol):
    """A contract's adapter class."""

    async def open(self, url: str, clock: Clock | None = None) -> Any: ...


_C = TypeVar("_C", bound=Closeable)


class Env:
    """What a case works with: the url of an empty store, and a clock that stands still."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = ManualClock()
        self._opened: list[Closeable] = []

    async def open(self, adapter: Openable, *, live_clock: bool = False) -> Any:
        """An adapter on the case's store, closed when the case ends."""
        opened = await adapter.open(self.url, clock=None if live_clock else self.clock)
        self.closing(opened)
        return opened

    async def manager(
        self,
        policies: Policies | Policy | None = None,
        *,
        tenant: str | None = None,
        keys: KeyRing | None = None,
    ) -> JobManager:
        """A manager on the case's store, closed when the case ends."""
        manager = await connect(
            self.url, policies=policies, clock=self.clock, tenant=tenant, keys=keys
        )
        self.closing(manager)
        return manager

    def closing(self, opened: _C) -> _C:
        self._opened.append(opened)
        return opened

    async def close(self) -> None:
        for opened in reversed(self._opened):
            await opened.close()


CaseFunction = Callable[[Env], Awaitable[None]]


class Case:
    """One provable statement of a text."""

    def __init__(self, suite: str, part: str, title: str, function: CaseFunction) -> None:
        self.suite = suite
        self.part = part
        """The number or heading of the text that this proves, word for word."""
        self.title = title
        self.function = function

    @property
    def name(self) -> str:
        return f"{self.suite}: {self.part}: {self.title}"

    async def run(self, url: str) -> None:
        """Run on the empty store behind `url`; raises what the case found wrong."""
        env = Env(url)
        try:
            await self.function(env)
        finally:
            await env.close()


class Suite:
    """All cases of one text, in the order they are written."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        """What the cases prove, for the heading of a report."""
        self.cases: list[Case] = []

    def case(self, part: str, title: str) -> Callable[[CaseFunction], CaseFunction]:
        """Add the function as a case. A (part, title) pair is unique within its suite."""
        if any((case.part, case.title) == (part, title) for case in self.cases):
            raise ValueError(f"{self.name} has a case {part}: {title} already")

        def add(function: CaseFunction) -> CaseFunction:
            self.cases.append(Case(self.name, part, title, function))
            return function

        return add


class Caught:
    """Filled by `raises` with the error that was raised."""

    error: BaseException


@contextlib.contextmanager
def raises(*errors: type[BaseException]) -> Iterator[Caught]:
    """The block must raise one of these."""
    caught = Caught()
    try:
        yield caught
    except errors as error:
        caught.error = error
    else:
        names = " or ".join(error.__name__ for error in errors)
        raise AssertionError(f"{names} was expected, and nothing was raised")
