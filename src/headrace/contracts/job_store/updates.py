"""UpdateJob and UpdateJobStatus as projections of lifecycle commands.

The caller hands in the job as it should be. What differs from the stored job names one command, and the
lifecycle says whether it is possible; nothing is ever written that no command would write. Which fields
may differ at all is said in `fields`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple, assert_never

from headrace import lifecycle, model, validation
from headrace.contracts.job_store import fields
from headrace.contracts.job_store.entity import Job, JobStatus
from headrace.contracts.job_store.projection import draft_of
from headrace.contracts.job_store.records import Records, check_exception, check_worker
from headrace.contracts.job_store.result import ErrorCode, Refused
from headrace.errors import InvalidTransition, StaleToken
from headrace.model import Category, Failure


class Updated(NamedTuple):
    job: model.Job
    not_updated: Mapping[str, str]
    """Fields of the given job that are the store's own to write."""


async def update(records: Records, given: Job) -> Updated:
    """Make the stored job what the given one says, or raise and leave it as it was."""
    stored = await records.read(given.id)
    shown = records.show(stored)
    if not stored.is_terminal:
        _check_claim(stored, given.claim_token)
    fields.check(given, shown)
    if given.status is not shown.status:
        after = await transition(records, stored, given)
    elif _put_off(given, shown):
        after = await _reschedule(records, stored, given)
    else:
        after = await _write_down(records, stored, shown, given)
    return Updated(after, fields.own(given, shown))


async def transition(records: Records, stored: model.Job, given: Job) -> model.Job:
    """Take the job to the given status by the one command that leads there."""
    if stored.is_terminal:
        records.claims.fence(stored, records.now())  # raises how it ended
    match given.status:
        case JobStatus.IN_PROGRESS:
            return await _start(records, stored, given)
        case JobStatus.COMPLETED:
            return await complete(records, stored, given)
        case JobStatus.FAILED:
            return await _fail(records, stored, given)
        case JobStatus.SCHEDULED if stored.is_leased:
            return await _schedule(records, stored, given)
        case JobStatus.SCHEDULED:
            return await _reschedule(records, stored, given)
        case JobStatus.QUEUED if stored.is_leased:
            return await release(records, stored, given.claim_token)
        case JobStatus.QUEUED:
            return await _bring_forward(records, stored)
        case JobStatus.CANCELED:
            return await cancel(records, stored, given.claim_token)
        case _:
            assert_never(given.status)


async def complete(records: Records, stored: model.Job, given: Job) -> model.Job:
    token = records.claims.fence(stored, records.now(), shown=given.claim_token)
    result = draft_of(stored).result if given.result is None else given.result
    return records.settled((await records.manager.complete(stored.id, token, result)).job)


async def release(records: Records, stored: model.Job, shown: str | None = None) -> model.Job:
    """Take the job from its worker; it is lost to it, and available to all, at no cost to its retries.

    With a token shown, only from the worker whose claim that is.
    """
    failure = Failure("released to the pool", Category.SYSTEM, "released")

    def decide(job: model.Job) -> lifecycle.Expire:
        if not job.is_terminal:
            _check_claim(job, shown)  # here, as the job may have changed hands since it was read
        if not job.is_leased and not job.is_terminal:
            raise Refused(
                ErrorCode.JOB_NOT_IN_PROGRESS,
                f"job {job.id} is not in progress; nothing was changed",
            )
        return lifecycle.Expire(failure=failure, counted=False)

    return await records.change(stored.id, decide)


async def cancel(records: Records, stored: model.Job, shown: str | None = None) -> model.Job:
    """End a job that waits; or, by its worker's word, one that is in progress."""
    if not stored.is_leased:
        return await records.cancel(stored.id)
    token = records.claims.fence(stored, records.now(), shown=shown)
    changed = await records.manager.stop(stored.id, token, "canceled")
    return records.settled(changed.job)


async def _start(records: Records, stored: model.Job, given: Job) -> model.Job:
    worker = records.own_worker if given.worker_id is None else check_worker(given.worker_id)
    command = lifecycle.Claim(worker=worker, nonce=secrets.token_hex(8))
    return await records.change(stored.id, lambda _: command)  # refused unless nobody has it


async def _fail(records: Records, stored: model.Job, given: Job) -> model.Job:
    token = records.claims.fence(stored, records.now(), shown=given.claim_token)
    message = given.exception or draft_of(stored).exception or "failed"
    changed = await records.manager.fail(
        stored.id, token, check_exception(message), category=Category.PERMANENT
    )
    return records.settled(changed.job)


async def _bring_forward(records: Records, stored: model.Job) -> model.Job:
    """Scheduled to Queued. A job whose time has come keeps the place in line that it has by that."""
    now = records.now()
    return await records.change(
        stored.id, lambda job: lifecycle.Reschedule(run_at=min(job.run_at, now))
    )


async def _reschedule(records: Records, stored: model.Job, given: Job) -> model.Job:
    """A job that waits is Scheduled for the given time."""
    if given.retry_delay_until is None:
        raise _no_time(stored)
    when = validation.check_time(given.retry_delay_until, "retry_delay_until")
    return await records.change(stored.id, lambda _: lifecycle.Reschedule(run_at=when))


async def _schedule(records: Records, stored: model.Job, given: Job) -> model.Job:
    """In progress to Scheduled: a failure if the copy counts one more retry, else a plain delay."""
    token = records.claims.fence(stored, records.now(), shown=given.claim_token)
    if given.retry_delay_until is None:
        raise _no_time(stored)
    when = validation.check_time(given.retry_delay_until, "retry_delay_until")
    if given.retry_count == records.show(stored).retry_count:
        return records.settled((await records.manager.snooze(stored.id, token, until=when)).job)
    message = check_exception(given.exception or "failed")
    _check_retry_left(records, stored, token)
    changed = await records.manager.fail(
        stored.id, token, message, category=Category.TEMPORARY, retry_at=when
    )
    return records.settled(changed.job)


def _no_time(stored: model.Job) -> Refused:
    reason = "a Scheduled job needs the time it is scheduled for"
    return Refused(
        ErrorCode.INVALID_UPDATE,
        f"job {stored.id} cannot be Scheduled without retry_delay_until; nothing was changed",
        {"retry_delay_until": reason},
    )


def _check_retry_left(records: Records, stored: model.Job, token: str) -> None:
    """Ask the lifecycle where a failure would lead: what was asked for is a retry, or nothing."""
    outcome = lifecycle.apply(stored, lifecycle.Fail(token=token), records.now()).after
    if outcome.is_terminal:
        raise InvalidTransition(
            f"job {stored.id} has no retry left; nothing was changed", job_id=stored.id
        )


def _check_claim(job: model.Job, shown: str | None) -> None:
    """A copy that was read under a claim speaks for that claim only."""
    if shown not in (None, job.token):
        raise StaleToken(
            f"the claim of job {job.id} that the copy was read under is over; nothing was changed",
            job_id=job.id,
        )


def _put_off(given: Job, shown: Job) -> bool:
    return (
        shown.status is JobStatus.SCHEDULED
        and given.retry_delay_until is not None
        and given.retry_delay_until != shown.retry_delay_until
    )


async def _write_down(records: Records, stored: model.Job, shown: Job, given: Job) -> model.Job:
    """The status stays: a result or an exception can be noted while the job is in progress."""
    if (given.result, given.exception) == (shown.result, shown.exception):
        return stored
    token = records.claims.fence(stored, records.now(), shown=given.claim_token)
    if given.result != shown.result:
        stored = await records.note_result(stored, token, given.result)
    if given.exception != shown.exception:
        text = None if given.exception is None else check_exception(given.exception)
        stored = await records.note_exception(stored, token, text)
    return stored
