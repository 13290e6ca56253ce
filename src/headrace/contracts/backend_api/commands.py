"""The contract's lifecycle calls as commands of the one lifecycle.

Which state leads to which is the lifecycle's business. What stands here is where the text is narrower
than it: calls that share a command but take jobs from fewer states, and UpdateJobStatus, which allows
some of the transitions that the single calls make. No call has a token: this contract is not fenced.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, assert_never

from headrace import codec, lifecycle, validation
from headrace.contracts.backend_api.errors import InvalidArgumentError
from headrace.contracts.backend_api.values import FINAL, JobStatus, status_of
from headrace.contracts.presets import BACKEND_API
from headrace.errors import HeadraceError, InvalidTransition
from headrace.lifecycle import Command
from headrace.model import Category, Failure, Job
from headrace.validation import UNCHANGED

Decide = Callable[[Job], Command]

END_OF_TIME = datetime(validation.YEAR_MAX, 12, 31, tzinfo=UTC)
"""A job's time is its place in line, never a wait: each is claimed as due, however far ahead it stands."""

_S = JobStatus

UPDATES: Mapping[JobStatus, frozenset[JobStatus]] = {
    _S.INITIAL_PENDING: frozenset({_S.UNSCHEDULED}),
    _S.RUNNING: frozenset(
        {
            _S.CANCELLING,
            _S.COMPLETED,
            _S.FAILED_RETRY,
            _S.STOPPED,
            _S.UNKNOWN_RETRY,
            _S.UNKNOWN_STOPPED,
        }
    ),
    _S.CANCELLING: frozenset({_S.STOPPED, _S.UNKNOWN_STOPPED}),
    _S.FAILED_RETRY: frozenset({_S.STOPPED, _S.UNKNOWN_STOPPED}),
    _S.UNKNOWN_RETRY: frozenset(
        {_S.RUNNING, _S.FAILED_RETRY, _S.STOPPED, _S.UNKNOWN_STOPPED, _S.COMPLETED}
    ),
    _S.UNKNOWN_STOPPED: frozenset({_S.STOPPED}),
}
"""What UpdateJobStatus allows; besides, the same status again, which changes nothing."""


def complete(result: Any, result_bytes_max: int) -> Decide:
    command = lifecycle.Complete(token=None, result_json=_encode(result, result_bytes_max))
    return lambda _: command


def fail(error_msg: str) -> Decide:
    if not _text(error_msg):
        raise InvalidArgumentError(f"error_msg is empty: say what failed; {UNCHANGED}")
    command = lifecycle.Fail(token=None, failure=Failure(error_msg, Category.TEMPORARY))
    return _only(command, "fail_job", (_S.RUNNING, _S.UNKNOWN_RETRY))


def stop(error_msg: str | None) -> Decide:
    command = lifecycle.Stop(token=None, failure=Failure(_text(error_msg), Category.CANCELLED))
    return _only(command, "stop_job", (_S.RUNNING, _S.CANCELLING, _S.UNKNOWN_RETRY))


def stop_with_retry(error_msg: str | None) -> Decide:
    """It failed while it was being cancelled: a failure that counts, and no more retry."""
    command = lifecycle.Fail(token=None, failure=Failure(_text(error_msg), Category.TEMPORARY))
    return _only(command, "stop_job_with_retry", (_S.CANCELLING,))


def mark_unknown_stopped(error_msg: str | None) -> Decide:
    command = lifecycle.Abandon(failure=Failure(_text(error_msg), Category.CANCELLED))
    return _only(command, "mark_job_unknown_stopped", (_S.RUNNING, _S.CANCELLING, _S.UNKNOWN_RETRY))


def acknowledge_cancellation(was_executing: bool) -> Decide:
    if not isinstance(was_executing, bool):
        raise InvalidArgumentError(
            f"was_executing is {validation.told(was_executing)}, not a bool; {UNCHANGED}"
        )
    return lambda job: lifecycle.AcknowledgeCancel(
        token=None,
        was_executing=was_executing,
        failure=job.failure,  # the text has no message here: the one of the cancellation stays
    )


class SameStatus(HeadraceError):
    """UpdateJobStatus with the status that the job has: nothing to do."""


class Update:
    """UpdateJobStatus, decided when the job is at hand. What is not given stays as it is."""

    def __init__(
        self, status: object, result: Any, error_msg: str | None, result_bytes_max: int
    ) -> None:
        try:
            self._target = JobStatus(status)  # type: ignore[arg-type]  # this is the check
        except ValueError as error:
            raise InvalidArgumentError(
                f"{validation.told(status)} is no job status; {UNCHANGED}"
            ) from error
        self._result_json = None if result is None else _encode(result, result_bytes_max)
        self._error_msg = _text(error_msg)
        self._source: JobStatus | None = None

    @property
    def frees_capacity(self) -> bool:
        """By the text only a step from RUNNING to a final status does."""
        return self._source is _S.RUNNING and self._target in FINAL

    def __call__(self, job: Job) -> Command:
        self._source = status_of(job)
        if self._source is self._target:
            raise SameStatus(f"job {job.id} is {self._target} already")
        if self._target not in UPDATES.get(self._source, ()):
            raise _refusal(job, f"update_job_status to {self._target}")
        return self._command(job)

    def _command(self, job: Job) -> Command:
        said = Failure(self._error_msg, Category.TEMPORARY) if self._error_msg else None
        ended = Failure(self._error_msg or _message(job), Category.CANCELLED)
        result = self._result_json
        match self._target:
            case _S.RUNNING:
                # Back to the worker that was taken for gone: it holds the job again.
                assert job.assignee is not None
                return lifecycle.Claim(
                    worker=job.assignee,
                    nonce=secrets.token_hex(8),
                    due_by=END_OF_TIME,
                    failure=said,
                    result_json=result,
                )
            case _S.COMPLETED:
                return lifecycle.Complete(token=None, failure=said, result_json=result)
            case _S.FAILED_RETRY:
                # "Retry increment … handled separately": given back, at no cost.
                return lifecycle.Release(token=None, failure=said, result_json=result)
            case _S.UNKNOWN_RETRY:
                lost = Failure(ended.message, Category.SYSTEM)
                return lifecycle.Expire(failure=lost, result_json=result)
            case _S.UNKNOWN_STOPPED:
                return lifecycle.Abandon(failure=ended, result_json=result)
            case _S.STOPPED if self._source is not _S.FAILED_RETRY:
                return lifecycle.Stop(token=None, failure=ended, result_json=result)
            case _S.STOPPED | _S.UNSCHEDULED | _S.CANCELLING:
                return lifecycle.Cancel(mode=BACKEND_API.cancel, failure=ended, result_json=result)
            case _S.INITIAL_PENDING:
                raise _refusal(job, "a return to INITIAL_PENDING")
            case _:
                assert_never(self._target)


def _only(command: Command, call: str, sources: Collection[JobStatus]) -> Decide:
    """The command, for jobs in these statuses."""

    def decide(job: Job) -> Command:
        if status_of(job) not in sources:
            raise _refusal(job, call)
        return command

    return decide


def _refusal(job: Job, what: str) -> InvalidTransition:
    return InvalidTransition(
        f"job {job.id} is {status_of(job)}; {what} is not possible; {UNCHANGED}", job_id=job.id
    )


def _message(job: Job) -> str:
    return "" if job.failure is None else job.failure.message


def _encode(result: Any, limit: int) -> bytes:
    return codec.encode(result, what="result", limit=limit)


def _text(error_msg: str | None) -> str:
    if error_msg is None:
        return ""
    if not isinstance(error_msg, str):
        raise InvalidArgumentError(
            f"error_msg is {type(error_msg).__name__}, not text; {UNCHANGED}"
        )
    return error_msg
