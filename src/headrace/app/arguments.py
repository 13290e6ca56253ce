"""The arguments of a handler as a type: checked when a job is submitted, and again before it runs."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import msgspec.inspect

from headrace import custom_types
from headrace.app.annotations import check_annotation
from headrace.app.context import Context, SyncContext
from headrace.app.inputs import RESULTS, ResultOf
from headrace.errors import InvalidInput, InvalidPayload

_REFUSED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)

_OBJECTS = (
    msgspec.inspect.AnyType,
    msgspec.inspect.CustomType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.DictType,
    msgspec.inspect.StructType,
    msgspec.inspect.TypedDictType,
)


class Arguments:
    """What a handler takes and gives, read from its annotations. No annotation: any JSON value."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        signature = inspect.signature(function)
        hints = self._hints = _hints(function, name)
        context = [one for one in signature.parameters if hints.get(one) in (Context, SyncContext)]
        self.context_name = context[0] if context else None
        """The parameter that takes the handler's context; it is no argument of the job."""
        own = [one for one in signature.parameters.values() if one.name not in context]
        for parameter in own:
            if parameter.kind in _REFUSED:
                raise InvalidInput(
                    f"task {name!r} takes {str(parameter)!r}: a job's arguments are stored by name, "
                    "so each must be named"
                )
        self._signature = signature.replace(parameters=own)
        self._fields = [_field(parameter, hints.get(parameter.name, Any)) for parameter in own]
        for parameter in own:
            check_annotation(hints.get(parameter.name, Any), name, parameter.name)
        check_annotation(hints.get("return", Any), name, None)
        self._type = msgspec.defstruct(
            f"{name} arguments",
            self._fields,
            kw_only=True,
            frozen=True,
            forbid_unknown_fields=True,
        )
        self._decoder = msgspec.json.Decoder(self._type, dec_hook=custom_types.decode)
        self._names = tuple(parameter.name for parameter in own)
        self._positional = tuple(
            parameter.name
            for parameter in own
            if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        self._required = frozenset(
            parameter.name for parameter in own if parameter.default is inspect.Parameter.empty
        )
        self._returns = hints.get("return", Any)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The payload for a call with these arguments, defaults left to the run. Raises InvalidPayload."""
        try:
            bound = self._bound(args, kwargs)
            awaited = {name: value for name, value in bound.items() if type(value) is ResultOf}
            for name in awaited:
                del bound[name]
            payload: dict[str, Any] = _to_builtins(bound)
            _convert(payload, self._type_without(awaited))
        except (TypeError, ValueError, NotImplementedError) as error:
            raise InvalidPayload(
                f"task {self._name!r} cannot be called like that: {error}{_advice(error)}; nothing was stored"
            ) from error
        if awaited:
            payload[RESULTS] = {name: value.stored for name, value in awaited.items()}
        return payload

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, in the handler's order. Raises TypeError, as calling it would."""
        if not kwargs:
            bound = dict(zip(self._positional, args, strict=False))
        elif not args:
            bound = {name: kwargs[name] for name in self._names if name in kwargs}
        else:
            return self._signature.bind(*args, **kwargs).arguments
        if len(bound) != len(args) + len(kwargs) or not self._required <= bound.keys():
            return self._signature.bind(*args, **kwargs).arguments  # it says what is wrong
        return bound

    def _type_without(self, names: Collection[str]) -> Any:
        """The type of the arguments but for these, which are not known yet."""
        if not names:
            return self._type
        return msgspec.defstruct(
            self._type.__name__,
            [field for field in self._fields if field[0] not in names],
            kw_only=True,
            forbid_unknown_fields=True,
        )

    def partial(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Some arguments as they would stand in a payload."""
        bound = self._signature.bind_partial(**kwargs)
        payload: dict[str, Any] = _to_builtins(bound.arguments)
        return payload

    def with_defaults(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The payload as a run would see it: a call is the same with its defaults spelled out.

        In the types of the handler, so that 1 and 1.0 are the same where it takes a float.
        """
        defaults = {
            parameter.name: parameter.default
            for parameter in self._signature.parameters.values()
            if parameter.default is not inspect.Parameter.empty
        }
        awaited = payload.get(RESULTS, {})
        type_ = self._type_without(awaited)
        given = {name: value for name, value in payload.items() if name != RESULTS}
        rest = {name: value for name, value in defaults.items() if name not in awaited}
        try:
            seen = _convert({**_to_builtins(rest), **given}, type_)
        except msgspec.ValidationError:  # a default need not be of the type that callers must give
            seen = _convert(given, type_)
        whole: dict[str, Any] = _to_builtins(seen)
        return {**whole, RESULTS: awaited} if awaited else whole

    def check_told(self, told: str) -> None:
        """Raise unless the handler can be called with the argument `told`, an object, and nothing else."""
        write = f"write def {self._name}({told}: dict[str, Any])"
        parameters = self._signature.parameters
        if told not in parameters:
            raise InvalidInput(
                f"task {self._name!r} cannot be told of what has ended: it takes no argument {told!r}; "
                f"{write}"
            )
        for name, parameter in parameters.items():
            if name != told and parameter.default is inspect.Parameter.empty:
                raise InvalidInput(
                    f"task {self._name!r} cannot be told of what has ended: its argument {name!r} has no "
                    f"default, and it is called with {told!r} alone; {write}, or give {name!r} a default"
                )
        if not _takes_object(self._hints.get(told, Any)):
            raise InvalidInput(
                f"task {self._name!r} cannot be told of what has ended: its argument {told!r} is given an "
                f"object; {write}"
            )

    def load(self, payload_json: bytes) -> dict[str, Any]:
        """The keyword arguments for a run. Raises InvalidPayload where they do not fit."""
        try:
            # A job that was submitted without a payload (a schedule, a command line) has no arguments.
            loaded = self._decoder.decode(b"{}" if payload_json == b"null" else payload_json)
        except msgspec.DecodeError as error:
            raise InvalidPayload(
                f"the payload does not fit task {self._name!r}: {error}"
            ) from error
        return {name: getattr(loaded, name) for name in self._names}

    def result(self, value: Any) -> Any:
        """A stored result as the type that the handler says it returns."""
        if self._returns in (Any, None, type(None)):
            return value
        try:
            return _convert(value, self._returns)
        except (TypeError, NotImplementedError, msgspec.ValidationError) as error:
            raise InvalidPayload(
                f"the result does not fit what task {self._name!r} says it returns: {error}"
            ) from error


def _to_builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=custom_types.encode)


def _convert(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, dec_hook=custom_types.decode)


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidInput(
            f"task {name!r} has an annotation that cannot be looked up ({error}): "
            "its types must exist when the module is loaded"
        ) from error


def _takes_object(hint: Any) -> bool:
    """Whether a JSON object can be of the type, whatever its fields."""
    described = msgspec.inspect.type_info(hint)
    several = described.types if isinstance(described, msgspec.inspect.UnionType) else (described,)
    return any(isinstance(one, _OBJECTS) for one in several)


def _field(parameter: inspect.Parameter, type_: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is inspect.Parameter.empty:
        return (parameter.name, type_)
    default = parameter.default
    return (
        parameter.name,
        type_,
        msgspec.field(default_factory=lambda: copy.deepcopy(default)),
    )


def _advice(error: Exception) -> str:
    if "ResultOf" in str(error):
        return " (only a whole argument can be a result)"
    return f" ({custom_types.ADVICE})" if str(error).endswith("unsupported") else ""
