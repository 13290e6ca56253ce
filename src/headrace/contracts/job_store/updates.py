"""UpdateJob and UpdateJobStatus as projections of lifecycle commands.

The caller hands in the job as it should be. What differs from the stored job names one command, and the
lifecycle says whether it is possible; nothing is ever written that no command would write.
"""

from __future__ import annotations

import secrets
from typing import assert_never

from headrace import lifecycle, model, validation
from headrace.contracts.job_store.entity import Job, JobStatus
from headrace.contracts.job_store.projection import draft_of, text_of
from headrace.contracts.job_store.records import Records, check_exception, check_worker
from headrace.contracts.job_store.result import ErrorCode, Refused
from headrace.errors import InvalidTransition, StaleToken
from headrace.model import Category, Failure


async def update(records: Records, given: Job) -> model.Job:
    """Make the stored job what the given one says, or raise and leave it as it was."""
    stored = await records.read(given.id)
    shown = records.show(stored)
    if not stored.is_terminal:
        _check_claim(stored, given.claim_token)
    _check_constants(given, shown)
    if given.status is not shown.status:
        _check_carried(given, shown)
        return await transition(records, stored, given)
    return await _write_down(records, stored, shown, given)


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
        case JobStatus.SCHEDULED:
            return await _schedule(records, stored, given)
        case JobStatus.QUEUED:
            return await release(records, stored, given.claim_token)
        case JobStatus.CANCELED:
            return await cancel(records, stored, given.claim_token)
        case _:
            assert_never(given.status)


async def complete(records: Records, stored: model.Job, given: Job) -> model.Job:
    token = records.claims.fence(stored, records.now(), shown=given.claim_token)
    result = draft_of(stored).result if given.result is None else given.result
    return records.settled((await records.manager.complete(stored.id, token, result)).job)


async def release(records: Records, stored: model.Job, shown: str | None = None) -> model.Job:
    """Take the job from its worker; it is lost to it, and available to all.

    With a token shown, only from the worker whose claim that is.

    A loss counts against the job's attempts, as a lease that lapses does: a job that takes down each
    of its workers ends Failed.
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
        return lifecycle.Expire(failure=failure)

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


async def _schedule(records: Records, stored: model.Job, given: Job) -> model.Job:
    """In progress to Scheduled: a failure if the copy counts one more retry, else a plain delay."""
    if not stored.is_leased:
        raise InvalidTransition(
            f"job {stored.id} is {records.status(stored)}; only a job in progress can be scheduled "
            "again; nothing was changed",
            job_id=stored.id,
        )
    token = records.claims.fence(stored, records.now(), shown=given.claim_token)
    if given.retry_delay_until is None:
        raise Refused(
            ErrorCode.INVALID_UPDATE,
            f"job {stored.id} cannot be Scheduled without retry_delay_until; nothing was changed",
        )
    when = validation.check_time(given.retry_delay_until, "retry_delay_until")
    more = given.retry_count - records.show(stored).retry_count
    if more == 0:
        return records.settled((await records.manager.snooze(stored.id, token, until=when)).job)
    if more != 1:
        raise Refused(
            ErrorCode.INVALID_UPDATE,
            f"retry_count of job {stored.id} can only grow by one; nothing was changed",
        )
    message = check_exception(given.exception or "failed")
    _check_retry_left(records, stored, token)
    changed = await records.manager.fail(
        stored.id, token, message, category=Category.TEMPORARY, retry_at=when
    )
    return records.settled(changed.job)


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


def _check_constants(given: Job, shown: Job) -> None:
    for name in ("name", "payload", "max_retries"):
        value = getattr(given, name)
        if value != getattr(shown, name) and not (name == "max_retries" and value is None):
            raise Refused(
                ErrorCode.INVALID_UPDATE,
                f"{name} of job {shown.id} is fixed when it is created; nothing was changed",
            )


def _check_carried(given: Job, shown: Job) -> None:
    """Only a completion brings a result, only a failure an exception: nothing given is dropped."""
    failed = given.status is JobStatus.FAILED or given.retry_count != shown.retry_count
    for name, fits in (("result", given.status is JobStatus.COMPLETED), ("exception", failed)):
        value = getattr(given, name)
        if value is not None and value != getattr(shown, name) and not fits:
            raise Refused(
                ErrorCode.INVALID_UPDATE,
                f"{name} of job {shown.id} does not go with {given.status}; nothing was changed",
            )


async def _write_down(records: Records, stored: model.Job, shown: Job, given: Job) -> model.Job:
    """The status stays: a result or an exception can be noted while the job is in progress."""
    in_progress = shown.status is JobStatus.IN_PROGRESS
    if in_progress and text_of(given.worker_id) not in (None, stored.assignee):
        raise Refused(
            ErrorCode.INVALID_UPDATE,
            f"job {shown.id} goes to another worker only by a claim; nothing was changed",
        )
    if given.retry_count != shown.retry_count or (
        not in_progress and given.retry_delay_until != shown.retry_delay_until
    ):
        raise Refused(
            ErrorCode.INVALID_UPDATE,
            f"retries of job {shown.id} are scheduled by a change of status; nothing was changed",
        )
    if (given.result, given.exception) == (shown.result, shown.exception):
        return stored
    token = records.claims.fence(stored, records.now(), shown=given.claim_token)
    if given.result != shown.result:
        stored = await records.note_result(stored, token, given.result)
    if given.exception != shown.exception:
        text = None if given.exception is None else check_exception(given.exception)
        stored = await records.note_exception(stored, token, text)
    return stored
