"""Defects of outcomes, for the kit; and of worker and application, for their own tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from headrace import codec, error_text, lifecycle, retry
from headrace.app import connections, task
from headrace.app.arguments import Arguments
from headrace.manager import changes, settlement
from headrace.manager.changes import Order
from headrace.model import Change, Job
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.worker.keeper import Keeper
from headrace.worker.threads import Threads
from tests.planted.defect import Defect, patched


def backoff_must_be_known(job: Job, policy: Policy) -> retry.Backoff:
    return policy.backoff if job.backoff_json is None else retry.decode(job.backoff_json)


def change_unguarded(order: Order, job: Job | None, now: datetime) -> Change:
    assert job is not None
    return lifecycle.apply(job, order.decide(job), now)


WITHIN_A_PART: dict[str, tuple[str, str, Defect]] = {
    "a backoff that nobody knows is an error": (
        "manager",
        "settle",
        patched(settlement, "backoff_of", backoff_must_be_known),
    ),
    "an order that cannot be carried out ends the others": (
        "manager",
        "settle",
        patched(changes, "_change", change_unguarded),
    ),
    "what says that it is JSON is believed": (
        "manager",
        "complete",
        patched(codec, "_refuse_what_would_change", lambda value, what: None),
    ),
}


def text_unguarded(error: object) -> str:
    return str(error)


def asked_for_its_class(error: object, *kinds: type[BaseException]) -> bool:
    return isinstance(error, kinds)


def null_is_a_payload(self: Arguments, payload_json: bytes) -> dict[str, Any]:
    loaded = msgspec.json.decode(payload_json, type=self._type)
    return {name: getattr(loaded, name) for name in self._names}


def unchecked(spec: JobSpec) -> JobSpec:
    return spec


def never_starts(self: Keeper, *, lazily: bool = False) -> None:
    if not lazily:
        right_start(self)


right_start = Keeper.start


async def by_future(self: Threads, task: Any, context: Any) -> Any:
    """As if the thread's exceptions travelled in a future, which swallows one kind of them."""
    try:
        return await right_call(self, task, context)
    except RuntimeError as error:
        if isinstance(error.__cause__, StopIteration):
            return None
        raise


right_call = Threads.__call__


async def never_closed(self: connections.Connections, opened: Any) -> Any:
    yield


async def never_forgotten(self: connections.Connections) -> None:
    pass


@contextlib.contextmanager
def _together(*defects: Defect) -> Any:
    with contextlib.ExitStack() as stack:
        for one in defects:
            stack.enter_context(one())
        yield


OPTIONS, HOOKS, NULL, POISONS, DRAIN, LEAKS = (
    "options",
    "hooks",
    "null",
    "poisons",
    "drain",
    "leaks",
)

OF_THE_WORKER: dict[str, tuple[str, Callable[[], contextlib.AbstractContextManager[Any]]]] = {
    "what an exception says is believed to be said": (
        POISONS,
        patched(error_text, "text_of", text_unguarded),
    ),
    "an exception is asked for its class": (
        POISONS,
        patched(error_text, "is_a", asked_for_its_class),
    ),
    "a StopIteration out of a thread is a result": (
        POISONS,
        patched(Threads, "__call__", by_future),
    ),
    "no payload is no arguments, and fails": (NULL, patched(Arguments, "load", null_is_a_payload)),
    "options are believed until the first submission": (
        OPTIONS,
        lambda: _together(
            patched(task, "checked", unchecked), patched(retry, "check", lambda given, what: given)
        ),
    ),
    "a hook is named whatever it takes": (
        HOOKS,
        patched(Arguments, "check_told", lambda self, told: None),
    ),
    "a drain lets its leases lapse": (DRAIN, patched(Keeper, "start", never_starts)),
    "a loop keeps its store when it ends": (
        LEAKS,
        lambda: _together(
            patched(connections.Connections, "_until_the_end", never_closed),
            patched(connections.Connections, "_forget_ended", never_forgotten),
        ),
    ),
}
"""By the test that must object."""
