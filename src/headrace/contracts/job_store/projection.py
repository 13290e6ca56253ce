"""How Headrace's jobs read in this contract's words. Nothing here decides anything."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from headrace import codec, model
from headrace.contracts.job_store.entity import Id, Job, JobStatistics, JobStatus
from headrace.model import Category, State
from headrace.redaction import Redacted
from headrace.stores.base import Tally

_UUID_CHARS = 36

STATES: Mapping[JobStatus, tuple[State, ...]] = {
    JobStatus.QUEUED: (State.BLOCKED, State.PENDING, State.LOST),
    JobStatus.SCHEDULED: (State.PENDING, State.RETRYING),
    JobStatus.IN_PROGRESS: (State.RUNNING, State.CANCELLING),
    JobStatus.COMPLETED: (State.COMPLETED,),
    JobStatus.FAILED: (State.FAILED, State.DEAD),
    JobStatus.CANCELED: (State.CANCELLED, State.ABANDONED),
}
"""Which stored states a status can come from. A pending job is Queued once due, Scheduled before."""

_ONLY: Mapping[State, JobStatus] = {
    state: status
    for status, states in STATES.items()
    for state in states
    if state is not State.PENDING
}


class Draft(Redacted, frozen=True):
    """A result or an exception that was written while the job is in progress.

    It is kept where Headrace keeps what a worker says meanwhile (the checkpoint), so it changes no
    status and makes no event. It is void once the attempt it was written in is over.
    """

    attempt: int
    result_json: str | None = None
    exception: str | None = None

    @property
    def result(self) -> Any:
        return None if self.result_json is None else codec.decode(self.result_json.encode())


class DraftNote(msgspec.Struct, frozen=True):
    job_store: Draft


def status_of(job: model.Job, now: datetime) -> JobStatus:
    if job.state is State.PENDING:
        return JobStatus.QUEUED if job.run_at <= now else JobStatus.SCHEDULED
    return _ONLY[job.state]


def draft_of(job: model.Job) -> Draft:
    empty = Draft(job.attempt)
    if not job.is_leased or job.checkpoint_json is None:
        return empty
    try:
        draft = msgspec.convert(job.checkpoint, DraftNote).job_store
    except msgspec.ValidationError:
        return empty  # another interface's checkpoint
    return draft if draft.attempt == job.attempt else empty


def job_of(job: model.Job, now: datetime) -> Job:
    status = status_of(job, now)
    draft = draft_of(job)
    return Job(
        id=id_of(job.id),
        name=job.type,
        payload=job.payload,
        status=status,
        retry_count=_retries(job),
        max_retries=None if job.max_attempts is None else job.max_attempts - 1,
        retry_delay_until=job.run_at if status is JobStatus.SCHEDULED else None,
        worker_id=None if not job.is_leased or job.assignee is None else id_of(job.assignee),
        result=draft.result if job.result_json is None else job.result,
        exception=draft.exception or _exception(job),
        created_at=job.created_at,
        started_at=job.started_at,
        completed_at=job.finalized_at,
        last_updated_at=job.updated_at,
        claim_token=job.token,
    )


def id_of(text: str) -> Id:
    """A UUID where the text is one in its usual form, otherwise the text."""
    text = str.__str__(text)
    if len(text) != _UUID_CHARS:
        return text
    try:
        return uuid.UUID(text)
    except ValueError:
        return text


def text_of(value: object) -> object:
    """The stored form of an id: UUIDs in lower case. What is no id at all is left for the checks."""
    found = id_of(str.__str__(value)) if isinstance(value, str) else value
    return str(found) if isinstance(found, uuid.UUID) else found


def statistics_of(tallies: Iterable[Tally]) -> JobStatistics:
    counts = dict.fromkeys(JobStatus, 0)
    for tally in tallies:
        if tally.state is State.PENDING:
            counts[JobStatus.QUEUED] += tally.jobs - tally.delayed
            counts[JobStatus.SCHEDULED] += tally.delayed
        else:
            counts[_ONLY[tally.state]] += tally.jobs
    return JobStatistics(
        queued_count=counts[JobStatus.QUEUED],
        in_progress_count=counts[JobStatus.IN_PROGRESS],
        completed_count=counts[JobStatus.COMPLETED],
        failed_count=counts[JobStatus.FAILED],
        scheduled_count=counts[JobStatus.SCHEDULED],
        canceled_count=counts[JobStatus.CANCELED],
    )


def _retries(job: model.Job) -> int:
    """Failures that a retry followed. The one that ended the job, if one did, had none."""
    ended = job.state in (State.FAILED, State.DEAD) and job.last_failed_at == job.finalized_at
    return job.failures - ended


def _exception(job: model.Job) -> str | None:
    """A cancellation is recorded as a failure too, but it is not an exception."""
    failure = job.failure
    return None if failure is None or failure.category is Category.CANCELLED else failure.message
