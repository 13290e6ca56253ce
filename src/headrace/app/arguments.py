"""The arguments of a handler as a type: checked when a job is submitted, and again before it runs."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.app.context import Context, SyncContext
from headrace.errors import InvalidInput, InvalidPayload

_REFUSED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


class Arguments:
    """What a handler takes and gives, read from its annotations. No annotation: any JSON value."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        signature = inspect.signature(function)
        hints = _hints(function, name)
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
        self._type = msgspec.defstruct(
            f"{name} arguments",
            [_field(parameter, hints.get(parameter.name, Any)) for parameter in own],
            kw_only=True,
            frozen=True,
            forbid_unknown_fields=True,
        )
        self._decoder = msgspec.json.Decoder(self._type)
        self._names = tuple(parameter.name for parameter in own)
        self._returns = hints.get("return", Any)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The payload for a call with these arguments, defaults left to the run. Raises InvalidPayload."""
        try:
            bound = self._signature.bind(*args, **kwargs)
            payload: dict[str, Any] = msgspec.to_builtins(bound.arguments)
            msgspec.convert(payload, self._type)
        except (TypeError, ValueError) as error:
            raise InvalidPayload(
                f"task {self._name!r} cannot be called like that: {error}; nothing was stored"
            ) from error
        return payload

    def partial(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Some arguments as they would stand in a payload."""
        bound = self._signature.bind_partial(**kwargs)
        payload: dict[str, Any] = msgspec.to_builtins(bound.arguments)
        return payload

    def with_defaults(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The payload with what a run would fill in: a call is the same with its defaults spelled out."""
        defaults = {
            parameter.name: parameter.default
            for parameter in self._signature.parameters.values()
            if parameter.default is not inspect.Parameter.empty
        }
        return {**msgspec.to_builtins(defaults), **payload}

    def load(self, payload_json: bytes) -> dict[str, Any]:
        """The keyword arguments for a run. Raises InvalidPayload where they do not fit."""
        try:
            loaded = self._decoder.decode(payload_json)
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
            return msgspec.convert(value, self._returns)
        except (TypeError, msgspec.ValidationError) as error:
            raise InvalidPayload(
                f"the result does not fit what task {self._name!r} says it returns: {error}"
            ) from error


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidInput(
            f"task {name!r} has an annotation that cannot be looked up ({error}): "
            "its types must exist when the module is loaded"
        ) from error


def _field(parameter: inspect.Parameter, type_: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is inspect.Parameter.empty:
        return (parameter.name, type_)
    default = parameter.default
    return (
        parameter.name,
        type_,
        msgspec.field(default_factory=lambda: copy.deepcopy(default)),
    )
