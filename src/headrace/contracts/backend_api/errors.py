"""What this contract raises: one family, so that an error can be caught by kind or all at once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ParamSpec, TypeVar

from headrace.errors import (
    DuplicateJob,
    HeadraceError,
    InvalidBatch,
    InvalidInput,
    JobNotFound,
    Refusal,
)


class BackendError(HeadraceError):
    """The root of the family. A call that raises it has changed nothing.

    `job_id` names the job it is about; `index` is that job's place in a batch.
    """

    code = "BACKEND_ERROR"

    def __init__(
        self, message: str, *, job_id: str | None = None, index: int | None = None
    ) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.index = index


class JobNotFoundError(BackendError):
    """No job has this id."""

    code = "JOB_NOT_FOUND"


class InvalidStateError(BackendError):
    """The job's status does not allow the call."""

    code = "INVALID_STATE"


class DuplicateJobError(BackendError):
    """A job with this id is stored already, or stands twice in the batch."""

    code = "DUPLICATE_JOB"


class InvalidArgumentError(BackendError):
    """An argument can never work: an empty id, a limit below 1, no job at all, no filter at all."""

    code = "INVALID_ARGUMENT"


class StorageError(BackendError):
    """The store could not do its work; the cause says why."""

    code = "STORAGE"


def translate(error: HeadraceError) -> BackendError:
    """The same in this contract's words."""
    if isinstance(error, BackendError):
        return error
    if isinstance(error, InvalidBatch):
        kind = type(translate(error.cause))
        return kind(error.message, index=error.index)
    job_id = getattr(error, "job_id", None)
    match error:
        case JobNotFound():
            return JobNotFoundError(error.message, job_id=job_id)
        case Refusal():
            return InvalidStateError(error.message, job_id=job_id)
        case DuplicateJob():
            return DuplicateJobError(error.message, job_id=job_id)
        case InvalidInput():
            return InvalidArgumentError(error.message, job_id=job_id)
        case _:
            return StorageError(error.message, job_id=job_id)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Whatever Headrace raises inside leaves as this contract's own error."""
    try:
        yield
    except BackendError:
        raise
    except HeadraceError as error:
        raise translate(error) from error


_P = ParamSpec("_P")
_R = TypeVar("_R")


def translating(
    method: Callable[_P, Coroutine[Any, Any, _R]],
) -> Callable[_P, Coroutine[Any, Any, _R]]:
    """`translated`, for a whole method."""

    @functools.wraps(method)
    async def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with translated():
            return await method(*args, **kwargs)

    return call
