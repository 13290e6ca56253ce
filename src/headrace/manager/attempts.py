"""The attempts of a job: what the event log and the job's own log know of them, together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from headrace import history
from headrace.envelope import is_sealed
from headrace.history import Attempt
from headrace.manager.context import Context
from headrace.manager.sealing import hides_message
from headrace.model import ENCRYPTED, Category, Event, Job, State, failure_told
from headrace.redaction import Redacted
from headrace.stores.base import EventQuery

ATTEMPTS = 100
FAILED_ATTEMPTS = 3
_PAGE = 1000


class FailedAttempt(Redacted, frozen=True, kw_only=True):
    """One attempt that failed, was lost, or ran too long."""

    attempt: int
    at: datetime
    state: State
    """What became of the job."""
    category: Category
    code: str | None
    """Of an exception: its class."""
    message: str | None
    """None: it is encrypted, and there is no key for it here."""
    traceback: str | None
    """From the handler's own code on, the last 4 KB. None: it had none, or older than the last three."""

    @property
    def told(self) -> str:
        return failure_told(self.code, self.message)


async def attempts(context: Context, job_id: str, limit: int) -> tuple[Attempt, ...]:
    """The last ones, oldest first."""
    job = await context.read_one(job_id)
    found = history.attempts([event async for event in _events(context, job_id)])
    lines = _lines(job)
    said_last = _said_last(job)
    failed = [one for one in found if one.category is not None]
    last = failed[-1].attempt if failed else None
    return tuple(
        replace(
            one,
            message=_message(
                one.message, one.code, line, said_last if one.attempt == last else None
            ),
            traceback=line.get("traceback"),
        )
        for one in found[-limit:]
        for line in (lines.get(one.attempt, {}),)
    )


async def failed_attempts(context: Context, job_id: str, limit: int) -> tuple[FailedAttempt, ...]:
    """The last ones, oldest first. Of one that was heard of twice (lost, then failed) the last word."""
    job = await context.read_one(job_id)
    failed: dict[int, Event] = {}
    async for event in _events(context, job_id):
        if event.attempt and event.category not in (None, Category.CANCELLED):
            failed[event.attempt] = event
    lines = _lines(job)
    last = [failed[number] for number in sorted(failed)][-limit:]
    return tuple(
        _attempt(
            event, lines.get(event.attempt, {}), _said_last(job) if event is last[-1] else None
        )
        for event in last
    )


async def _events(context: Context, job_id: str) -> AsyncIterator[Event]:
    """What the log holds of the job, page by page."""
    cursor = ""
    while True:
        query = EventQuery(after=cursor, tenant=context.tenant, job_id=job_id, limit=_PAGE)
        events = await context.store.events(query)
        for event in events:
            yield event
        if len(events) < _PAGE:
            return
        cursor = events[-1].cursor


def _lines(job: Job) -> dict[int, dict[str, Any]]:
    """By attempt, the line of the job's log that says where it failed."""
    lines = [] if is_sealed(job.log_json) else job.log
    return {line.get("attempt"): line for line in lines if "traceback" in line}


def _said_last(job: Job) -> str | None:
    return None if job.failure is None or hides_message(job) else job.failure.message


def _attempt(event: Event, line: dict[str, Any], said_last: str | None) -> FailedAttempt:
    assert event.category is not None
    return FailedAttempt(
        attempt=event.attempt,
        at=event.at,
        state=event.after,
        category=event.category,
        code=event.code,
        message=_message(event.message, event.code, line, said_last),
        traceback=line.get("traceback"),
    )


def _message(
    in_log: str | None, code: str | None, line: dict[str, Any], said_last: str | None
) -> str | None:
    """The event log has no messages of encrypted jobs: the job has the last, and its own log others."""
    if in_log != ENCRYPTED:
        return in_log
    if said_last is None and line:
        return str(line["text"]).removeprefix(f"{code}: ")
    return said_last
