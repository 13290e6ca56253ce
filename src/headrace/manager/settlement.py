"""How attempts end: outcomes as values, one `match` that turns each into its command."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, assert_never

from msgspec.structs import replace

from headrace import codec, error_text, input_checks, lifecycle, retry, validation
from headrace.duration import Seconds
from headrace.errors import HeadraceError, InvalidInput, PermanentError, TemporaryError
from headrace.lifecycle import Command
from headrace.manager.changes import Order, Settled, change_each, unreadable
from headrace.manager.context import Context
from headrace.model import Category, Change, Failure, Job
from headrace.policy import Policy
from headrace.redaction import Redacted

logger = logging.getLogger("headrace.manager")


class _Outcome(Redacted, frozen=True, kw_only=True):
    job_id: str
    token: str | None
    """None only where the queue's policy has no fencing."""
    known: Job | None = None
    """The job as claimed: saves a read when nothing has changed since."""


class Completed(_Outcome, frozen=True, kw_only=True):
    """The attempt succeeded."""

    result: Any = None


class Failed(_Outcome, frozen=True, kw_only=True):
    """The attempt failed."""

    failure: Failure
    retry_after: Seconds | None = None
    retry_at: datetime | None = None


class Snoozed(_Outcome, frozen=True, kw_only=True):
    """It is to run again later, at no cost to its budget."""

    until: datetime


class Released(_Outcome, frozen=True, kw_only=True):
    """It is given back unfinished, at no cost to its budget."""


class Stopped(_Outcome, frozen=True, kw_only=True):
    """The worker ended it on request."""

    message: str = "stopped"


class CancelAcknowledged(_Outcome, frozen=True, kw_only=True):
    """The worker's answer to a cancellation."""

    was_executing: bool


Outcome = Completed | Failed | Snoozed | Released | Stopped | CancelAcknowledged

_check_outcome = input_checks.checker(Outcome, "an outcome")


async def settle(context: Context, outcomes: Sequence[Outcome]) -> Settled:
    """Record many outcomes in one step of the store; each stands or is refused alone."""
    await context.synchronise()
    orders: list[Order] = []
    bad: dict[int, HeadraceError] = {}
    ready: dict[int, Change] = {}
    completions = lifecycle.Completions(context.now())
    for index, outcome in enumerate(outcomes):
        try:
            change = _completion(context, completions, outcome)
            if change is None:
                orders.append(order(context, _check_outcome(outcome)))
            else:
                ready[len(orders)] = change
                orders.append(_again(context, outcome))
        except HeadraceError as error:
            bad[index] = error
        except Exception as error:
            logger.exception("an outcome cannot be read; the others are recorded")
            bad[index] = unreadable(error)
    settled = await change_each(context, orders, ready)
    if not bad:
        return settled
    good = iter(settled.outcomes)
    merged = [bad[index] if index in bad else next(good) for index in range(len(outcomes))]
    return Settled(tuple(merged), settled.freed)


def _again(context: Context, outcome: Outcome) -> Order:
    """The order of what is ready: it is looked at in full only if the job has moved on."""
    return Order(outcome.job_id, lambda job: order(context, outcome).decide(job), outcome.known)


def _completion(
    context: Context, completions: lifecycle.Completions, outcome: object
) -> Change | None:
    """What becomes of a job that succeeded as nearly all do: by its lease, as it was claimed.

    Quick, and only for values that are exactly what they should be; None: `order` looks at it.
    """
    if type(outcome) is not Completed:
        return None
    job_id, token, known = outcome.job_id, outcome.token, outcome.known
    if type(known) is not Job or type(job_id) is not str or type(token) is not str:
        return None
    if known.id != job_id or not context.sees(known):
        return None
    result_json: bytes | None = None
    if outcome.result is not None:
        result_json = _result_of(outcome)
        if len(result_json) > context.policy(known.queue).payload_bytes_max:
            return None
    return completions.of(known, token, result_json)


def _result_of(outcome: Completed) -> bytes:
    """The queue's own, lower limit is applied with the job."""
    return codec.encode(outcome.result, what="result", limit=codec.PAYLOAD_BYTES_MAX)


def failure_of(
    error: BaseException | str, *, category: Category | None = None, code: str | None = None
) -> Failure:
    """What to record for an error: a handler's typed error says it, anything else is TEMPORARY."""
    if not issubclass(type(error), str | BaseException):
        raise InvalidInput(
            f"an error is text or an exception, not {validation.told(error)}; nothing was changed"
        )
    category = None if category is None else validation.check_word(category, Category)
    if not issubclass(type(error), BaseException):
        return Failure(error_text.plain(str(error)), category or Category.TEMPORARY, code)
    message = error_text.text_of(error)
    if error_text.is_a(error, PermanentError):
        category, code = category or Category.PERMANENT, code or _code_of(error)
    elif error_text.is_a(error, TimeoutError):
        category = category or Category.TIMEOUT
    elif code is None and not error_text.is_a(error, TemporaryError):
        code = error_text.name_of(error)
    return Failure(message, category or Category.TEMPORARY, code)


def _code_of(error: Any) -> str | None:
    """The code that a handler gave its PermanentError; the name of its class if that cannot be read."""
    try:
        return None if error.error_code is None else error_text.plain(str(error.error_code))
    except BaseException:  # noqa: BLE001 - it is the handler's object, and may do anything
        return error_text.name_of(error)


def order(context: Context, outcome: Outcome) -> Order:
    """Checked now, where the caller can still be told; decided later, with the job at hand."""
    validation.check_id(outcome.job_id)
    result_json: bytes | None = None
    match outcome:
        case Completed():
            if outcome.result is not None:
                result_json = _result_of(outcome)
        case Failed():
            if outcome.failure.category is Category.CANCELLED:
                raise InvalidInput(
                    "a failure cannot be CANCELLED: stop the job instead; nothing was changed"
                )
            if outcome.retry_at is not None:
                outcome = replace(
                    outcome, retry_at=validation.check_time(outcome.retry_at, "retry_at")
                )
            if outcome.retry_after is not None:
                seconds = validation.check_seconds(outcome.retry_after, "retry_after", zero=True)
                outcome = replace(outcome, retry_after=seconds)
        case Snoozed():
            outcome = replace(outcome, until=validation.check_time(outcome.until, "until"))
        case Released() | Stopped() | CancelAcknowledged():
            pass
        case _:
            assert_never(outcome)
    checked = outcome
    return Order(
        outcome.job_id, lambda job: _command(context, checked, job, result_json), outcome.known
    )


def _command(context: Context, outcome: Outcome, job: Job, result_json: bytes | None) -> Command:
    policy = context.policy(job.queue)
    if outcome.token is None and policy.fenced:
        raise InvalidInput(
            f"job {job.id} is on a fenced queue: give its lease token; nothing was changed"
        )
    match outcome:
        case Completed(token=token):
            if result_json is not None:
                codec.check_size(result_json, "result", policy.payload_bytes_max)
            return lifecycle.Complete(token=token, result_json=result_json)
        case Failed(token=token, failure=failure):
            return lifecycle.Fail(
                token=token,
                failure=failure,
                retry=failure.category in policy.retry_on,
                backoff=backoff_of(job, policy),
                draw=context.dice.random(),
                retry_after=outcome.retry_after,  # type: ignore[arg-type]  # `_order` has read it
                retry_at=outcome.retry_at,
            )
        case Snoozed(token=token, until=until):
            return lifecycle.Snooze(token=token, until=until)
        case Released(token=token):
            return lifecycle.Release(token=token)
        case Stopped(token=token, message=message):
            return lifecycle.Stop(token=token, failure=Failure(message, Category.CANCELLED))
        case CancelAcknowledged(token=token, was_executing=was_executing):
            return lifecycle.AcknowledgeCancel(token=token, was_executing=was_executing)
        case _:
            assert_never(outcome)


def backoff_of(job: Job, policy: Policy) -> retry.Backoff:
    """The job's own, or its queue's: also where a newer version has stored one that this one cannot read."""
    if job.backoff_json is None:
        return policy.backoff
    try:
        return retry.decode(job.backoff_json)
    except InvalidInput as error:
        logger.warning(
            "job %s is retried by the backoff of queue %r, not by its own: %s",
            job.id,
            job.queue,
            error,
            extra={"job_id": job.id, "queue": job.queue},
        )
        return policy.backoff


def later(now: datetime, *, until: datetime | None, seconds: Seconds | None) -> datetime:
    """A snooze's end, given either way."""
    if (until is None) == (seconds is None):
        raise InvalidInput("give until or seconds, one of the two; nothing was changed")
    if until is not None:
        return validation.check_time(until, "until")
    return now + timedelta(seconds=validation.check_seconds(seconds, "seconds", zero=True))
