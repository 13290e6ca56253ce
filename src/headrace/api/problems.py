"""Errors on their way over HTTP, as problem details (RFC 9457), and back again.

The code is that of `errors.py`; what an error says beyond its message travels in members of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from headrace import errors
from headrace.api.route import V1
from headrace.errors import HeadraceError

MEDIA_TYPE = "application/problem+json"
INTERNAL = "INTERNAL_ERROR"
RETRY_SECONDS = 1
"""When to try again what failed for the moment only."""

# The first that an error is an instance of counts: children stand before their parents.
_STATUS: tuple[tuple[type[HeadraceError], int], ...] = (
    (errors.InvalidRequest, 400),
    (errors.InvalidCursor, 400),
    (errors.PayloadTooLarge, 413),
    (errors.RequestTooLarge, 413),
    (errors.DependencyNotFound, 422),
    (errors.DuplicateJob, 409),
    (errors.DuplicateSchedule, 409),
    (errors.InvalidInput, 422),
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.RouteNotFound, 404),
    (errors.JobNotFound, 404),
    (errors.BatchNotFound, 404),
    (errors.BulkActNotFound, 404),
    (errors.ScheduleNotFound, 404),
    (errors.BulkActNotFound, 404),
    (errors.Refusal, 409),
    (errors.NoReaders, 409),
    (errors.JobFailed, 409),
    (errors.QueueFull, 429),
    (errors.TooManyRequests, 429),
    (errors.CannotDecrypt, 409),
    (errors.LogTrimmed, 410),
    (errors.SubmissionTimeout, 504),
    (errors.StoreClosed, 503),
    (errors.StoreUnavailable, 503),
    (errors.Contention, 503),
)
_TOLD = (
    "job_id",
    "batch_id",
    "act_id",
    "name",
    "index",
    "queue",
    "tenant",
    "cursor",
    "start",
    "retry_after",
)


def all_errors(root: type[HeadraceError] = HeadraceError) -> Iterator[type[HeadraceError]]:
    """Every class of error there is, the root first."""
    yield root
    for child in root.__subclasses__():
        yield from all_errors(child)


def status_of(error: HeadraceError | type[HeadraceError]) -> int:
    if isinstance(error, errors.InvalidBatch):
        return status_of(error.cause)
    kind = error if isinstance(error, type) else type(error)
    return next((status for known, status in _STATUS if issubclass(kind, known)), 500)


def slug(code: str) -> str:
    return code.lower().replace("_", "-")


def problem_of(error: HeadraceError, root_path: str = "") -> dict[str, Any]:
    """The problem document. `root_path`: where the server is mounted."""
    status = status_of(error)
    told: dict[str, Any] = {
        name: value
        for name in _TOLD
        if isinstance(value := getattr(error, name, None), str | int | float)
    }
    if isinstance(error, errors.InvalidBatch):
        told["cause"] = problem_of(error.cause, root_path)
    return {
        "type": f"{root_path}{V1}/problems/{slug(error.code)}",
        "title": title_of(type(error)),
        "status": status,
        "code": error.code,
        "detail": error.message,
        **told,
    }


def internal_problem(root_path: str = "") -> dict[str, Any]:
    """What is told of an error that nobody has foreseen: the server's log has the rest."""
    return {
        "type": f"{root_path}{V1}/problems/{slug(INTERNAL)}",
        "title": HTTPStatus.INTERNAL_SERVER_ERROR.phrase,
        "status": 500,
        "code": INTERNAL,
        "detail": "the server failed; whether anything was changed is not known",
    }


def title_of(kind: type[HeadraceError]) -> str:
    """`LeaseExpired` is `Lease expired`."""
    words = re.findall(r"[A-Z][a-z]*", kind.__name__)
    return " ".join(words).capitalize()


def retry_after(error: HeadraceError) -> int | None:
    """In so many seconds it may work; None: not by waiting."""
    if isinstance(error, errors.TooManyRequests):
        return max(1, round(error.retry_after + 0.5))
    return RETRY_SECONDS if status_of(error) in (429, 503) else None


def error_of(problem: Mapping[str, Any]) -> HeadraceError:
    """The error that a problem document was made of."""
    code, message = problem.get("code"), str(problem.get("detail", "the server gave no reason"))
    kind = next((one for one in all_errors() if one.__dict__.get("code") == code), None)
    if kind is None:
        status = problem.get("status")
        kind = errors.StoreError if not isinstance(status, int) or status >= 500 else HeadraceError
    error = kind.__new__(kind)
    HeadraceError.__init__(error, message)
    for name in _TOLD:
        if name in problem:
            setattr(error, name, problem[name])
    if isinstance(error, errors.QueueFull):
        error.tenant = problem.get("tenant")
    if isinstance(error, errors.InvalidBatch):
        error.index = int(problem.get("index", 0))
        error.cause = error_of(problem.get("cause", {}))
    return error
