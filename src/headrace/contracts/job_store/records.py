"""What JobStore and JobManager share: the jobs, read and changed through Headrace's own manager.

Methods here raise; the two facades turn that into results.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace import codec, model, validation
from headrace.contracts.job_store import projection
from headrace.contracts.job_store.claims import Claims
from headrace.contracts.job_store.entity import Job, JobStatistics, JobStatus
from headrace.contracts.job_store.projection import Draft, DraftNote, draft_of
from headrace.contracts.job_store.result import ErrorCode, Refused
from headrace.errors import InvalidInput, JobNotFound
from headrace.lifecycle import Command
from headrace.manager import JobManager
from headrace.model import State
from headrace.policy import CancelMode
from headrace.spec import JobSpec

PAGE_JOBS = 1000


class Records:
    """Jobs by this contract's rules, over one Headrace manager."""

    def __init__(self, manager: JobManager, claims: Claims | None = None) -> None:
        self.manager = manager
        self.claims = claims or Claims()
        self.own_worker = str(uuid.uuid4())
        """Who has a job that is put in progress without a word on who works on it."""

    def now(self) -> datetime:
        return self.manager.clock.now()

    def show(self, job: model.Job) -> Job:
        return projection.job_of(job, self.now())

    def status(self, job: model.Job) -> JobStatus:
        return projection.status_of(job, self.now())

    # --- creating and reading --------------------------------------------------------------------

    async def create(self, job: Job) -> Job:
        """Store it, or return the job that has its id already."""
        spec = JobSpec(
            id=check_id(job.id),
            type=job.name,
            payload=job.payload,
            run_at=job.retry_delay_until,
            max_attempts=msgspec.UNSET
            if job.max_retries is None
            else validation.check_limit(job.max_retries, "max_retries", minimum=0) + 1,
        )
        return self.show((await self.manager.submit(spec)).job)

    async def read(self, job_id: object) -> model.Job:
        return await self.manager.get(check_id(job_id))

    async def find(
        self, states: tuple[State, ...], wanted: Callable[[model.Job], bool], limit: int
    ) -> list[Job]:
        """Up to `limit` jobs, the oldest first. Pages until it has them, so it costs what it skips."""
        limit = validation.check_limit(limit, "limit", minimum=0)
        found: list[Job] = []
        cursor: str | None = None
        while len(found) < limit:
            page = await self.manager.find(states=states, limit=PAGE_JOBS, cursor=cursor)
            found += [self.show(job) for job in page.jobs if wanted(job)]
            cursor = page.cursor
            if cursor is None:
                break
        return found[:limit]

    async def statistics(self) -> JobStatistics:
        return projection.statistics_of((await self.manager.stats()).tallies)

    # --- changing --------------------------------------------------------------------------------

    async def claim(
        self, worker_id: object, count: int, *, lease_seconds: float | None = None
    ) -> list[Job]:
        worker = check_worker(worker_id)
        count = validation.check_limit(count, "max_claim_count", minimum=0)
        if count == 0:
            return []
        jobs = await self.manager.claim(worker, limit=count, lease_seconds=lease_seconds)
        for job in jobs:
            self.claims.remember(job)
        return [self.show(job) for job in jobs]

    async def fenced(self, job_id: object, *, shown: str | None = None) -> tuple[model.Job, str]:
        """The job and the token to write with; raises unless the caller's claim holds."""
        job = await self.read(job_id)
        return job, self.claims.fence(job, self.now(), shown=shown)

    async def change(self, job_id: object, decide: Callable[[model.Job], Command]) -> model.Job:
        """Carry out a command that the manager has no verb for."""
        return self.settled((await self.manager.change(check_id(job_id), decide)).job)

    def settled(self, job: model.Job) -> model.Job:
        """Keep the memory of claims in step with a change that was made."""
        if job.is_leased:
            self.claims.remember(job)
        elif job.is_terminal:
            self.claims.forget(job.id)
        return job

    async def cancel(self, job_id: object) -> model.Job:
        """Cancel a job that no worker has."""
        text = check_id(job_id)
        report = await self.manager.cancel([text], mode=CancelMode.NOT_STARTED)
        if report.not_found:
            raise JobNotFound(text)
        if report.refused or report.already:
            raise Refused(
                ErrorCode.JOB_ALREADY_STARTED, f"job {text} has started; nothing was changed"
            )
        for job in report.ended:
            self.claims.fence(job, self.now())  # raises how it ended
        return report.jobs[0]

    async def note_result(self, job: model.Job, token: str, result: Any) -> model.Job:
        """Write down a result that is not final yet."""
        text = None if result is None else codec.encode(result, what="result").decode()
        return await self._note(job, token, replace(draft_of(job), result_json=text))

    async def note_exception(self, job: model.Job, token: str, exception: str | None) -> model.Job:
        """Write down an exception that has not ended the attempt yet."""
        return await self._note(job, token, replace(draft_of(job), exception=exception))

    async def _note(self, job: model.Job, token: str, draft: Draft) -> model.Job:
        await self.manager.checkpoint(job.id, token, msgspec.to_builtins(DraftNote(draft)))
        return await self.read(job.id)


def check_id(value: object) -> str:
    return validation.check_id(projection.text_of(value))


def check_worker(value: object) -> str:
    return validation.check_name(projection.text_of(value), "worker id")


def check_job(value: object) -> Job:
    if not isinstance(value, Job):
        raise Refused(
            ErrorCode.INVALID_JOB, f"{validation.told(value)} is not a Job; nothing was changed"
        )
    return value


def check_status(value: object) -> JobStatus:
    try:
        return JobStatus(value)  # type: ignore[arg-type]  # whatever it is, it is checked here
    except Exception:  # noqa: BLE001 - also one that cannot be compared
        raise Refused(
            ErrorCode.INVALID_STATUS,
            f"{validation.told(value)} is not a status; nothing was changed",
        ) from None


def check_exception(value: object) -> str:
    """What to record: the text itself, or that of an exception."""
    if isinstance(value, BaseException):
        return str(value) or type(value).__name__
    if not isinstance(value, str):
        raise InvalidInput(
            f"the exception is {validation.told(value)}, not text; nothing was changed"
        )
    return value


def seconds_of(value: timedelta | float) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else value
