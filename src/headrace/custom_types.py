"""Classes that msgspec does not know, as JSON: models that can dump and validate themselves (Pydantic's).

Known by what they can do, not by where they come from: nothing is imported for them. Pure.
"""

from __future__ import annotations

from typing import Any

_LINES_MAX = 3
"""Of what a model says is wrong with a value, so many lines are passed on."""

ADVICE = (
    "arguments and results are JSON values, dataclasses, attrs classes, TypedDicts, msgspec.Structs and "
    "Pydantic models"
)


def is_model(kind: object) -> bool:
    """Whether the class dumps and validates its own instances, as Pydantic's models do."""
    return (
        isinstance(kind, type)
        and callable(getattr(kind, "model_dump", None))
        and callable(getattr(kind, "model_validate", None))
    )


def encode(value: Any) -> Any:
    """The value of a model as JSON values. Raises NotImplementedError for any other class."""
    if is_model(type(value)):
        return type(value).model_dump(value, mode="json")
    raise NotImplementedError(f"Encoding objects of type {type(value).__name__} is unsupported")


def decode(kind: type, value: Any) -> Any:
    """The model of JSON values. Raises ValueError saying what does not fit."""
    if isinstance(value, kind):
        return value
    if not is_model(kind):
        raise NotImplementedError(f"objects of type {kind.__name__} are unsupported")
    try:
        return kind.model_validate(value)  # type: ignore[attr-defined]
    except ValueError as error:
        raise ValueError(_told(kind, error)) from error


def _told(kind: type, error: Any) -> str:
    """What is wrong, in one line: `Order.items.0.count: Input should be greater than 0`."""
    try:
        found = error.errors()
        lines = [
            ".".join([kind.__name__, *map(str, one["loc"])]) + f": {one['msg']}" for one in found
        ]
    except (AttributeError, KeyError, TypeError):
        return str(error)
    more = len(lines) - _LINES_MAX
    return "; ".join(lines[:_LINES_MAX]) + (f"; and {more} more" if more > 0 else "")
