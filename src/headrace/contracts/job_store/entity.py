"""The entities of the specification: a job, its status, and how many there are of each."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

Id = uuid.UUID | str
"""Jobs and workers are named by UUIDs; any other text will do."""


class JobStatus(enum.StrEnum):
    """Where a job stands."""

    QUEUED = "Queued"
    SCHEDULED = "Scheduled"
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"


@dataclass
class Job:
    """A job as its caller holds it: plain and mutable. Nothing is stored until a method is given it."""

    id: Id = field(default_factory=uuid.uuid4)
    name: str = "job"
    payload: Any = field(default=None, repr=False)
    status: JobStatus = JobStatus.QUEUED
    retry_count: int = 0
    """Retries that were scheduled so far."""
    max_retries: int | None = None
    """None: the configuration's default."""
    retry_delay_until: datetime | None = None
    """Scheduled: not before this."""
    worker_id: Id | None = None
    """InProgress: who has it."""
    result: Any = field(default=None, repr=False)
    exception: str | None = field(default=None, repr=False)
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    last_updated_at: datetime | None = None
    claim_token: str | None = field(default=None, repr=False, compare=False)
    """The claim that this copy was read under; an update with a copy of an older claim is refused."""

    # The four changes that the specification's own job manager makes to its copy before UpdateJob.

    def update_status(self, status: JobStatus) -> None:
        self.status = status

    def increment_retry_count(self) -> None:
        self.retry_count += 1

    def set_retry_time(self, retry_time: datetime) -> None:
        self.retry_delay_until = retry_time

    def set_exception(self, exception: str) -> None:
        """Failed for good, and why."""
        self.exception = exception
        self.status = JobStatus.FAILED


class JobStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs are in each status."""

    queued_count: int = 0
    in_progress_count: int = 0
    completed_count: int = 0
    failed_count: int = 0
    scheduled_count: int = 0
    canceled_count: int = 0
