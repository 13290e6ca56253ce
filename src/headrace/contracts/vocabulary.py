"""The words of the five specifications for our eleven states. Pure.

Some words depend on more than the state: whether a waiting job is due, and whether it was ever claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.model import State

Word = Callable[[State, bool, int], str]
"""(state, is it due, attempt) → the specification's word."""

_S = State

_BACKEND_API: Mapping[State, str] = {
    _S.BLOCKED: "INITIAL_PENDING",
    _S.PENDING: "INITIAL_PENDING",
    _S.RUNNING: "RUNNING",
    _S.CANCELLING: "CANCELLING",
    _S.RETRYING: "FAILED_RETRY",
    _S.LOST: "UNKNOWN_RETRY",
    _S.COMPLETED: "COMPLETED",
    _S.FAILED: "STOPPED",
    _S.DEAD: "STOPPED",
    _S.ABANDONED: "UNKNOWN_STOPPED",
}

_QUEUE_SEMANTICS: Mapping[State, str] = {
    _S.BLOCKED: "Ready",
    _S.PENDING: "Ready",
    _S.RUNNING: "InFlight",
    _S.CANCELLING: "InFlight",
    _S.RETRYING: "Ready",
    _S.LOST: "Ready",
    _S.COMPLETED: "Succeeded",
    _S.FAILED: "Failed",
    _S.DEAD: "Failed",
    _S.CANCELLED: "Failed",
    _S.ABANDONED: "Failed",
}

_JOB_MODEL: Mapping[State, str] = {
    _S.BLOCKED: "PENDING",
    _S.RUNNING: "RUNNING",
    _S.CANCELLING: "RUNNING",
    _S.LOST: "SCHEDULED",
    _S.COMPLETED: "COMPLETED",
    _S.FAILED: "FAILED",
    _S.DEAD: "DEAD_LETTER",
    _S.CANCELLED: "CANCELLED",
    _S.ABANDONED: "CANCELLED",
}

_JOB_STORE: Mapping[State, str] = {
    _S.BLOCKED: "Queued",
    _S.RUNNING: "InProgress",
    _S.CANCELLING: "InProgress",
    _S.RETRYING: "Scheduled",
    _S.LOST: "Queued",
    _S.COMPLETED: "Completed",
    _S.FAILED: "Failed",
    _S.DEAD: "Failed",
    _S.CANCELLED: "Canceled",
    _S.ABANDONED: "Canceled",
}

_CONFORMANCE: Mapping[State, str] = {
    _S.BLOCKED: "Enqueued",
    _S.PENDING: "Enqueued",
    _S.RUNNING: "Processing",
    _S.CANCELLING: "Processing",
    _S.RETRYING: "Retrying",
    _S.LOST: "Enqueued",
    _S.COMPLETED: "Completed",
    _S.FAILED: "Failed",
    _S.DEAD: "Failed",
    _S.CANCELLED: "Canceled",
    _S.ABANDONED: "Canceled",
}


def backend_api(state: State, due: bool, attempt: int) -> str:  # noqa: ARG001 - one signature for all
    if state is State.CANCELLED:
        return "STOPPED" if attempt else "UNSCHEDULED"
    return _BACKEND_API[state]


def queue_semantics(state: State, due: bool, attempt: int) -> str:  # noqa: ARG001 - as above
    return _QUEUE_SEMANTICS[state]


def job_model(state: State, due: bool, attempt: int) -> str:  # noqa: ARG001 - as above
    if state is State.PENDING:
        return "SCHEDULED" if due else "DELAYED"
    if state is State.RETRYING:
        return "SCHEDULED" if due else "RETRYING"
    return _JOB_MODEL[state]


def job_store(state: State, due: bool, attempt: int) -> str:  # noqa: ARG001 - as above
    if state is State.PENDING:
        return "Queued" if due else "Scheduled"
    return _JOB_STORE[state]


def conformance(state: State, due: bool, attempt: int) -> str:  # noqa: ARG001 - as above
    return _CONFORMANCE[state]


VOCABULARIES: Mapping[str, Word] = {
    "backend_api": backend_api,
    "queue_semantics": queue_semantics,
    "job_model": job_model,
    "job_store": job_store,
    "conformance": conformance,
}
