"""The contract's values, and how they are read off the jobs that Headrace stores."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace import codec, model
from headrace.input_checks import looked_into_later
from headrace.manager import Stats
from headrace.model import State
from headrace.redaction import Redacted


class JobStatus(enum.StrEnum):
    """The specification's states."""

    INITIAL_PENDING = "INITIAL_PENDING"
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    FAILED_RETRY = "FAILED_RETRY"
    UNKNOWN_RETRY = "UNKNOWN_RETRY"
    COMPLETED = "COMPLETED"
    STOPPED = "STOPPED"
    UNSCHEDULED = "UNSCHEDULED"
    UNKNOWN_STOPPED = "UNKNOWN_STOPPED"


ELIGIBLE = frozenset({JobStatus.INITIAL_PENDING, JobStatus.FAILED_RETRY, JobStatus.UNKNOWN_RETRY})
"""What DequeueJobs assigns."""

FINAL = frozenset(
    {
        JobStatus.COMPLETED,
        JobStatus.UNSCHEDULED,
        JobStatus.STOPPED,
        JobStatus.UNKNOWN_STOPPED,
    }
)
"""What DeleteJobs deletes."""

STATUS_OF: Mapping[State, JobStatus] = {
    State.BLOCKED: JobStatus.INITIAL_PENDING,
    State.PENDING: JobStatus.INITIAL_PENDING,
    State.RUNNING: JobStatus.RUNNING,
    State.CANCELLING: JobStatus.CANCELLING,
    State.RETRYING: JobStatus.FAILED_RETRY,
    State.LOST: JobStatus.UNKNOWN_RETRY,
    State.COMPLETED: JobStatus.COMPLETED,
    State.FAILED: JobStatus.STOPPED,
    State.DEAD: JobStatus.STOPPED,
    State.CANCELLED: JobStatus.STOPPED,
    State.ABANDONED: JobStatus.UNKNOWN_STOPPED,
}
"""`status_of` adds the one case that the state alone does not tell: cancelled before it ever ran."""


@looked_into_later
class Job(Redacted, frozen=True):
    """One job. The submitter gives `id`, and `job_type`, `payload`, `tags` and `created_at` as needed.

    Everything else is the backend's to write. Times are aware. Text that is not set is empty, a time
    that is not set is None.
    """

    id: str
    status: JobStatus = JobStatus.INITIAL_PENDING
    job_type: str = "job"
    payload: Any = None
    """Bytes, or a JSON value; comes back as it was given."""
    tags: Sequence[str] = ()
    """Always a list, in the order given."""
    created_at: datetime | None = None
    """None in a new job: the time of its submission."""
    started_at: datetime | None = None
    finalized_at: datetime | None = None
    assignee_id: str = ""
    """The last worker, never cleared: whether it is assigned now is told by the status."""
    assigned_at: datetime | None = None
    retry_count: int = 0
    last_retry_at: datetime | None = None
    result: Any = None
    """Bytes; b"" and None are two different results."""
    error_message: str = ""

    def __post_init__(self) -> None:
        tags: Any = self.tags
        if isinstance(tags, set | frozenset):
            tags = sorted(tags)
        if tags is None or isinstance(tags, tuple | list):
            msgspec.structs.force_setattr(self, "tags", list(tags or ()))

    @property
    def job_definition(self) -> Any:
        """The payload, by its other name."""
        return self.payload


class JobStats(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs match, by status. CANCELLING counts only in the total."""

    total_jobs: int = 0
    pending_jobs: int = 0
    """INITIAL_PENDING."""
    running_jobs: int = 0
    completed_jobs: int = 0
    stopped_jobs: int = 0
    """STOPPED, UNSCHEDULED and UNKNOWN_STOPPED: the final statuses other than COMPLETED."""
    failed_jobs: int = 0
    """FAILED_RETRY and UNKNOWN_RETRY."""
    total_retries: int = 0


class Kept(Redacted, frozen=True, tag_field="kept_for", tag="backend_api", omit_defaults=True):
    """The submitter's payload with what a stored job has no place for; stored where there is such."""

    payload: msgspec.Raw
    """As `codec` writes it."""
    tags: tuple[str, ...] = ()
    """Where their order, or a repeat, is not what the store keeps."""
    created_at: datetime | None = None
    """The submitter's; the store's own is the time of submission."""


_kept_decoder = msgspec.json.Decoder(Kept)
_KEPT_MARK = b'"kept_for"'


def reads_as_kept(encoded: bytes) -> bool:
    """Whether a payload that is stored as it is would be taken for a `Kept`."""
    return _KEPT_MARK in encoded


def status_of(job: model.Job) -> JobStatus:
    if job.state is State.CANCELLED and job.attempt == 0:
        return JobStatus.UNSCHEDULED
    return STATUS_OF[job.state]


def job_of(job: model.Job) -> Job:
    """The stored job in the contract's words."""
    kept = _kept(job)
    return Job(
        id=job.id,
        status=status_of(job),
        job_type=job.type,
        payload=codec.decode(bytes(kept.payload)),
        tags=kept.tags or job.tags,
        created_at=kept.created_at or job.created_at,
        started_at=job.started_at,
        finalized_at=job.finalized_at,
        assignee_id=job.assignee or "",
        assigned_at=job.assigned_at,
        retry_count=job.failures,
        last_retry_at=job.last_failed_at,
        result=job.result,
        error_message="" if job.failure is None else job.failure.message,
    )


def stats_of(stats: Stats) -> JobStats:
    by_status = dict.fromkeys(JobStatus, 0)
    for state, jobs in stats.states.items():
        by_status[STATUS_OF[state]] += jobs  # UNSCHEDULED is counted with STOPPED, as it is below
    return JobStats(
        total_jobs=stats.total,
        pending_jobs=by_status[JobStatus.INITIAL_PENDING],
        running_jobs=by_status[JobStatus.RUNNING],
        completed_jobs=by_status[JobStatus.COMPLETED],
        stopped_jobs=by_status[JobStatus.STOPPED] + by_status[JobStatus.UNKNOWN_STOPPED],
        failed_jobs=by_status[JobStatus.FAILED_RETRY] + by_status[JobStatus.UNKNOWN_RETRY],
        total_retries=stats.failures,
    )


def _kept(job: model.Job) -> Kept:
    if not reads_as_kept(job.payload_json):
        return Kept(payload=msgspec.Raw(job.payload_json))
    try:
        return _kept_decoder.decode(job.payload_json)
    except msgspec.DecodeError:
        return Kept(payload=msgspec.Raw(job.payload_json))
