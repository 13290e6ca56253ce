"""What a handler may be annotated with: types that go through JSON, and come back as what they were."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import msgspec.inspect

from headrace import custom_types
from headrace.errors import InvalidInput

_JSON = (dict, list, str, int, float, bool, type(None))
_NEVER = (typing.NoReturn, typing.Never)


def check_annotation(hint: Any, task: str, argument: str | None) -> None:
    """Raise InvalidInput where no JSON value becomes what is annotated. None: what the handler returns."""
    if argument is None and hint in _NEVER:
        return
    what = "says it returns" if argument is None else f"takes {argument!r} as"
    try:
        described = msgspec.inspect.type_info(hint)
    except TypeError as error:
        raise InvalidInput(
            f"task {task!r} {what} a type that cannot be stored: {error}; nothing was registered"
        ) from error
    for kind in _classes(described, set()):
        if not (custom_types.is_model(kind) or _is_json(kind)):
            raise InvalidInput(
                f"task {task!r} {what} {kind.__name__}, which cannot be stored: {custom_types.ADVICE}; "
                "nothing was registered"
            )


def _is_json(kind: type) -> bool:
    """An abstract class, such as `object`, that JSON values are instances of."""
    try:
        return any(issubclass(one, kind) for one in _JSON)
    except TypeError:
        return False


def _classes(described: Any, seen: set[int]) -> Iterator[type]:
    """The classes in a type that msgspec does not know. Types may hold themselves."""
    if id(described) in seen:
        return
    seen.add(id(described))
    if isinstance(described, msgspec.inspect.CustomType):
        yield described.cls
    elif isinstance(described, tuple):
        for one in described:
            yield from _classes(one, seen)
    elif isinstance(described, msgspec.inspect.Type | msgspec.inspect.Field):
        for name in described.__struct_fields__:
            if name not in {"default", "default_factory", "cls"}:
                yield from _classes(getattr(described, name), seen)
