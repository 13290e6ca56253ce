"""The routes of workers: claiming, keeping what was claimed, and saying how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from headrace import errors
from headrace.api.jobs import SUBMISSION, JobAnswer, SubmittedAnswer, job_answer
from headrace.api.route import LEASE_HEADER, V1, Route
from headrace.api.submissions import JobBody, SecondsBody
from headrace.model import Category, Job, State
from headrace.redaction import Redacted
from headrace.stores.base import WorkerProcess
from headrace.tokens import Scope


def _null() -> msgspec.Raw:
    return msgspec.Raw(b"null")


class ClaimBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs the worker takes: every filter must match, and null does not filter."""

    worker: str
    queues: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    limit: int = 1
    lease_seconds: SecondsBody | None = None
    due_by: datetime | None = None
    wait_seconds: float = 0.0
    """Where there is nothing now, wait for something for so long; 30 at most."""
    tenant: str | None = None
    look_ahead: bool = True
    """Where there are fewer than `limit`, look when the next one is due."""
    slots: int | None = None
    """How many jobs the worker runs at once."""
    busy: int | None = None
    """How many it runs now."""


class LeaseAnswer(Redacted, frozen=True, kw_only=True):
    """The worker's hold on a job: every write of the worker shows the token."""

    token: str
    seconds: float | None
    """How long a heartbeat makes it last; null: without end."""
    until: datetime | None


class ClaimedJob(JobAnswer, frozen=True, kw_only=True):
    lease: LeaseAnswer


class ClaimedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was claimed, the most urgent first. `next_at`: when it is worth while to ask again."""

    jobs: tuple[ClaimedJob, ...]
    next_at: datetime | None
    at: datetime
    """The store's time, by which leases are counted."""


def claimed_job(job: Job) -> ClaimedJob:
    assert job.token is not None
    lease = LeaseAnswer(token=job.token, seconds=job.lease_seconds, until=job.lease_until)
    # Whoever runs it must know what is in it.
    return ClaimedJob(**msgspec.structs.asdict(job_answer(job, contents=True)), lease=lease)


class AnnounceBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker that is there, and for which jobs, though it does not claim."""

    worker: str
    queues: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    slots: int | None = None
    busy: int | None = None
    process: WorkerProcess | None = None
    """Where it runs."""


class HeldLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    job_id: str
    lease: str
    """The token."""
    seconds: SecondsBody | None = None
    """To last so long from now on; null: as it was claimed."""


class HeartbeatBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    leases: tuple[HeldLease, ...]


class ExtendedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    state: State
    """Cancelling: the worker is to stop."""
    lease_until: datetime | None


class HeartbeatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The leases that go on, and why the others do not, by job."""

    extended: Mapping[str, ExtendedAnswer]
    refused: Mapping[str, dict[str, Any]]
    lost: tuple[HeldLease, ...]
    at: datetime


class CheckedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Those of the leases that hold, by job; cancelling: the worker is to stop."""

    held: Mapping[str, State]


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a job that follows others is told about them; not wanted: it is to be completed as it is."""

    wanted: bool
    note: str
    about: Mapping[str, Any]


class _Outcome(Redacted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    job_id: str
    lease: str


class Completed(_Outcome, frozen=True, kw_only=True, tag_field="outcome", tag="completed"):
    result: msgspec.Raw = msgspec.field(default_factory=_null)


class Failed(_Outcome, frozen=True, kw_only=True, tag_field="outcome", tag="failed"):
    message: str
    category: Category = Category.TEMPORARY
    code: str | None = None
    retry_after: SecondsBody | None = None
    retry_at: datetime | None = None


class Snoozed(_Outcome, frozen=True, kw_only=True, tag_field="outcome", tag="snoozed"):
    until: datetime | None = None
    seconds: SecondsBody | None = None
    """Or from now."""


class Released(_Outcome, frozen=True, kw_only=True, tag_field="outcome", tag="released"):
    pass


class Stopped(_Outcome, frozen=True, kw_only=True, tag_field="outcome", tag="stopped"):
    message: str = "stopped"


class CancelAcknowledged(
    _Outcome, frozen=True, kw_only=True, tag_field="outcome", tag="cancel_acknowledged"
):
    was_executing: bool


Outcome = Completed | Failed | Snoozed | Released | Stopped | CancelAcknowledged


class SettleBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ends of several attempts; each stands or is refused alone."""

    outcomes: tuple[Outcome, ...]
    jobs: bool = True
    """Answer with the jobs as they are after it."""


class SettledOne(msgspec.Struct, frozen=True, kw_only=True):
    job_id: str
    state: State | None
    """Null: it was refused, and `problem` says why."""
    job: JobAnswer | None
    problem: dict[str, Any] | None


class SettledAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer for each outcome, in order."""

    outcomes: tuple[SettledOne, ...]
    freed: Mapping[str, int]
    """Slots that workers have got back, by worker."""


class CompleteBody(Redacted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    result: msgspec.Raw = msgspec.field(default_factory=_null)


class FailBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message: str
    category: Category = Category.TEMPORARY
    code: str | None = None
    retry_after: SecondsBody | None = None
    retry_at: datetime | None = None


class SnoozeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the two."""

    until: datetime | None = None
    seconds: SecondsBody | None = None


class StopBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message: str = "stopped"


class AcknowledgeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    was_executing: bool


class ProgressBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    fraction: float
    """0 to 1."""
    note: str | None = None


class CheckpointBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    value: msgspec.Raw


class LogBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lines: tuple[msgspec.Raw, ...]
    """All of the job's lines, in place of those before."""


class SpawnBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    jobs: tuple[JobBody, ...]


LEASE = (errors.JobNotFound, errors.Refusal)

CLAIM = Route(
    name="claim_jobs",
    method="POST",
    path=f"{V1}/claim",
    summary="Lease jobs that are due; wait for some where there are none.",
    scopes=(Scope.WORK,),
    body=ClaimBody,
    answer=ClaimedAnswer,
    waits=True,
)
ANNOUNCE = Route(
    name="announce_worker",
    method="POST",
    path=f"{V1}/workers",
    summary="Say that a worker is there though it does not claim.",
    scopes=(Scope.WORK,),
    body=AnnounceBody,
    status=204,
)
HEARTBEAT = Route(
    name="extend_leases",
    method="POST",
    path=f"{V1}/leases/heartbeat",
    summary="Extend leases, all in one step.",
    scopes=(Scope.WORK,),
    body=HeartbeatBody,
    answer=HeartbeatAnswer,
)
CHECK = Route(
    name="check_leases",
    method="POST",
    path=f"{V1}/leases/check",
    summary="Which leases hold. Extends none.",
    scopes=(Scope.WORK,),
    body=HeartbeatBody,
    answer=CheckedAnswer,
)
SETTLE = Route(
    name="settle_jobs",
    method="POST",
    path=f"{V1}/settle",
    summary="Record the ends of several attempts in one step.",
    scopes=(Scope.WORK,),
    body=SettleBody,
    answer=SettledAnswer,
)


def _of_job(
    verb: str,
    summary: str,
    body: type[msgspec.Struct] | None,
    *,
    optional: bool = False,
    answer: type[msgspec.Struct] | None = JobAnswer,
    status: int = 200,
) -> Route:
    return Route(
        name=f"{verb}_job",
        method="POST",
        path=f"{V1}/jobs/{{job_id}}/{verb}",
        summary=summary,
        scopes=(Scope.WORK,),
        body=body,
        body_optional=optional,
        answer=answer,
        status=status,
        headers=(LEASE_HEADER,),
        errors=LEASE if verb != "spawn" else (*LEASE, *SUBMISSION),
    )


COMPLETE = _of_job("complete", "The attempt succeeded.", CompleteBody, optional=True)
FAIL = _of_job("fail", "The attempt failed.", FailBody)
SNOOZE = _of_job("snooze", "Run it again later, at no cost to its budget.", SnoozeBody)
RELEASE = _of_job("release", "Give it back unfinished.", None)
STOP = _of_job("stop", "The worker ended it on request.", StopBody, optional=True)
ACKNOWLEDGE = _of_job("acknowledge", "The worker's answer to a cancellation.", AcknowledgeBody)
PROGRESS = _of_job("progress", "How far the attempt is.", ProgressBody, answer=None, status=204)
CHECKPOINT = _of_job(
    "checkpoint", "What the next attempt should know.", CheckpointBody, answer=None, status=204
)
LOG = _of_job("log", "The job's log lines.", LogBody, answer=None, status=204)
SPAWN = _of_job(
    "spawn", "Submit from inside a running job.", SpawnBody, answer=SubmittedAnswer, status=201
)
HOOK = _of_job(
    "hook", "What became of the job or batch that this one follows.", None, answer=HookAnswer
)
ROUTES = (
    CLAIM,
    ANNOUNCE,
    HEARTBEAT,
    CHECK,
    HOOK,
    SETTLE,
    COMPLETE,
    FAIL,
    SNOOZE,
    RELEASE,
    STOP,
    ACKNOWLEDGE,
    PROGRESS,
    CHECKPOINT,
    LOG,
    SPAWN,
)
