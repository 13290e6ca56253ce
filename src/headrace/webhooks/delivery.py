"""Delivering one webhook: what is said, to whom, and what an answer means for the job that delivers."""

from __future__ import annotations

import contextlib
import http
import http.client
import logging
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from headrace import validation
from headrace.errors import InvalidInput, JobNotFound, PermanentError, TemporaryError
from headrace.input_checks import checked
from headrace.manager import JobManager
from headrace.model import Failure, Job, State
from headrace.redaction import Redacted
from headrace.webhooks import address, exchange, signing
from headrace.webhooks.address import Network, Resolve
from headrace.webhooks.exchange import Answer, Dial, Exchange, Limits, Target

logger = logging.getLogger("headrace.webhooks")

RESULT_BYTES_MAX = 64 * 1024
"""A larger result is left out: the receiver knows the job's id, and can ask."""
RETRY_AFTER_SECONDS_MIN, RETRY_AFTER_SECONDS_MAX = 5.0, 12 * 3600.0
_PASSING = frozenset({408, 425, 429})
"""Of the answers that blame the request, those that may be different next time."""


class _Order(Redacted, frozen=True, kw_only=True):
    """The payload of a job that delivers (`completion.webhooks` writes it)."""

    job_id: str
    url: str
    message_id: str


@checked
async def deliver(
    manager: JobManager,
    job: Job,
    *,
    secrets: Sequence[str],
    signed: bool = True,
    allow_private: Sequence[str | Network] = (),
    resolve: Resolve = address.resolve,
    dial: Dial = exchange.dial,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Tell a callback url of a job's end: the handler of jobs of type `webhooks.TYPE`.

    The url is the one that the job has in the end; if that was taken back, nobody is told. Returns the
    answer's status if it is 2xx. Raises TemporaryError for what may be different later, and
    PermanentError for what will not be. `allow_private` names networks that are not public and may be
    sent to all the same, such as "10.1.0.0/16". The message's id is the same in every try. `signed` False
    sends without a signature, for those who have not agreed on a secret.
    """
    allowed = address.networks(allow_private)
    order = _order(job)
    ended = await _ended(manager, job, order)
    url = order.url if ended is None else ended.callback_url
    if url is None:
        return {"status": None, "note": "the callback url was taken back"}
    body = await _epitaph(manager, job, order) if ended is None else _told(ended)
    now = manager.clock.now()
    headers = (
        signing.sign(order.message_id, now, body, secrets)
        if signed
        else signing.stamp(order.message_id, now)
    )
    headers |= {"content-type": "application/json", "user-agent": "Headrace"}
    target = Target.of(url)
    limits = limits or Limits()
    try:
        addresses = await _addresses(target, resolve, allowed, limits)
        request = Exchange(target, addresses, headers, body, limits=limits, dial=dial, tls=tls)
        answer = await exchange.post(request, limits)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        why = str(error) or type(error).__name__
        raise TemporaryError(f"{target.host} could not be told: {why}", error) from error
    return _judge(answer, target, now)


def _order(job: Job) -> _Order:
    try:
        order = msgspec.convert(job.payload, _Order)
        validation.check_url(order.url, "the callback url")
        return order
    except (msgspec.ValidationError, InvalidInput) as error:
        raise PermanentError(f"this is no webhook: {error}", error, "invalid_webhook") from error


async def _addresses(
    target: Target, resolve: Resolve, allowed: Sequence[Network], limits: Limits
) -> list[str]:
    found = await exchange.in_thread(
        lambda: resolve(target.host, target.port), limits.resolve_seconds
    )
    addresses = address.permitted(found, allowed)
    if not addresses:
        # The addresses are for the operator alone: whoever chose the url must not learn our names.
        logger.warning("%s leads to %s, which is not public", target.host, ", ".join(found))
        raise PermanentError(
            f"{target.host} has no public address; nothing was sent: "
            "allow its network if it is meant to be reached",
            code="address_refused",
        )
    return addresses


async def _ended(manager: JobManager, job: Job, order: _Order) -> Job | None:
    """The job that is told of. None: it was deleted meanwhile, or is not this tenant's."""
    try:
        ended = await manager.get(order.job_id)
    except JobNotFound:
        return None
    return ended if ended.tenant == job.tenant else None


def _told(ended: Job) -> bytes:
    if not ended.is_terminal or ended.finalized_at is None:
        raise TemporaryError(f"job {ended.id} is {ended.state}: there is no end to tell of yet")
    return _event(ended.state, ended.finalized_at, _facts(ended))


async def _epitaph(manager: JobManager, job: Job, order: _Order) -> bytes:
    """What is left to tell of a job that was deleted meanwhile."""
    edges = await manager.store.edges(child_id=job.id)
    outcome = next((edge.outcome for edge in edges if edge.parent_id == order.job_id), None)
    if outcome is None:
        raise PermanentError(f"job {order.job_id} is gone, with how it ended", code="job_gone")
    facts = {"id": order.job_id, "tenant": job.tenant, "state": outcome}
    return _event(outcome, job.started_at or job.created_at, facts)


def _event(state: State, at: datetime, data: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": f"job.{state}", "timestamp": at, "data": data})


def _facts(job: Job) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "id": job.id,
        "tenant": job.tenant,
        "queue": job.queue,
        "type": job.type,
        "state": job.state,
        "attempt": job.attempt,
        "tags": job.tags,
        "correlation_id": job.correlation_id,
        "previous_id": job.previous_id,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finalized_at": job.finalized_at,
    }
    # What is encrypted at rest is not sent out in the open: its receiver asks for it.
    is_secret = job.seals is not None or job.is_sealed
    if job.state is not State.COMPLETED:
        facts["error"] = _error(job.failure, is_secret=is_secret)
    elif job.result_json is not None and not is_secret:
        facts["result_bytes"] = len(job.result_json)
        if len(job.result_json) <= RESULT_BYTES_MAX:
            facts["result"] = msgspec.Raw(job.result_json)
    return facts


def _error(failure: Failure | None, *, is_secret: bool) -> dict[str, Any] | None:
    if failure is None:
        return None
    told = {"category": failure.category, "code": failure.code}
    return told if is_secret else {"message": failure.message} | told


def _judge(answer: Answer, target: Target, now: datetime) -> dict[str, Any]:
    status = answer.status
    match status // 100:
        case 2:
            return {"status": status}
        case 3:
            raise PermanentError(
                f"{target.host} answered {status}: redirects are not followed, give the final url",
                code=f"http_{status}",
            )
        case 4 if status not in _PASSING:
            raise PermanentError(
                f"{target.host} answered {status}, and will again", code=f"http_{status}"
            )
        case _:
            raise TemporaryError(
                f"{target.host} answered {status}",
                retry_after=retry_after_seconds(answer.retry_after, now),
            )


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """How long the receiver asks to be left alone, within bounds. None: it does not say."""
    if value is None:
        return None
    value = value.strip()
    seconds: float | None = None
    if value.isascii() and value.isdecimal():
        seconds = float(value)
    else:
        with contextlib.suppress(ValueError, OverflowError):
            until = parsedate_to_datetime(value)
            until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
            seconds = (until - now).total_seconds()
    if seconds is None:
        return None
    return min(max(seconds, RETRY_AFTER_SECONDS_MIN), RETRY_AFTER_SECONDS_MAX)
