"""The queue of the job model specification: submit, claim, settle, cancel, and what time demands."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from headrace import model, validation, webhooks
from headrace.clock import Clock
from headrace.connect import connect
from headrace.contracts.duration import Duration, seconds
from headrace.contracts.job_model.configuration import RetryConfig, TimeoutConfig
from headrace.contracts.job_model.job import FailureCategory, Job, JobState, state_of, view
from headrace.contracts.job_model.notification import Callbacks, Notifier
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
    tags_of,
)
from headrace.errors import (
    HeadraceError,
    JobNotFound,
    JobTerminal,
    TemporaryError,
)
from headrace.input_checks import guarding
from headrace.manager import Failed, JobManager
from headrace.manager.submission import SUBMISSION_TIMEOUT_SECONDS, acknowledged
from headrace.model import DEFAULT_QUEUE, Category, Lease, Priority, State
from headrace.policy import CancelMode, Policy
from headrace.stores.base import FIND_LIMIT_MAX


@guarding(leaving=("token",))
class Queue:
    """Jobs of every type on one store. A call that raises has changed nothing.

    What the passing of time brings about (a lapsed visibility timeout, the end of a lifetime, an
    execution that takes too long) is carried out by `maintain`, and before that by whoever looks:
    `claim` first takes back what has lapsed, and `get` never shows a job that is past its time.
    """

    def __init__(
        self,
        manager: JobManager,
        *,
        submission_timeout: Duration = SUBMISSION_TIMEOUT_SECONDS,
        callbacks: Callbacks | None = None,
    ) -> None:
        self.manager = manager
        self.submission_timeout = validation.check_seconds(
            seconds(submission_timeout), "submission_timeout"
        )
        self._notifier = Notifier(manager, callbacks or Callbacks())

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
        callback_secrets: Sequence[str] = (),
        callback_networks: Sequence[str] = (),
        dice: random.Random | None = None,
    ) -> Self:
        """Open the store behind the url. What is left out is as the specification says.

        `retry` and `timeout` are what jobs get that do not bring their own; `timeout.execution` is
        also the most that a job may ask for. `retry_on` says whether TIMEOUT and SYSTEM failures are
        retried; TEMPORARY ones always are, PERMANENT and CANCELLED ones never. `callback_secrets` sign
        what `notify` sends; `callback_networks` are those it may send to besides public addresses.
        """
        policy = policy_of(retry, timeout, idempotency_window, payload_bytes_max, retry_on)
        manager = await connect(url, policies=policy, clock=clock, dice=dice)
        callbacks = Callbacks(secrets=callback_secrets, networks=callback_networks)
        return cls(manager, submission_timeout=submission_timeout, callbacks=callbacks)

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
        specs = specs_of(batch, self.policy)
        async with acknowledged(self.submission_timeout):
            submitted = await self.manager.submit_many(specs)
        return tuple(job.id for job in submitted.jobs)

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
        specs = specs_of(batch, self.policy)
        async with acknowledged(self.submission_timeout):
            job_id = await self._in_time(job_id)
            submitted = await self.manager.spawn(job_id, _text(token), specs)
        return tuple(job.id for job in submitted.jobs)

    async def update(
        self,
        job_id: Id,
        *,
        priority: int | UnsetType = UNSET,
        tags: Mapping[str, Any] | Iterable[str] | UnsetType = UNSET,
        correlation_id: str | UnsetType | None = UNSET,
        callback_url: str | UnsetType | None = UNSET,
    ) -> Job:
        """Write the user metadata of a job that has not ended. What is left out stays; None takes away.

        `tags` are all the job has from now on. A job stays at least as urgent as those it depends on, and
        takes its dependents along when it becomes more urgent. Raises JobTerminal.
        """
        changed = await self.manager.update(
            id_text(job_id),
            priority=priority,
            tags=UNSET if tags is UNSET else tags_of(tags),
            correlation_id=correlation_id,
            callback_url=callback_url,
        )
        return self._view(changed.job)

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
        return self._views(
            await self.manager.claim(worker, queues=[DEFAULT_QUEUE], types=types, limit=limit)
        )

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
            retry_after=after,
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

    async def notify(self) -> int:
        """Tell the callback urls of jobs that have ended, as many as are due; how many were tried.

        A request that fails is tried again later, for some 41 hours in all. Waits for slow receivers, 20
        seconds at most. Safe from many hosts at once.
        """
        return await self._notifier.round()

    async def maintain(self) -> None:
        """One round of all of these, and of the retention policy. Safe from many hosts at once."""
        await self.time_out()
        await self.manager.maintain()
        await self.notify()

    # --- inside ----------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return self.manager.clock.now()

    def _view(self, job: model.Job) -> Job:
        return view(job, self._now())

    def _views(self, jobs: Iterable[model.Job]) -> tuple[Job, ...]:
        """Those of the caller: the jobs that carry notifications are nobody's business."""
        return tuple(self._view(job) for job in jobs if job.queue != webhooks.QUEUE)

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
        failure = model.Failure(
            f"the execution took longer than {job.timeout_seconds} seconds", Category.TIMEOUT
        )
        return Failed(job_id=job.id, token=job.token, failure=failure)


def _text(token: object) -> str:
    """What is not text was never a token: it is treated as one that nobody holds."""
    return token if isinstance(token, str) else ""
