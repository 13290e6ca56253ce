"""What is fuzzed: found by looking at the classes, so that a new verb needs no entry in a list."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import msgspec

import headrace
from headrace import limits, policy, retry, schedules, webhooks
from headrace.app import Context, Headrace
from headrace.app.task import Task
from headrace.manager import JobManager

_NOT_VERBS = frozenset({"close", "on"})
"""Ends the store; needs a driver's own connection, which tests of its own give it."""
_OWN_ERRORS = {"Context.current": (LookupError,)}
"""Documented: outside of a handler there is none."""


@dataclass(frozen=True)
class Surface:
    """An object and one of its public methods, or a function."""

    name: str
    function: Callable[..., Any]
    own_errors: tuple[type[BaseException], ...] = ()


def methods_of(target: Any, name: str = "") -> Iterator[Surface]:
    """Every public method of an object, its class's own and inherited ones."""
    kind = target if isinstance(target, type) else type(target)
    for each, member in inspect.getmembers_static(kind):
        if each.startswith("_") or each in _NOT_VERBS or isinstance(member, property):
            continue
        if not inspect.isroutine(member) and not isinstance(member, staticmethod | classmethod):
            continue
        if isinstance(target, type) and not isinstance(member, staticmethod | classmethod):
            continue
        place = f"{name or kind.__name__}.{each}"
        yield Surface(place, getattr(target, each), _OWN_ERRORS.get(place, ()))


def functions_of(module: ModuleType) -> Iterator[Surface]:
    """The functions and the classes of values that a module makes public."""
    for each in getattr(module, "__all__", None) or vars(module):
        member = getattr(module, each)
        if each.startswith("_") or getattr(member, "__module__", "").split(".")[0] != "headrace":
            continue
        if inspect.isfunction(member):
            yield Surface(f"{module.__name__}.{each}", member)
        elif isinstance(member, type) and issubclass(member, msgspec.Struct):
            yield Surface(each, member)


def values_and_functions() -> Iterator[Surface]:
    """What is made before there is a store."""
    for module in (headrace, webhooks):
        yield from functions_of(module)
    for module in (schedules, limits, policy, retry):
        # Their functions are the rules inside; people write their values.
        yield from (one for one in functions_of(module) if isinstance(one.function, type))
    yield Surface("Headrace()", Headrace)
    yield Surface("KeyRing()", headrace.KeyRing)
    yield from methods_of(headrace.KeyRing)


def of_application(
    app: Headrace, tasks: list[Task[..., Any]], context: Context
) -> Iterator[Surface]:
    yield from methods_of(app)
    for task in tasks:
        yield from methods_of(task)
    yield from methods_of(context)


def of_manager(manager: JobManager, name: str) -> Iterator[Surface]:
    yield from methods_of(manager, name)
