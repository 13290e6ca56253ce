"""One call and what became of it: a refusal by name, success, or a leak."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import reprlib
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import HeadraceError

SECONDS_MAX = 5.0
"""A call that takes longer hangs."""
WAITING_SECONDS = 0.02
ITEMS_MAX = 5
_WAITS = ("follow", "wait", "watch", "stream", "next", "drain")
"""Verbs that may wait for as long as nothing happens: they are interrupted, and that is no hang."""


@dataclass(frozen=True)
class Call:
    place: str
    """What is called, for people: `JobManager.claim`."""
    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    own_errors: tuple[type[BaseException], ...] = ()

    def __str__(self) -> str:
        given = [shown(one) for one in self.args]
        given += [f"{name}={shown(one)}" for name, one in self.kwargs.items()]
        return f"{self.place}({', '.join(given)})"


@dataclass(frozen=True)
class Leak:
    number: int
    call: str
    place: str
    error: str
    """Its class: with the place, the kind of the leak."""
    where: str
    """The line of Headrace, or of a driver, that raised."""
    text: str

    @property
    def kind(self) -> tuple[str, str, str]:
        return (self.place, self.error, self.where)


async def attempt(call: Call, number: int) -> Leak | None:
    """Make the call and let go of what it gives. None: refused by name, or done."""
    try:
        # The handler of an error that asks a hostile object would hide what raised first.
        await _made(call)
    except HeadraceError:
        return None
    except TimeoutError:
        if any(word in call.place for word in _WAITS):
            return None
        return _leak(call, number, "hang", "", "")
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        if isinstance(error, call.own_errors) or _is_of_the_call_itself(error):
            return None
        return _leak(call, number, type(error).__name__, _where(error), _told(error))
    return None


async def _made(call: Call) -> None:
    waits = any(word in call.place for word in _WAITS)
    async with asyncio.timeout(WAITING_SECONDS if waits else SECONDS_MAX):
        given = call.function(*call.args, **call.kwargs)
        if inspect.isawaitable(given):
            given = await given
        if isinstance(given, AsyncIterator) or hasattr(type(given), "__aiter__"):
            await _gone_through(given)
        elif isinstance(given, contextlib.AbstractContextManager):
            with given:
                pass


async def _gone_through(given: Any) -> None:
    count = 0
    iterator = given.__aiter__()
    try:
        async for _ in iterator:
            count += 1
            if count == ITEMS_MAX:
                return
    finally:
        if (close := getattr(iterator, "aclose", None)) is not None:
            await close()


def shown(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except BaseException:  # noqa: BLE001 - a hostile value
        return f"<{type(value).__name__}>"


def _leak(call: Call, number: int, error: str, where: str, text: str) -> Leak:
    return Leak(number, str(call), call.place, error, where, text)


def _is_of_the_call_itself(error: BaseException) -> bool:
    """A TypeError for a wrong number of arguments is Python's own, raised before anything ran."""
    text = str(error) if type(error) is TypeError else ""
    return any(
        words in text
        for words in (
            "unexpected keyword argument",
            "got an unexpected keyword",
            "missing a required",
            "required positional argument",
            "multiple values for argument",
            "too many positional arguments",
        )
    )


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [one for one in frames if "/headrace/" in one.filename]
    last = ours[-1] if ours else frames[-1]
    return f"{last.filename.rpartition('/headrace/')[2]}:{last.lineno} {last.name}"


def _told(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-3000:]
    except BaseException:  # noqa: BLE001 - it quotes a hostile value
        return type(error).__name__
