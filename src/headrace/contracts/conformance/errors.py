"""The contract's errors, and the one translation into them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from headrace import errors


class QueueError(errors.HeadraceError):
    """The root of this contract's errors. Whatever raised it has changed nothing."""

    code = "QUEUE_ERROR"


class InvalidLeaseToken(QueueError):
    """The token is not the job's present one."""

    code = "INVALID_LEASE_TOKEN"


class LeaseExpired(QueueError):
    """The token is right, but its lease has lapsed."""

    code = "LEASE_EXPIRED"


class JobAlreadyTerminal(QueueError):
    """The job has completed or failed; that stands."""

    code = "JOB_ALREADY_TERMINAL"


class JobCanceled(QueueError):
    """The job is canceled; cancel wins."""

    code = "JOB_CANCELED"


class JobNotFound(QueueError):
    """No job of this tenant has the id. Another tenant's job is answered the same."""

    code = "JOB_NOT_FOUND"


class InvalidRequest(QueueError):
    """An argument can never work: an empty id, a negative number, a time without a zone."""

    code = "INVALID_REQUEST"


class BackendFailure(QueueError):
    """The store could not do its work: closed, unreachable, or too contended."""

    code = "BACKEND_FAILURE"


_NAMES: dict[type[errors.HeadraceError], type[QueueError]] = {
    errors.JobNotFound: JobNotFound,
    errors.JobCancelled: JobCanceled,
    errors.JobTerminal: JobAlreadyTerminal,
    errors.StaleToken: InvalidLeaseToken,
    errors.LeaseExpired: LeaseExpired,
}


def translate(error: errors.HeadraceError) -> QueueError:
    """The same error by this contract's name, with the same message."""
    if isinstance(error, QueueError):
        return error
    if isinstance(error, errors.InvalidInput):
        return InvalidRequest(error.message)
    return _NAMES.get(type(error), BackendFailure)(error.message)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """What Headrace raises inside leaves under this contract's names."""
    try:
        yield
    except QueueError:
        raise
    except errors.HeadraceError as error:
        raise translate(error) from error
