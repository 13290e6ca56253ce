"""The last attempts of a job that failed: what the event log and the job's own log know of them, together."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.envelope import is_sealed
from headrace.manager.context import Context
from headrace.manager.sealing import hides_message
from headrace.model import ENCRYPTED, Category, Event, Job, State, failure_told
from headrace.redaction import Redacted
from headrace.stores.base import EventQuery

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


async def failed_attempts(context: Context, job_id: str, limit: int) -> tuple[FailedAttempt, ...]:
    """The last ones, oldest first. Of one that was heard of twice (lost, then failed) the last word."""
    job = await context.read_one(job_id)
    failed: dict[int, Event] = {}
    cursor = ""
    while True:
        query = EventQuery(after=cursor, tenant=context.tenant, job_id=job_id, limit=_PAGE)
        events = await context.store.events(query)
        for event in events:
            if event.attempt and event.category not in (None, Category.CANCELLED):
                failed[event.attempt] = event
        if len(events) < _PAGE:
            break
        cursor = events[-1].cursor
    lines = _lines(job)
    last = [failed[number] for number in sorted(failed)][-limit:]
    return tuple(
        _attempt(
            event, lines.get(event.attempt, {}), _said_last(job) if event is last[-1] else None
        )
        for event in last
    )


def _lines(job: Job) -> dict[int, dict[str, Any]]:
    """By attempt, the line of the job's log that says where it failed."""
    lines = [] if is_sealed(job.log_json) else job.log
    return {line.get("attempt"): line for line in lines if "traceback" in line}


def _said_last(job: Job) -> str | None:
    return None if job.failure is None or hides_message(job) else job.failure.message


def _attempt(event: Event, line: dict[str, Any], said_last: str | None) -> FailedAttempt:
    """The event log has no messages of encrypted jobs: the job has the last, and its own log others."""
    assert event.category is not None
    message = event.message
    if message == ENCRYPTED:
        message = said_last
    if message is None and line:
        message = str(line["text"]).removeprefix(f"{event.code}: ")
    return FailedAttempt(
        attempt=event.attempt,
        at=event.at,
        state=event.after,
        category=event.category,
        code=event.code,
        message=message,
        traceback=line.get("traceback"),
    )
