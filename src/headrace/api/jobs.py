"""The routes of jobs: submitting, reading, steering."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headrace import errors
from headrace.api.route import KEY_HEADER, V1, Route
from headrace.api.submissions import JobBody
from headrace.event_record import EventRecord, event_record
from headrace.job_record import JobRecord, job_fields, raw
from headrace.manager.explanation import Place
from headrace.model import Category, Event, Failure, Job, State
from headrace.policy import CancelMode
from headrace.redaction import Redacted
from headrace.tokens import Scope

NULL = msgspec.Raw(b"null")
WITHHELD = "withheld"
"""Stands for the message of an error that the token may not read."""


class JobAnswer(JobRecord, frozen=True, kw_only=True):
    """A job. Its contents are null where `contents` is false: the token may not read them."""

    contents: bool
    log: msgspec.Raw
    backoff: msgspec.Raw
    scheduled_at: datetime | None
    payload_bytes: int
    result_bytes: int | None


def job_answer(job: Job, *, contents: bool) -> JobAnswer:
    """What a token may see of it. A lease token is never in it."""
    fields = job_fields(job)
    if not contents:
        fields |= {
            "payload": NULL,
            "result": NULL,
            "checkpoint": NULL,
            "progress_note": None,
            "callback_url": None,
            "failure": withheld(job.failure),
        }
    return JobAnswer(
        **fields,
        contents=contents,
        log=raw(job.log_json) if contents else NULL,
        backoff=_readable(job.backoff_json),
        scheduled_at=job.scheduled_at,
        payload_bytes=len(job.payload_json),
        result_bytes=None if job.result_json is None else len(job.result_json),
    )


def _readable(encoded: bytes | None) -> msgspec.Raw:
    """A backoff as it is stored: one that another version has written may be anything."""
    try:
        msgspec.json.decode(encoded or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NULL
    return NULL if encoded is None else msgspec.Raw(encoded)


def withheld(failure: Failure | None) -> Failure | None:
    """The category and the code stay."""
    return None if failure is None else msgspec.structs.replace(failure, message=WITHHELD)


def event_answer(record: EventRecord, *, contents: bool) -> EventRecord:
    if contents:
        return record
    message = None if record.message is None else WITHHELD
    return msgspec.structs.replace(record, message=message, detail=NULL)


class SubmittedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs in the order they were given in: new, or the ones that were there already."""

    jobs: tuple[JobAnswer, ...]
    created: tuple[bool, ...]


class BatchOfJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stored all or none; they may depend on each other by id."""

    jobs: tuple[JobBody, ...]


class NewBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set of jobs under one id, and a callback that runs once all of them have ended."""

    jobs: tuple[JobBody, ...]
    callback: JobBody | None = None
    batch_id: str | None = None


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    job_ids: tuple[str, ...]
    callback_id: str | None
    created: int


class ProgressAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    states: Mapping[State, int]
    total: int
    ended: int
    done: bool


class FindQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every filter must match. A filter may be given several times: any of its values will do."""

    queue: tuple[str, ...] | None = None
    type: tuple[str, ...] | None = None
    state: tuple[State, ...] | None = None
    tag: tuple[str, ...] = ()
    """All of them."""
    worker: str | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    newest_first: bool = False
    limit: int = 100
    cursor: str | None = None


class FoundAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A page of jobs. `cursor` null: that was all."""

    jobs: tuple[JobAnswer, ...]
    cursor: str | None


class LookUpBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ids: tuple[str, ...]


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seconds: float = 30.0
    """300 at most."""


class ResultAnswer(Redacted, frozen=True, kw_only=True):
    job_id: str
    state: State
    result: msgspec.Raw
    failure: Failure | None


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: str = ""
    """A cursor: what comes behind it. `end`: only what is new."""
    limit: int = 1000


class EventsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Events in log order, and the cursor to go on behind."""

    events: tuple[EventRecord, ...]
    cursor: str


class LastQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = 3
    """So many of the last ones."""


class FailedAttemptAnswer(Redacted, frozen=True, kw_only=True):
    attempt: int
    at: datetime
    state: State
    category: Category
    code: str | None
    message: str | None
    traceback: str | None


class FailuresAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The last attempts that failed, oldest first."""

    attempts: tuple[FailedAttemptAnswer, ...]


class ReasonAnswer(msgspec.Struct, frozen=True, kw_only=True):
    why: str
    message: str
    facts: Mapping[str, Any]


class ExplanationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Why it does not run, or that it does. The first reason is the one to look at."""

    job: JobAnswer
    reasons: tuple[ReasonAnswer, ...]
    place: Place | None = None
    """Where it stands in line; null: it does not."""


class CancelBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mode: CancelMode | None = None
    """Null: as the queue's policy says."""
    reason: str | None = None


class CancelManyBody(CancelBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs by id, or by having all of the tags: the union."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    dry_run: bool = False


class CancelledAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each job that was meant, or (dry run) would become of it."""

    jobs: tuple[JobAnswer, ...]
    """Cancelled now, or cancelling until their worker answers."""
    already: tuple[JobAnswer, ...]
    """Cancelling before."""
    refused: tuple[JobAnswer, ...]
    """Running, and the mode only takes jobs that wait."""
    ended: tuple[JobAnswer, ...]
    """Ended before."""
    not_found: tuple[str, ...]
    freed: Mapping[str, int]
    """Slots that workers have got back, by worker."""


class UpdateBody(Redacted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out stays; null takes a correlation id or callback url away."""

    priority: int | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    correlation_id: str | UnsetType | None = UNSET
    callback_url: str | UnsetType | None = UNSET


class RescheduleBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    run_at: datetime | None = None
    """Null: now."""


class SelectionBody(Redacted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs by id, or by having all of the tags: the union."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class RedriveBody(Redacted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With another payload: that needs the scopes `submit` and `read:payload`, too."""

    payload: msgspec.Raw | UnsetType = UNSET


class RedriveManyBody(SelectionBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    payload: msgspec.Raw | UnsetType = UNSET


class JobsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    jobs: tuple[JobAnswer, ...]


SUBMISSION = (
    errors.InvalidInput,
    errors.PayloadTooLarge,
    errors.DuplicateJob,
    errors.QueueFull,
    errors.SubmissionTimeout,
)

SUBMIT = Route(
    name="submit_job",
    method="POST",
    path=f"{V1}/jobs",
    summary="Store a job. With a key that is held, the job that holds it: 200 instead of 201.",
    scopes=(Scope.SUBMIT,),
    body=JobBody,
    answer=JobAnswer,
    status=201,
    also=(200,),
    headers=(KEY_HEADER,),
    errors=(*SUBMISSION, errors.KeyReused),
)
SUBMIT_MANY = Route(
    name="submit_jobs",
    method="POST",
    path=f"{V1}/jobs/batch",
    summary="Store several jobs, all or none.",
    scopes=(Scope.SUBMIT,),
    body=BatchOfJobs,
    answer=SubmittedAnswer,
    status=201,
    errors=SUBMISSION,
)
SUBMIT_BATCH = Route(
    name="submit_batch",
    method="POST",
    path=f"{V1}/batches",
    summary="Store a set of jobs under one id, and a callback for its end.",
    scopes=(Scope.SUBMIT,),
    body=NewBatch,
    answer=BatchAnswer,
    status=201,
    errors=SUBMISSION,
)
BATCH = Route(
    name="get_batch",
    method="GET",
    path=f"{V1}/batches/{{batch_id}}",
    summary="How far the jobs of a batch are.",
    scopes=(Scope.READ,),
    answer=ProgressAnswer,
    errors=(errors.BatchNotFound,),
)
FIND = Route(
    name="list_jobs",
    method="GET",
    path=f"{V1}/jobs",
    summary="The jobs that match, page by page, in order of submission.",
    scopes=(Scope.READ,),
    query=FindQuery,
    answer=FoundAnswer,
)
LOOK_UP = Route(
    name="look_up_jobs",
    method="POST",
    path=f"{V1}/jobs/lookup",
    summary="Those of the named jobs that are there.",
    scopes=(Scope.READ,),
    body=LookUpBody,
    answer=JobsAnswer,
)
GET = Route(
    name="get_job",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}",
    summary="A job as it is now.",
    scopes=(Scope.READ,),
    answer=JobAnswer,
    errors=(errors.JobNotFound,),
)
RESULT = Route(
    name="get_result",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}/result",
    summary="How a job has ended, with its result; 409 while it goes on.",
    scopes=(Scope.READ, Scope.READ_PAYLOAD),
    answer=ResultAnswer,
    errors=(errors.JobNotFound, errors.NotEnded),
)
WAIT = Route(
    name="wait_for_job",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}/wait",
    summary="The job once it has ended, or as it is when the time is up.",
    scopes=(Scope.READ,),
    query=WaitQuery,
    answer=JobAnswer,
    waits=True,
    errors=(errors.JobNotFound, errors.TooManyRequests),
)
JOB_EVENTS = Route(
    name="list_job_events",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}/events",
    summary="What has happened to a job.",
    scopes=(Scope.READ,),
    query=EventsQuery,
    answer=EventsAnswer,
    errors=(errors.JobNotFound,),
)
FAILURES = Route(
    name="list_failed_attempts",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}/failures",
    summary="The last attempts that failed, with their tracebacks.",
    scopes=(Scope.READ, Scope.READ_PAYLOAD),
    query=LastQuery,
    answer=FailuresAnswer,
    errors=(errors.JobNotFound,),
)
EXPLAIN = Route(
    name="explain_job",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}/explain",
    summary="Why a job does not run, or that it does.",
    scopes=(Scope.READ,),
    answer=ExplanationAnswer,
    errors=(errors.JobNotFound,),
)
CANCEL = Route(
    name="cancel_job",
    method="POST",
    path=f"{V1}/jobs/{{job_id}}/cancel",
    summary="Ask for a job not to run, or to stop.",
    scopes=(Scope.OPERATE,),
    body=CancelBody,
    body_optional=True,
    answer=CancelledAnswer,
    errors=(errors.JobNotFound, errors.Refusal),
)
CANCEL_MANY = Route(
    name="cancel_jobs",
    method="POST",
    path=f"{V1}/jobs/cancel",
    summary="Cancel jobs by id or tags, in one step.",
    scopes=(Scope.OPERATE,),
    body=CancelManyBody,
    answer=CancelledAnswer,
    errors=(errors.EmptySelection, errors.JobNotFound),
)
UPDATE = Route(
    name="update_job",
    method="PATCH",
    path=f"{V1}/jobs/{{job_id}}",
    summary="Change what is said of a job that has not ended.",
    scopes=(Scope.OPERATE,),
    body=UpdateBody,
    answer=JobAnswer,
    errors=(errors.JobNotFound, errors.Refusal),
)
RESCHEDULE = Route(
    name="reschedule_job",
    method="POST",
    path=f"{V1}/jobs/{{job_id}}/reschedule",
    summary="Let a job that waits be due at another time.",
    scopes=(Scope.OPERATE,),
    body=RescheduleBody,
    body_optional=True,
    answer=JobAnswer,
    errors=(errors.JobNotFound, errors.Refusal),
)
REDRIVE = Route(
    name="redrive_job",
    method="POST",
    path=f"{V1}/jobs/{{job_id}}/redrive",
    summary="Run a failed, dead or cancelled job again, as a new job.",
    scopes=(Scope.OPERATE,),
    body=RedriveBody,
    body_optional=True,
    answer=JobAnswer,
    status=201,
    errors=(errors.JobNotFound, errors.Refusal, errors.QueueFull),
)
REDRIVE_MANY = Route(
    name="redrive_jobs",
    method="POST",
    path=f"{V1}/jobs/redrive",
    summary="Run failed, dead or cancelled jobs again, by id or tags.",
    scopes=(Scope.OPERATE,),
    body=RedriveManyBody,
    answer=SubmittedAnswer,
    status=201,
    errors=(errors.EmptySelection, errors.JobNotFound, errors.Refusal, errors.QueueFull),
)
DELETE = Route(
    name="delete_job",
    method="DELETE",
    path=f"{V1}/jobs/{{job_id}}",
    summary="Delete a job that has ended.",
    scopes=(Scope.OPERATE,),
    status=204,
    errors=(errors.JobNotFound, errors.NotTerminal),
)
DELETE_MANY = Route(
    name="delete_jobs",
    method="POST",
    path=f"{V1}/jobs/delete",
    summary="Delete ended jobs by id or tags: all, or none.",
    scopes=(Scope.OPERATE,),
    body=SelectionBody,
    answer=JobsAnswer,
    errors=(errors.EmptySelection, errors.NotTerminal),
)
ROUTES = (
    SUBMIT,
    SUBMIT_MANY,
    SUBMIT_BATCH,
    BATCH,
    FIND,
    LOOK_UP,
    GET,
    RESULT,
    WAIT,
    JOB_EVENTS,
    FAILURES,
    EXPLAIN,
    CANCEL,
    CANCEL_MANY,
    UPDATE,
    RESCHEDULE,
    REDRIVE,
    REDRIVE_MANY,
    DELETE,
    DELETE_MANY,
)


def events_answer(events: tuple[Event, ...], after: str, *, contents: bool) -> EventsAnswer:
    return EventsAnswer(
        events=tuple(event_answer(event_record(event), contents=contents) for event in events),
        cursor=events[-1].cursor if events else after,
    )
