"""Bad input stops here: what a verb is given is compared with what its signature says it takes.

Only kinds are compared (text, number, list of ids, a JobSpec): whether a text is a name, and a number in
range, is for `validation`. What passes is plain: an exact `str` where text is asked for, a list where
anything that can be gone through once is. So nothing behind it meets a value that raises when it is
compared, printed or counted.
"""

from __future__ import annotations

import enum
import functools
import inspect
import operator
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import msgspec

from headrace.errors import InvalidId, InvalidInput, InvalidLimit, InvalidName, InvalidTime
from headrace.model import Event, Job
from headrace.validation import UNCHANGED, told

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

INT_MAX = 2**63 - 1
"""No store counts further."""

Check = Callable[[Any], Any]
"""Gives the value as it goes on, or raises Unfit."""
Within = Callable[[], AbstractContextManager[Any]]

_Given = tuple[tuple[Any, ...], dict[str, Any]]
_Compared = Callable[[tuple[Any, ...], dict[str, Any]], _Given]

_looked_into_later: set[type] = {Job, Event}
"""Only their class is compared: a manager has made them."""
_IDS = frozenset({"ids", "job", "job_id", "job_ids"})
_OWN = "headrace."


class Unfit(Exception):
    """Not what was asked for. Says what that is."""


def checked(
    function: Callable[P, R], within: Within = nullcontext, leaving: Collection[str] = ()
) -> Callable[P, R]:
    """The function with its arguments compared first, inside of `within` (where errors are translated).

    Raises InvalidInput, before anything is read or changed. What `leaving` names is its own to judge.
    """
    signature = inspect.signature(function)
    if all(one.annotation is one.empty for one in signature.parameters.values()):
        return function  # nothing of it could be compared
    compared = _comparison(function, signature, leaving)
    if within is not nullcontext:
        compared = _inside(within, compared)
    call: Callable[..., Any] = function

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            plain, named = compared(args, kwargs)
            return await call(*plain, **named)

        return cast("Callable[P, R]", awaited)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> Any:
        plain, named = compared(args, kwargs)
        return call(*plain, **named)

    return called


def guarded(cls: C) -> C:
    """Class decorator: every public method that the class itself defines is `checked`."""
    return guarding()(cls)


def guarding(within: Within = nullcontext, leaving: Collection[str] = ()) -> Callable[[C], C]:
    """The same with the options of `checked`."""
    return lambda cls: _guard(cls, within, leaving)


def _guard(cls: C, within: Within, leaving: Collection[str]) -> C:
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        match member:
            case staticmethod() | classmethod():
                setattr(cls, name, type(member)(checked(member.__func__, within, leaving)))
            case types.FunctionType():
                setattr(cls, name, checked(member, within, leaving))
            case _:
                pass
    return cls


def looked_into_later(cls: C) -> C:
    """Class decorator for values whose fields whoever works with them checks one by one."""
    _looked_into_later.add(cls)
    return cls


def checker(kind: Any, what: str) -> Check:
    """Gives a value back if it is of this kind (an annotation), with the fields of a struct; or InvalidInput.

    To be made once: what is settled in batches is compared one by one.
    """
    one = _check_of(kind)
    return lambda value: _passed(one, what, value)


def check_fields(value: msgspec.Struct) -> None:
    """For a struct's `__post_init__`: each field as its annotation says, and plain. Raises InvalidInput."""
    for name, one in _fields(type(value)).items():
        field = getattr(value, name)
        plain = _passed(one, name, field)
        if plain is not field:
            msgspec.structs.force_setattr(value, name, plain)


def _passed(one: Check, name: str, value: Any) -> Any:
    try:
        return one(value)
    except Unfit as unfit:
        raise _refusal(name, value, unfit) from None


def _refusal(name: str, value: Any, unfit: Unfit) -> InvalidInput:
    kind = _error_of(name, str(unfit))
    return kind(f"{name} is {told(value)}, not {unfit}; {UNCHANGED}")


def _error_of(name: str, wanted: str) -> type[InvalidInput]:
    if name in _IDS:
        return InvalidId
    for kind, words in (
        (InvalidTime, ("a time",)),
        (InvalidLimit, ("a number", "a whole number", "a duration")),
        (InvalidName, ("text", "a list", "a list of text")),
    ):
        if wanted.removesuffix(" or None") in words:
            return kind
    return InvalidInput


class _Parameter(NamedTuple):
    """One that is compared, and where its value may stand in a call."""

    position: int
    """Among the positional ones; of a parameter that takes none, past them all."""
    name: str
    is_named: bool
    """A call may give it by its name."""
    check: Check


_PAST_ALL = sys.maxsize


def _inside(within: Within, compared: _Compared) -> _Compared:
    def translated(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given:
        with within():
            return compared(args, kwargs)

    return translated


def _comparison(
    function: Callable[..., Any], signature: inspect.Signature, leaving: Collection[str]
) -> _Compared:
    """What makes the arguments of a call plain, or raises InvalidInput.

    Most verbs compare few of theirs, so it goes by those, not by what a call was given.
    """
    found = functools.cache(lambda: _parameters(function, signature, leaving))

    def compared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given:
        parameters, rest = found()
        count = len(args)
        for position, name, is_named, check in parameters:
            if position < count:
                value = args[position]
            elif is_named and name in kwargs:
                value = kwargs[name]
            else:
                continue
            try:
                plain = check(value)
            except Unfit as unfit:
                signature.bind(*args, **kwargs)  # a wrong number of arguments is Python's own error
                raise _refusal(name, value, unfit) from None
            if plain is value:
                continue
            if position < count:
                args = (*args[:position], plain, *args[position + 1 :])
            else:
                kwargs[name] = plain
        if rest is not None and rest.position < count:
            more = _passed(rest.check, rest.name, args[rest.position :])
            args = (*args[: rest.position], *more)
        return args, kwargs

    return compared


def _parameters(
    function: Callable[..., Any], signature: inspect.Signature, leaving: Collection[str]
) -> tuple[Sequence[_Parameter], _Parameter | None]:
    """Those with a check, and the one that takes all further positional arguments, if it has one.

    Read when the function is first called, since annotations may look ahead.
    """
    hints = _hints(function)
    parameters: list[_Parameter] = []
    rest: _Parameter | None = None
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if name not in hints or name in leaving:
            continue
        check = _check_of(hints[name])
        if check is _anything:
            continue
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                several = functools.partial(_each_of_tuple, check)
                rest = _Parameter(position, name, is_named=False, check=several)
            case inspect.Parameter.KEYWORD_ONLY:
                parameters.append(_Parameter(_PAST_ALL, name, is_named=True, check=check))
            case inspect.Parameter.POSITIONAL_ONLY:
                parameters.append(_Parameter(position, name, is_named=False, check=check))
            case inspect.Parameter.POSITIONAL_OR_KEYWORD:
                parameters.append(_Parameter(position, name, is_named=True, check=check))
            case _:
                pass
    return parameters, rest


def _hints(owner: Any) -> dict[str, Any]:
    """Its annotations; without those that name what is only known to type checkers."""
    names = getattr(inspect.unwrap(owner), "__annotations__", {})
    try:
        return typing.get_type_hints(owner)
    except NameError:
        pass
    scope = getattr(inspect.unwrap(owner), "__globals__", {})
    found = {}
    for name, text in names.items():
        try:
            found[name] = eval(text, scope) if isinstance(text, str) else text  # noqa: S307 - our own source
        except NameError:
            continue
    return found


def _check_of(kind: Any) -> Check:
    """What compares a value with an annotation. Whatever says nothing is passed."""
    if isinstance(kind, typing.ParamSpecArgs | typing.ParamSpecKwargs | TypeVar):
        return _anything
    return _known_check(kind)


@functools.lru_cache(maxsize=4096)
def _known_check(kind: Any) -> Check:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _any_of(arguments)
    if origin is typing.Annotated:
        return _check_of(arguments[0])
    if origin is typing.Literal:
        return _anything
    if isinstance(origin, type):
        return _of_generic(origin, arguments)
    return _of_class(kind) if isinstance(kind, type) else _anything


def _any_of(kinds: tuple[Any, ...]) -> Check:
    checks = [_check_of(kind) for kind in kinds if kind is not type(None)]
    if any(one is _anything for one in checks):
        return _anything
    or_none = len(checks) < len(kinds)

    def either(value: Any) -> Any:
        if value is None and or_none:
            return None
        wanted = []
        for one in checks:
            try:
                return one(value)
            except Unfit as unfit:
                wanted.append(str(unfit))
        raise Unfit(" or ".join(dict.fromkeys([*wanted, "None"] if or_none else wanted)))

    return either


def _of_generic(origin: type, arguments: tuple[Any, ...]) -> Check:
    if issubclass(origin, Mapping):
        key, value = (_check_of(one) for one in arguments)
        return functools.partial(_mapping, key, value)
    if origin in (type, typing.Generic) or issubclass(origin, Awaitable):
        return _anything
    if getattr(origin, "__module__", "") == "collections.abc" and origin.__name__ == "Callable":
        return _callable
    if issubclass(origin, tuple) and (len(arguments) != 2 or arguments[1] is not ...):  # noqa: PLR2004 - tuple[X, ...]
        return _anything
    if issubclass(origin, Iterable) and origin.__module__ in ("collections.abc", "builtins"):
        # One bad value among many is named by its place, by whoever reads them.
        item = _anything if arguments[0] in _looked_into_later else _check_of(arguments[0])
        return functools.partial(_several, item, issubclass(origin, tuple))
    return _of_class(origin)


def _of_class(kind: type) -> Check:
    if issubclass(kind, enum.Enum):
        return functools.partial(_word, kind)
    if getattr(kind, "_is_protocol", False):
        verbs = (name for name, member in vars(kind).items() if inspect.isfunction(member))
        return functools.partial(_able, kind, tuple(name for name in verbs if name[0] != "_"))
    if kind in _looked_into_later:
        return functools.partial(_instance, kind)
    if issubclass(kind, msgspec.Struct) and kind.__module__.startswith(_OWN):
        return functools.partial(_struct, kind)
    return functools.partial(_instance, kind)


@functools.lru_cache(maxsize=256)
def _fields(kind: Any) -> Mapping[str, Check]:
    hints = typing.get_type_hints(kind)
    checks = {name: _check_of(hints[name]) for name in kind.__struct_fields__}
    return {name: one for name, one in checks.items() if one is not _anything}


def _anything(value: Any) -> Any:
    return value


def _nothing(value: Any) -> Any:
    if value is None:
        return None
    raise Unfit("None")


def _flag(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Unfit("True or False")


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if isinstance(value, enum.IntEnum):
            return value
        number = int.__index__(value)
        if abs(number) <= INT_MAX:
            return number
    raise Unfit("a whole number")


def _number(value: Any) -> float:
    if isinstance(value, float):
        return float.__float__(value)
    try:
        return _whole(value)
    except Unfit:
        raise Unfit("a number") from None


def _plain_text(value: Any) -> str:
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    raise Unfit("text")


def _octets(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    raise Unfit("bytes")


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    raise Unfit("a time")


def _span(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    raise Unfit("a duration")


def _callable(value: Any) -> Any:
    if callable(value):
        return value
    raise Unfit("a function")


def _word(kind: type[enum.Enum], value: Any) -> Any:
    """A member, or a text or number that may name one: which it is, is not compared here."""
    if isinstance(value, kind):
        return value
    if type(value) in (str, int):
        return value
    raise Unfit(_a(kind))


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _instance(kind: type, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    raise Unfit(_a(kind))


def _able(kind: type, names: tuple[str, ...], value: Any) -> Any:
    """Something of a protocol: which of its methods it must have is for whoever calls them."""
    if not names or any(hasattr(value, name) for name in names):
        return value
    raise Unfit(_a(kind))


def _struct(kind: type[msgspec.Struct], value: Any) -> Any:
    if not isinstance(value, kind):
        raise Unfit(_a(kind))
    changed = {}
    for name, one in _fields(type(value)).items():
        field = getattr(value, name)
        try:
            plain = one(field)
        except Unfit as unfit:
            raise Unfit(f"{_a(kind)} whose {name} is {unfit}") from None
        if plain is not field:
            changed[name] = plain
    return msgspec.structs.replace(value, **changed) if changed else value


def _several(item: Check, as_tuple: bool, value: Any) -> Any:  # noqa: FBT001 - bound by `partial`
    if item is _anything and type(value) in _PLAIN:
        return value
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping):
        raise Unfit("a list")
    if not isinstance(value, Iterable):
        raise Unfit("a list")
    try:
        values = list(value)
    except Exception:  # noqa: BLE001 - it is the caller's own code
        raise Unfit("a list that can be gone through") from None
    if item is not _anything:
        values = _each(item, values)
    if type(value) in _PLAIN and all(map(operator.is_, values, value)):
        return value
    return tuple(values) if as_tuple else values


def _each_of_tuple(item: Check, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_each(item, values))


def _each(item: Check, values: Iterable[Any]) -> list[Any]:
    try:
        return [item(one) for one in values]
    except Unfit as unfit:
        raise Unfit(f"a list of {str(unfit).removeprefix('a ')}") from None


def _mapping(key: Check, value: Check, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise Unfit("a mapping")
    try:
        items = list(given.items())
    except Exception:  # noqa: BLE001 - it is the caller's own code
        raise Unfit("a mapping that can be gone through") from None
    try:
        plain = [(key(name), value(one)) for name, one in items]
    except Unfit as unfit:
        raise Unfit(f"a mapping of {unfit}") from None
    if type(given) is dict and all(
        name is items[index][0] and one is items[index][1]
        for index, (name, one) in enumerate(plain)
    ):
        return given
    try:
        return dict(plain)
    except Exception:  # noqa: BLE001 - a key that cannot be one
        raise Unfit("a mapping") from None


_PLAIN = (list, tuple, set, frozenset)
_SIMPLE: Mapping[Any, Check] = {
    Any: _anything,
    object: _anything,
    None: _nothing,
    type(None): _nothing,
    bool: _flag,
    int: _whole,
    float: _number,
    str: _plain_text,
    bytes: _octets,
    datetime: _moment,
    timedelta: _span,
    Callable: _callable,
}
