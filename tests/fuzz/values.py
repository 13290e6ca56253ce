"""Good and bad values, made by the kind that a signature asks for. Everything comes from one dice."""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import math
import types
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from random import Random
from typing import Any
from uuid import UUID

import msgspec

NOW = datetime(2026, 7, 1, tzinfo=UTC)
BAD_SHARES = (0.0, 0.1, 0.2, 0.4, 0.8)
"""One of these for a call: how often a bad value stands where a good one was meant, at each place of it."""
DEPTH_MAX = 3


class Hostile:
    """Raises, whatever it is asked."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("asked a hostile object")

    __str__ = __repr__ = __eq__ = __lt__ = __bool__ = __len__ = __iter__ = _raise
    __hash__ = __int__ = __float__ = __index__ = __getitem__ = __format__ = __call__ = _raise


class HostileText(str):
    """A text that raises when it is looked at."""

    __slots__ = ()

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("asked a hostile text")

    __eq__ = __len__ = __repr__ = __format__ = strip = isprintable = encode = _raise  # type: ignore[assignment]
    __hash__ = str.__hash__


class HostileNumber(int):
    def _raise(self, *_: object) -> Any:
        raise RuntimeError("asked a hostile number")

    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __repr__ = __format__ = __abs__ = _raise
    __hash__ = int.__hash__


class HostileList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("went through a hostile list")


def _same(value: Any) -> Any:
    return value


def _generator() -> Iterable[Any]:
    yield None
    raise RuntimeError("went through a hostile generator")


_MADE_ONCE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2, 2**31, 2**63, 2**64, 10**400, -(10**400)),
    *(0.5, -0.0, math.nan, math.inf, -math.inf, 1e308, 1j, Decimal("NaN"), Fraction(1, 3)),
    *("", " ", "a", "\0", "a\0b", "\ud800", "\udfff", "é" * 200, "x" * 5000, "\n", "٣", "{}"),
    *(b"", b"a", b"\xff", bytearray(b"a"), memoryview(b"a")),
    *([], [None], [[]], [b"a"], ["a", 1], (), (None,), ("a",), {}, {"a": object()}, {1: 2}),
    *(set(), {1}, frozenset({"a"}), range(3), object(), int, len, NotImplemented, ..., types),
    *(datetime(2026, 7, 1), datetime.min, datetime.max, datetime.max.replace(tzinfo=UTC)),  # noqa: DTZ001, DTZ901 - that is the point
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    *(date(2026, 7, 1), timedelta(days=-1), timedelta.max, UUID(int=1), PurePath("a")),
    *(ValueError("x"), ValueError(), KeyboardInterrupt, BaseException("x"), msgspec.UNSET),
    *(HostileText("a"), HostileNumber(1), HostileList(["a"])),
)
BAD: tuple[Callable[[], Any], ...] = (
    *(functools.partial(_same, value) for value in _MADE_ONCE),
    *(Hostile, _generator, lambda: iter(["a"]), lambda: [Hostile()], lambda: {"a": Hostile()}),
)
"""The last ones made anew each time: they can be gone through once."""

JSON_VALUES = (None, 1, -2.5, "text", "é", True, [1, [2]], {"a": {"b": None}})


class Made:
    """What a fuzz can name: the jobs, tokens, queues … of the store at hand."""

    def __init__(self) -> None:
        self.by_name: dict[str, Callable[[Random], Any]] = {}
        """By the name of a parameter or a field, whatever its annotation."""
        self.by_kind: dict[Any, Callable[[Random], Any]] = {}


class Maker:
    """Makes the values of one call."""

    def __init__(self, dice: Random, made: Made, *, bad_share: float | None = None) -> None:
        self._dice = dice
        self._made = made
        self._bad_share = dice.choice(BAD_SHARES) if bad_share is None else bad_share

    def bad(self) -> Any:
        return self._dice.choice(BAD)()

    def arguments(self, function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments in the right number; a part of them wrong, a part of the optional ones left out."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        hints = hints_of(function)
        for name, parameter in inspect.signature(function).parameters.items():
            hint = hints.get(name, Any)
            match parameter.kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    count = self._dice.choice((0, 1, 1, 2))
                    positional += [self.value(name, hint) for _ in range(count)]
                case inspect.Parameter.VAR_KEYWORD:
                    if self._dice.random() < 0.3:
                        named[self._dice.choice(("limit", "misfire", "a", "name", "queue"))] = (
                            self.value(name, hint)
                        )
                case kind:
                    optional = parameter.default is not inspect.Parameter.empty
                    if optional and self._dice.random() < 0.5:
                        continue
                    if kind is inspect.Parameter.POSITIONAL_ONLY:
                        positional.append(self.value(name, hint))
                    elif kind is inspect.Parameter.KEYWORD_ONLY or optional:
                        named[name] = self.value(name, hint)
                    else:
                        positional.append(self.value(name, hint))
        positional_only_late = len(positional) and any(
            parameter.kind is inspect.Parameter.VAR_POSITIONAL
            for parameter in inspect.signature(function).parameters.values()
        )
        if positional_only_late:
            named = {
                name: value
                for name, value in named.items()
                if (found := inspect.signature(function).parameters.get(name)) is None
                or found.kind is inspect.Parameter.KEYWORD_ONLY
            }
        return positional, named

    def value(self, name: str, hint: Any, depth: int = 0) -> Any:
        """Of this kind; now and then something else."""
        if self._dice.random() < self._bad_share:
            # What a function does when it is called is its writer's: only what is none is bad.
            value = self.bad()
            return None if callable(value) and _is_function(hint) else value
        if (known := self._made.by_name.get(name)) is not None:
            return known(self._dice)
        return self.of_kind(name, hint, depth)

    def of_kind(self, name: str, hint: Any, depth: int) -> Any:  # noqa: C901, PLR0911, PLR0912 - a case for each kind
        dice = self._dice
        try:
            if (known := self._made.by_kind.get(hint)) is not None:
                return known(dice)
        except TypeError:  # not hashable
            return None
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self.of_kind(name, dice.choice(inner), depth)
        if origin is not None and isinstance(origin, type):
            if issubclass(origin, Mapping):
                found: dict[Any, Any] = {}
                for _ in range(dice.randrange(3)):
                    with contextlib.suppress(Exception):  # two hostile keys that are compared
                        found[self._key(name, inner[0], depth)] = self.value(
                            name, inner[1], depth + 1
                        )
                return found
            if issubclass(origin, Awaitable):
                return None
            if issubclass(origin, tuple) and (len(inner) != 2 or inner[1] is not ...):
                return tuple(self.value(name, one, depth + 1) for one in inner)
            if issubclass(origin, Iterable) and inner:
                values = [
                    self.value(name.removesuffix("s"), inner[0], depth + 1)
                    for _ in range(dice.choice((0, 1, 1, 2, 3)))
                ]
                return dice.choice((list, tuple, iter))(values)
            return self.of_kind(name, origin, depth)
        match hint:
            case type() if issubclass(hint, enum.Enum):
                return dice.choice(list(hint))
            case type() if hint is bool:
                return dice.random() < 0.5
            case type() if hint is int:
                return dice.choice((1, 2, 3, 10, 100))
            case type() if hint is float:
                return dice.choice((0.001, 0.5, 1.0, 30, 3600.0))
            case type() if hint is str:
                return dice.choice(("a", "b", "mail", "default", "x-1"))
            case type() if hint is bytes:
                return dice.choice((b"", b"{}", b"body"))
            case type() if hint is datetime:
                return NOW + timedelta(seconds=dice.randrange(-(10**6), 10**6))
            case type() if hint is timedelta:
                return timedelta(seconds=dice.randrange(1, 1000))
            case type() if issubclass(hint, BaseException):
                return ValueError("went wrong")
            case type() if depth < DEPTH_MAX and issubclass(hint, msgspec.Struct):
                return self.struct(hint, depth)
            case type() if depth < DEPTH_MAX and is_dataclass(hint):
                return self._dataclass(hint, depth)
            case _ if callable(hint) and getattr(hint, "__name__", "") == "Callable":
                return lambda *_: None
        return dice.choice(JSON_VALUES)

    def struct(self, kind: type[msgspec.Struct], depth: int = 0) -> Any:
        """With some of its fields; nothing of theirs is checked by msgspec itself."""
        hints = hints_of(kind)
        required = {
            one.name
            for one in msgspec.structs.fields(kind)
            if one.default is msgspec.NODEFAULT and one.default_factory is msgspec.NODEFAULT
        }
        chosen = {
            name: self.value(name, hints.get(name, Any), depth + 1)
            for name in kind.__struct_fields__
            if name in required or self._dice.random() < 0.2
        }
        try:
            return kind(**chosen)
        except Exception:  # noqa: BLE001 - some check their fields; they are called by themselves, too
            return None

    def _dataclass(self, kind: Any, depth: int) -> Any:
        hints = hints_of(kind)
        return kind(
            **{
                one.name: self.value(one.name, hints.get(one.name, Any), depth + 1)
                for one in dataclass_fields(kind)
                if (one.init and self._dice.random() < 0.4) or one.name == "job_type"
            }
        )

    def _key(self, name: str, hint: Any, depth: int) -> Any:
        key = self.value(name, hint, depth + 1)
        try:
            hash(key)
        except Exception:  # noqa: BLE001 - hostile, or a list
            return "a"
        return key


def _is_function(hint: Any) -> bool:
    return any("Callable" in str(kind) for kind in (hint, *typing.get_args(hint)))


def hints_of(owner: Any) -> dict[str, Any]:
    """Its annotations, without those that only type checkers can read."""
    try:
        return typing.get_type_hints(owner)
    except (NameError, TypeError):
        return {}
