"""Results as values: what every method of this contract returns instead of raising."""

from __future__ import annotations

import asyncio
import enum
import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

import msgspec

from headrace import errors
from headrace.redaction import Redacted

T = TypeVar("T")
P = ParamSpec("P")


class ErrorCode(enum.StrEnum):
    """The codes of this contract. Bad arguments and store failures bring Headrace's own codes."""

    JOB_NOT_FOUND = "JOB_NOT_FOUND"
    JOB_NOT_IN_PROGRESS = "JOB_NOT_IN_PROGRESS"
    """Only a job that a worker has can be finished, released or written to."""
    JOB_ALREADY_STARTED = "JOB_ALREADY_STARTED"
    """Only a job that no worker has can be cancelled by CancelJob, or deleted."""
    JOB_TERMINAL = "JOB_TERMINAL"
    """The job is Completed or Failed; that stands."""
    JOB_CANCELED = "JOB_CANCELED"
    """The job is Canceled; that stands."""
    CLAIM_LOST = "CLAIM_LOST"
    """The job was claimed again since the caller claimed it."""
    CLAIM_EXPIRED = "CLAIM_EXPIRED"
    """The claim has timed out."""
    INVALID_TRANSITION = "INVALID_TRANSITION"
    INVALID_JOB = "INVALID_JOB"
    """A job that cannot be created as it is."""
    INVALID_UPDATE = "INVALID_UPDATE"
    """A change to a field that does not change, or a status without what goes with it."""
    INVALID_STATUS = "INVALID_STATUS"
    RETRY_STRATEGY_FAILED = "RETRY_STRATEGY_FAILED"
    """The RetryStrategy raised instead of deciding; the job is still in progress."""
    SCHEDULING_STRATEGY_FAILED = "SCHEDULING_STRATEGY_FAILED"
    """The SchedulingStrategy raised instead of answering."""
    STORE_FAILED = "STORE_FAILED"
    """A store of the user's own raised instead of answering."""


_CODES: dict[type[errors.HeadraceError], ErrorCode] = {
    errors.JobNotFound: ErrorCode.JOB_NOT_FOUND,
    errors.JobCancelled: ErrorCode.JOB_CANCELED,
    errors.JobTerminal: ErrorCode.JOB_TERMINAL,
    errors.StaleToken: ErrorCode.CLAIM_LOST,
    errors.LeaseExpired: ErrorCode.CLAIM_EXPIRED,
    errors.InvalidTransition: ErrorCode.INVALID_TRANSITION,
}


class Refused(errors.HeadraceError):
    """An error of this contract on its way to a result. Nothing was changed."""

    def __init__(
        self, reason: ErrorCode, message: str, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.fields = fields or {}


class Answered(errors.HeadraceError):
    """A store's own failure, to be passed on as it is."""

    def __init__(self, error: AsyncEndpointError) -> None:
        super().__init__(error.message)
        self.error = error


class AsyncEndpointError(msgspec.Struct, frozen=True):
    """What went wrong: a stable code for programs, a message for people."""

    code: str
    message: str
    fields: Mapping[str, str] = {}
    """Of an update: each field that could not be updated, and why."""

    @classmethod
    def of(cls, error: errors.HeadraceError) -> AsyncEndpointError:
        if isinstance(error, Answered):
            return error.error
        if isinstance(error, Refused):
            return cls(error.reason.value, error.message, error.fields)
        known = _CODES.get(type(error))
        return cls(error.code if known is None else known.value, error.message)


class MethodResult(Redacted, Generic[T], frozen=True):
    """Success, perhaps with data; or the error that left everything as it was."""

    is_success: bool
    data: T | None = None
    error: AsyncEndpointError | None = None
    not_updated: Mapping[str, str] = {}
    """Of an update that succeeded: the fields that were not taken from the given job, and why."""

    def unwrap(self) -> T | None:
        """The data of a success; the error of a failure is raised, for `answers` to pass on."""
        if not self.is_success:
            raise Answered(self.error or AsyncEndpointError("FAILED", "no reason was given"))
        return self.data

    @classmethod
    def success(cls, data: T | None = None) -> MethodResult[T]:
        return cls(is_success=True, data=data)

    @classmethod
    def failure(cls, error: AsyncEndpointError) -> MethodResult[T]:
        return cls(is_success=False, error=error)


class Noted(NamedTuple, Generic[T]):
    """The data of a success with the fields that were not updated."""

    data: T
    not_updated: Mapping[str, str]


RETRY_SECONDS = 0.05
"""Before the first repetition; each later one waits twice as long."""


async def again(ask: Callable[[], Awaitable[T]], *, times: int) -> T:
    """Ask, and ask again up to so many times while the store cannot be reached: it wrote nothing then."""
    for repetition in range(times):
        try:
            return await ask()
        except errors.AnswerLost:
            raise
        except errors.StoreUnavailable:
            await asyncio.sleep(RETRY_SECONDS * 2**repetition)
    return await ask()


def answers(
    method: Callable[P, Awaitable[T | Noted[T]]],
) -> Callable[P, Coroutine[Any, Any, MethodResult[T]]]:
    """Turn what a method returns, or the Headrace error it raises, into a MethodResult.

    An object with a `retry_count` is asked again so often while its store cannot be reached.
    """

    @functools.wraps(method)
    async def answer(*args: P.args, **kwargs: P.kwargs) -> MethodResult[T]:
        times: int = getattr(args[0], "retry_count", 0)
        try:
            data = await again(lambda: method(*args, **kwargs), times=times)
        except errors.HeadraceError as error:
            return MethodResult.failure(AsyncEndpointError.of(error))
        if isinstance(data, Noted):
            return MethodResult(is_success=True, data=data.data, not_updated=data.not_updated)
        return MethodResult.success(data)

    return answer
