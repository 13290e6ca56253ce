"""What a worker opens before its first job and closes after its last: clients, pools, models."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from headrace import validation
from headrace.errors import InvalidInput

logger = logging.getLogger("headrace.app")

Hook = Callable[[], Awaitable[object] | object]
"""A function without arguments, async or not."""
HookT = TypeVar("HookT", bound=Hook)


class Startup:
    """The hooks of an application. Those of the end run in the reverse order of their registration."""

    def __init__(self) -> None:
        self._begin: list[Hook] = []
        self._end: list[Hook] = []

    def add(self, hook: HookT, *, at_end: bool) -> HookT:
        """Remember it, and give it back: for decorators."""
        name = "on_shutdown" if at_end else "on_startup"
        if isinstance(hook, type) or not callable(hook):
            raise InvalidInput(f"{name} takes a function, not {validation.told(hook)}")
        required = [
            one.name
            for one in inspect.signature(hook).parameters.values()
            if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        if required:
            raise InvalidInput(
                f"{name}: {_name(hook)} must take no arguments, and takes {', '.join(required)}; "
                "keep what handlers share in app.state"
            )
        (self._end if at_end else self._begin).append(hook)
        return hook

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The hooks around whatever runs jobs.

        What a hook of the beginning raises goes through: nothing has run by then. At the end every
        hook has its turn, and what it raises is logged.
        """
        try:
            for hook in self._begin:
                try:
                    await _call(hook)
                except Exception as error:
                    error.add_note(
                        f"raised by the on_startup hook {_name(hook)}; no job was claimed"
                    )
                    raise
            yield
        finally:
            for hook in reversed(self._end):
                try:
                    await _call(hook)
                except Exception:
                    logger.exception("the on_shutdown hook %s failed", _name(hook))


async def _call(hook: Hook) -> None:
    answer = hook()
    if inspect.isawaitable(answer):
        await answer


def _name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", None) or type(hook).__name__
