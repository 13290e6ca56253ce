"""The queue of the job model specification: submit, claim, settle, cancel, and what time demands."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec

from headrace import model, validation
from headrace.clock import Clock
from headrace.connect import connect
from headrace.contracts.duration import Duration, seconds
from headrace.contracts.job_model.configuration import RetryConfig, TimeoutConfig
from headrace.contracts.job_model.job import FailureCategory, Job, JobState, state_of, view
from headrace.contracts.job_model.preset import RETRIABLE, policy_of
from headrace.contracts.job_model.request import (
    Dependency,
    DependencyType,
    Id,
    JobRequest,
    check_request,
    id_text,
    listed,
    specs_of,
)
from headrace.errors import (
    HeadraceError,
    JobNotFound,
    JobTerminal,
    TemporaryError,
)
from headrace.manager import Failed, JobManager
from headrace.manager.submission import SUBMISSION_TIMEOUT_SECONDS, Submitted, acknowledged
from headrace.model import Category, Lease, Priority, State
from headrace.policy import CancelMode, Policy
from headrace.retry import Custom
from headrace.stores.base import FIND_LIMIT_MAX


class Queue:
    """Jobs of every type on one store. A call that raises has changed nothing.

    What the passing of time brings about (a lapsed visibility timeout, the end of a lifetime, an
    execution that takes too long) is carried out by `maintain`, and before that by whoever looks:
    `claim` first takes back what has lapsed, and `get` never shows a job that is past its time.
    """

    def __init__(
        self, manager: JobManager, *, submission_timeout: Duration = SUBMISSION_TIMEOUT_SECONDS
    ) -> None:
        self.manager = manager
        self.submission_timeout = validation.check_seconds(
            seconds(submission_timeout), "submission_timeout"
        )
        self._custom: dict[str, Custom] = {}  # by job id; code cannot be stored with a job

    @classmethod
    async def open(
        cls,
        url: str,
        clock: Clock | None = None,
        *,
        retry: RetryConfig | None = None,
        timeout: TimeoutConfig | None = None,
        idempotency_window: Duration | None = None,
        payload_bytes_max: int | None = None,
        retry_on: Iterable[FailureCategory | str] = RETRIABLE,
        submission_timeout: Duration = SUBMISSION_TIMEOUT_SECONDS,
        dice: random.Random | None = None,
    ) -> Self:
        """Open the store behind the url. What is left out is as the specification says.

        `retry` and `timeout` are what jobs get that do not bring their own; `timeout.execution` is
        also the most that a job may ask for. `retry_on` says whether TIMEOUT and SYSTEM failures are
        retried; TEMPORARY ones always are, PERMANENT and CANCELLED ones never.
        """
        policy = policy_of(retry, timeout, idempotency_window, payload_bytes_max, retry_on)
        manager = await connect(url, policies=policy, clock=clock, dice=dice)
        return cls(manager, submission_timeout=submission_timeout)

    async def close(self) -> None:
        await self.manager.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def policy(self) -> Policy:
        """The numbers in force."""
        return self.manager.policies.default

    # --- submitting ------------------------------------------------------------------------------

    async def submit(
        self,
        type: str | JobRequest,
        payload: Any = None,
        priority: int = Priority.NORMAL,
        *,
        tags: Mapping[str, Any] | Iterable[str] = {},
        delay: Duration | None = None,
        run_at: datetime | None = None,
        idempotency_key: str | None = None,
        dependencies: Iterable[Dependency | Id] = (),
        retry: RetryConfig | None = None,
        timeout: TimeoutConfig | None = None,
        correlation_id: str | None = None,
        callback_url: str | None = None,
    ) -> str:
        """Store one job; the id it was given, or that of the job that holds the idempotency key."""
        request = type
        if not isinstance(request, JobRequest):
            request = JobRequest(
                type=request,
                payload=payload,
                priority=priority,
                tags=tags,
                delay=delay,
                run_at=run_at,
                idempotency_key=idempotency_key,
                dependencies=dependencies,
                retry=retry,
                timeout=timeout,
                correlation_id=correlation_id,
                callback_url=callback_url,
            )
        (job_id,) = await self.submit_batch([request])
        return job_id

    async def submit_batch(self, jobs: Sequence[JobRequest]) -> tuple[str, ...]:
        """Store all or none; their ids, in order. Jobs may depend on each other by position."""
        batch = listed(jobs, "jobs")
        specs = specs_of(batch)
        async with acknowledged(self.submission_timeout):
            submitted = await self.manager.submit_many(specs)
        return self._submitted(batch, submitted)

    async def spawn(
        self, job_id: Id, token: str, jobs: Sequence[JobRequest], join: JobRequest | None = None
    ) -> tuple[str, ...]:
        """Fan out from a running job, all or none, only while its lease holds; the ids, in order.

        Jobs that wait for the spawner by FAN_IN wait for what it spawns, too. `join`: one more job,
        last in the answer, that waits for all the others by FAN_IN. Refused when `complete` is.
        """
        batch = listed(jobs, "jobs")
        if join is not None:
            check_request(join)
            needs = [Dependency(place, DependencyType.FAN_IN) for place in range(len(batch))]
            batch.append(
                msgspec.structs.replace(
                    join, dependencies=[*listed(join.dependencies, "dependencies"), *needs]
                )
            )
        specs = specs_of(batch)
        async with acknowledged(self.submission_timeout):
            job_id = await self._in_time(job_id)
            submitted = await self.manager.spawn(job_id, _text(token), specs)
        return self._submitted(batch, submitted)

    def _submitted(self, requests: Sequence[JobRequest], submitted: Submitted) -> tuple[str, ...]:
        for request, job, created in zip(requests, submitted.jobs, submitted.created, strict=True):
            if created and (custom := request.custom_backoff) is not None:
                self._custom[job.id] = custom
        return tuple(job.id for job in submitted.jobs)

    # --- working ---------------------------------------------------------------------------------

    async def claim(self, worker: str, types: Iterable[str] | None = None) -> Job | None:
        """A worker accepts the first job in order of priority and submission, or None."""
        claimed = await self.claim_batch(worker, 1, types)
        return claimed[0] if claimed else None

    async def claim_batch(
        self, worker: str, limit: int, types: Iterable[str] | None = None
    ) -> tuple[Job, ...]:
        """Up to `limit` jobs in one step. No two workers get the same job."""
        await self.reclaim()
        await self.end_lifetimes()
        return self._views(await self.manager.claim(worker, types=types, limit=limit))

    async def heartbeat(self, job_id: Id, token: str) -> Job:
        """Stay invisible for another visibility timeout; `cancel_requested` tells to stop.

        Refused once the execution timeout or the lifetime has passed, as `complete` is.
        """
        job_id = await self._in_time(job_id)
        job = await self.manager.get(job_id)
        beat = await self.manager.heartbeat([Lease(job.id, _text(token), job.lease_seconds)])
        if job_id in beat.refused:
            raise beat.refused[job_id]
        extended = beat.extended[job_id]
        return self._view(
            msgspec.structs.replace(job, state=extended.state, lease_until=extended.lease_until)
        )

    async def checkpoint(self, job_id: Id, token: str, value: Any) -> None:
        """Keep what the next attempt should know. Refused when `complete` is."""
        job_id = await self._in_time(job_id)
        await self.manager.checkpoint(job_id, _text(token), value)

    async def complete(self, job_id: Id, token: str, result: Any = None) -> Job:
        """The handler succeeded. Refused once the execution timeout or the lifetime has passed."""
        job_id = await self._in_time(job_id)
        return self._view((await self.manager.complete(job_id, _text(token), result)).job)

    async def fail(
        self,
        job_id: Id,
        token: str,
        error: BaseException | FailureCategory | str,
        category: FailureCategory | str | None = None,
    ) -> Job:
        """The handler failed. Its typed error, or the category, decides what happens next.

        An error without a type is TEMPORARY. CANCELLED is a worker's answer to a cancellation.
        Refused once the execution timeout or the lifetime has passed.
        """
        if isinstance(error, FailureCategory):
            category, error = error, f"the handler reported {error}"
        elif category is not None:
            category = FailureCategory.named(category)
        job_id = await self._in_time(job_id)
        if category is FailureCategory.CANCELLED:
            return self._view((await self.manager.stop(job_id, _text(token), str(error))).job)
        after = error.retry_after if isinstance(error, TemporaryError) else None
        changed = await self.manager.fail(
            job_id,
            _text(token),
            error,
            category=None if category is None else category.stored,
            retry_after=await self._custom_delay(job_id) if after is None else after,
        )
        return self._view(changed.job)

    async def cancel(self, job_id: Id, force: bool = False) -> Job:
        """A job that waits is cancelled; one that runs is asked to stop or, with force, cut off.

        Cancelling twice changes nothing. Raises JobTerminal for a job that ended otherwise.
        """
        job_id = id_text(job_id)
        mode = CancelMode.IMMEDIATE if force else None
        report = await self.manager.cancel([job_id], mode=mode)
        if report.not_found:
            raise JobNotFound(job_id)
        (job,) = (*report.jobs, *report.already, *report.ended)
        if report.ended and state_of(job, self._now()) is not JobState.CANCELLED:
            raise JobTerminal(
                f"job {job.id} is {job.state} already; it was not cancelled", job_id=job.id
            )
        return self._view(job)

    # --- reading ---------------------------------------------------------------------------------

    async def get(self, job_id: Id) -> Job:
        """The job as it is now. Raises JobNotFound."""
        job_id = id_text(job_id)
        job = await self.manager.get(job_id)
        if self._is_past_its_time(job):
            await self.time_out()
            await self.reclaim()
            await self.end_lifetimes()
            job = await self.manager.get(job_id)
        return self._view(job)

    async def dependencies(self, job_id: Id) -> tuple[Dependency, ...]:
        """What the job waits for, or waited for, in order."""
        job = await self.manager.get(id_text(job_id))
        return tuple(
            Dependency(edge.parent_id, DependencyType[edge.kind.name])
            for edge in await self.manager.store.edges(child_id=job.id)
        )

    # --- what time demands -----------------------------------------------------------------------

    async def reclaim(self) -> tuple[Job, ...]:
        """Visibility timeout exceeded: taken back and rescheduled, or dead when attempts are spent."""
        return self._views((await self.manager.reap()).jobs)

    async def time_out(self) -> tuple[Job, ...]:
        """Execution timeout exceeded: failed with category TIMEOUT, retried as configured."""
        late: list[Failed] = []
        cursor: str | None = None
        while True:
            page = await self.manager.find(
                states=[State.RUNNING], limit=FIND_LIMIT_MAX, cursor=cursor
            )
            late += [self._timed_out(job) for job in page.jobs if self._is_too_slow(job)]
            cursor = page.cursor
            if cursor is None:
                break
        outcomes = (await self.manager.settle(late)).outcomes
        # Refused: it ended, or its lease lapsed, in the meantime.
        return self._views(job for job in outcomes if not isinstance(job, HeadraceError))

    async def end_lifetimes(self) -> tuple[Job, ...]:
        """Total lifetime exceeded: dead, whatever it was doing."""
        return self._views((await self.manager.end_lifetimes()).jobs)

    async def sweep(self) -> int:
        """Release or end dependents that a crash left behind; how many."""
        return await self.manager.sweep()

    async def maintain(self) -> None:
        """One round of all of these, and of the retention policy. Safe from many hosts at once."""
        await self.time_out()
        await self.manager.maintain()

    # --- inside ----------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return self.manager.clock.now()

    def _view(self, job: model.Job) -> Job:
        if job.is_terminal:
            self._custom.pop(job.id, None)
        return view(job, self._now())

    def _views(self, jobs: Iterable[model.Job]) -> tuple[Job, ...]:
        return tuple(self._view(job) for job in jobs)

    async def _in_time(self, job_id: Id) -> str:
        """Carry out what time demands of the job before its worker's report counts; its id.

        A lapsed lease is left to the report itself: it is refused as such.
        """
        job = await self.manager.get(id_text(job_id))
        if self._is_too_slow(job):
            await self.manager.settle([self._timed_out(job)])
        if not job.is_terminal and self._is_too_old(job):
            await self.end_lifetimes()
        return job.id

    async def _custom_delay(self, job_id: str) -> float | None:
        custom = self._custom.get(job_id)
        if custom is None:
            return None
        return custom.delay((await self.manager.get(job_id)).failures + 1)

    def _is_past_its_time(self, job: model.Job) -> bool:
        now = self._now()
        return not job.is_terminal and (
            self._is_too_old(job)
            or (job.lease_until is not None and job.lease_until <= now)
            or self._is_too_slow(job)
        )

    def _is_too_old(self, job: model.Job) -> bool:
        return job.expires_at is not None and job.expires_at <= self._now()

    def _is_too_slow(self, job: model.Job) -> bool:
        if job.state is not State.RUNNING or job.timeout_seconds is None:
            return False
        assert job.assigned_at is not None
        return job.assigned_at + timedelta(seconds=job.timeout_seconds) <= self._now()

    def _timed_out(self, job: model.Job) -> Failed:
        custom = self._custom.get(job.id)
        failure = model.Failure(
            f"the execution took longer than {job.timeout_seconds} seconds", Category.TIMEOUT
        )
        return Failed(
            job_id=job.id,
            token=job.token,
            failure=failure,
            retry_after=None if custom is None else custom.delay(job.failures + 1),
        )


def _text(token: object) -> str:
    """What is not text was never a token: it is treated as one that nobody holds."""
    return token if isinstance(token, str) else ""
