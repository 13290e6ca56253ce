"""What handlers must not be able to do to their worker: each entry bites in its own way.

At the top of a module, where child processes find them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

import msgspec

from headrace import Context, Headrace, PermanentError, Snooze, SyncContext, TemporaryError
from headrace.errors import StoreClosed, StoreUnavailable

Poison = Callable[[Any], Any]


def bite(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("it bites")


def bite_hard(*_: object, **__: object) -> NoReturn:
    raise SystemExit(3)


def made(name: str, base: type = Exception, **members: Any) -> Any:
    return type(name, (base,), members)


def raising(error: Callable[[], BaseException]) -> Poison:
    def poison(_: Any) -> NoReturn:
        raise error()

    return poison


def returning(value: Callable[[], Any]) -> Poison:
    return lambda _: value()


def _circular() -> Exception:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


def _with(error: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


def _round() -> list[Any]:
    round_: list[Any] = []
    round_.append(round_)
    return round_


def _endless(_: Any) -> Any:
    return _endless(_) + 1


class _BitingName(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        bite()


class Nameless(Exception, metaclass=_BitingName):
    pass


class Liar(Exception):
    @property  # type: ignore[misc]  # the poison
    def __class__(self) -> Any:
        return Snooze


class NoClass(Exception):
    @property  # type: ignore[misc]  # the poison
    def __class__(self) -> Any:
        bite()


BitingText = made("BitingText", str, __len__=bite, encode=bite, isascii=bite, __getitem__=bite)
BitingFloat = made("BitingFloat", float, __le__=bite, __ge__=bite, __lt__=bite, __gt__=bite)

RAISED: dict[str, Poison] = {
    "its text raises": raising(made("Biting", __str__=bite)),
    "its text ends the process": raising(made("Biting", __str__=bite_hard)),
    "its text is no text": raising(made("Biting", __str__=lambda _: 5)),
    "its text is a text that bites": raising(made("Biting", __str__=lambda _: BitingText("x"))),
    "its repr raises": raising(made("Biting", __repr__=bite, __str__=Exception.__repr__)),
    "its args raise": raising(made("Biting", args=property(bite))),
    "its traceback raises": raising(made("Biting", __traceback__=property(bite))),
    "its class raises": raising(NoClass),
    "its class lies": raising(Liar),
    "its name raises": raising(Nameless),
    "its code raises": raising(
        lambda: made("Coded", PermanentError, error_code=property(bite, lambda *_: None))("x")
    ),
    "its code ends the process": raising(
        lambda: made("Coded", PermanentError, error_code=property(bite_hard, lambda *_: None))("x")
    ),
    "its code is a map": raising(lambda: PermanentError("x", code={"a": 1})),  # type: ignore[arg-type]
    "its code is half a character": raising(lambda: PermanentError("x", code="caf\udce9")),
    "its code is an object that bites": raising(
        lambda: PermanentError("x", code=made("Code", object, __str__=bite)())
    ),
    "its message is half a character": raising(lambda: ValueError("caf\udce9")),
    "its message has a nul": raising(lambda: ValueError("a\0b")),
    "its message is long": raising(lambda: ValueError("x" * 3_000_000)),
    "its causes go round": raising(_circular),
    "retry after nan": raising(lambda: TemporaryError("x", retry_after=float("nan"))),
    "retry after inf": raising(lambda: TemporaryError("x", retry_after=float("inf"))),
    "retry after 1e300": raising(lambda: TemporaryError("x", retry_after=1e300)),
    "retry after -1": raising(lambda: TemporaryError("x", retry_after=-1)),
    "retry after a text": raising(lambda: TemporaryError("x", retry_after="soon")),
    "retry after what bites": raising(lambda: TemporaryError("x", retry_after=BitingFloat(1.0))),
    "retry after raises": raising(
        lambda: made("Late", TemporaryError, retry_after=property(bite, lambda *_: None))("x")
    ),
    "SystemExit": raising(lambda: SystemExit(2)),
    "KeyboardInterrupt": raising(KeyboardInterrupt),
    "GeneratorExit": raising(GeneratorExit),
    "StopIteration": raising(StopIteration),
    "StopAsyncIteration": raising(StopAsyncIteration),
    "CancelledError": raising(asyncio.CancelledError),
    "a future's CancelledError": raising(concurrent.futures.CancelledError),
    "a group": raising(lambda: ExceptionGroup("several", [ValueError("x"), KeyError("y")])),
    "a group of the worst": raising(
        lambda: BaseExceptionGroup("several", [KeyboardInterrupt(), SystemExit(1)])
    ),
    "no memory": raising(MemoryError),
    "no stack": _endless,
    "odd syntax": raising(lambda: SyntaxError("x", (None, "a", 3, 5))),  # type: ignore[arg-type]
    "a closed store": raising(lambda: StoreClosed("mine, not the worker's")),
    "an absent store": raising(lambda: StoreUnavailable("mine, not the worker's")),
    "a text that bites": raising(lambda: ValueError(BitingText("x"))),
    "snooze to year 9999": raising(lambda: Snooze(until=datetime(9999, 12, 31, tzinfo=UTC))),
    "snooze without a zone": raising(lambda: Snooze(until=datetime(2030, 1, 1))),  # noqa: DTZ001 - the poison
    "snooze until a text": raising(lambda: Snooze(until="tomorrow")),  # type: ignore[arg-type]
    "snooze for a text": raising(lambda: Snooze("soon")),
    "snooze for nan": raising(lambda: Snooze(float("nan"))),
    "snooze for -1": raising(lambda: Snooze(-1)),
    "snooze for ever": raising(lambda: Snooze(timedelta.max)),
    "snooze both ways": raising(lambda: Snooze(5, until=datetime(2030, 1, 1, tzinfo=UTC))),
    "snooze for what bites": raising(lambda: _with(Snooze(1), seconds=BitingFloat(-1.0))),
}

RETURNED: dict[str, Poison] = {
    "an object": returning(object),
    "nan": returning(lambda: {"a": float("nan")}),
    "inf": returning(lambda: [float("inf")]),
    "a decimal that is none": returning(lambda: [object(), Decimal("NaN")]),
    "half a character": returning(lambda: {"a": "caf\udce9"}),
    "a huge number": returning(lambda: 10**5000),
    "what holds itself": returning(_round),
    "what is nested without end": returning(_deep),
    "a map that bites": returning(
        lambda: made("D", dict, items=bite, values=bite)({"a": object()})
    ),
    "a map that ends the process": returning(
        lambda: [made("D", dict, items=bite_hard, values=bite_hard, __iter__=bite_hard)(a=object())]
    ),
    "a list that bites": returning(lambda: [made("L", list, __iter__=bite)([object()])]),
    "odd keys": returning(lambda: {object(): 1}),
    "bytes inside": returning(lambda: {"a": b"x"}),
    "the reserved key": returning(lambda: {"$bytes": 5}),
    "a generator": returning(lambda: (one for one in [1])),
    "a class": returning(lambda: int),
    "an error": returning(lambda: ValueError("x")),
    "too much": returning(lambda: "x" * (17 << 20)),
    "raw bytes that are no JSON": returning(lambda: msgspec.Raw(b"{not json")),
}


def _mutated(ctx: Any) -> NoReturn:
    inner: dict[str, Any] = {}
    ctx.log("fine so far", inner=inner)
    inner["a"] = object()
    raise ValueError("and its log cannot be written")


def _deadline(ctx: Any) -> NoReturn:
    ctx.deadline = 5
    raise ValueError("and it has set a deadline of its own")


ASKED: dict[str, Poison] = {
    "log half a character": lambda ctx: ctx.log("caf\udce9"),
    "log a number": lambda ctx: ctx.log(5),
    "log an object": lambda ctx: ctx.log("x", field=object()),
    "log what changes": _mutated,
    "progress a text": lambda ctx: ctx.progress("half"),
    "progress nan": lambda ctx: ctx.progress(float("nan")),
    "progress half a character": lambda ctx: ctx.progress(0.5, "caf\udce9"),
    "checkpoint an object": lambda ctx: ctx.checkpoint(object()),
    "checkpoint nan": lambda ctx: ctx.checkpoint({"a": float("nan")}),
    "spawn a text": lambda ctx: ctx.spawn("child"),
    "a deadline of its own": _deadline,
    "shorten to a text": lambda ctx: ctx.shorten_timeout("soon"),
    "shorten to nan": lambda ctx: ctx.shorten_timeout(float("nan")),
}

POISONS = RAISED | RETURNED | ASKED

app = Headrace("memory:")


@app.task(max_attempts=1)
async def on_loop(ctx: Context, poison: str) -> Any:
    value = POISONS[poison](ctx)
    return await value if inspect.iscoroutine(value) and poison in ASKED else value


@app.task(max_attempts=1)
def in_thread(ctx: SyncContext, poison: str) -> Any:
    return POISONS[poison](ctx)


@app.task(max_attempts=1, isolation="process")
def in_child(ctx: SyncContext, poison: str) -> Any:
    return POISONS[poison](ctx)


@app.task
async def innocent(n: int) -> int:
    await asyncio.sleep(0)
    return n
