"""Backend: the methods of the conformance specification, on any store."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Self
from weakref import WeakSet

from headrace import validation
from headrace.clock import Clock, ManualClock, ShiftedClock
from headrace.connect import connect
from headrace.contracts.conformance import projection
from headrace.contracts.conformance.errors import (
    InvalidRequest,
    JobNotFound,
    translate,
    translated,
)
from headrace.contracts.conformance.stream import EventStream, positions_taken
from headrace.contracts.conformance.values import (
    JobMessage,
    JobRecord,
    JobStatus,
    Leased,
    QueueCtx,
)
from headrace.contracts.presets import CONFORMANCE
from headrace.input_checks import guarding
from headrace.manager import JobManager
from headrace.model import Category, Lease
from headrace.policy import Policies
from headrace.spec import JobSpec
from headrace.stores.base import Fence


@guarding(translated)
class Backend:
    """One queue backend, seen by one tenant per call.

    Every method is atomic, and one that raises has changed nothing. `await Backend.open(url)` opens a
    store; `Backend(manager)` sits on a manager that is open already, whose policies should be the
    `CONFORMANCE` preset.
    """

    def __init__(self, manager: JobManager) -> None:
        self._manager = manager
        self._tenants: dict[str, JobManager] = {}
        self._streams: WeakSet[EventStream] = WeakSet()
        self._worker = f"backend-{uuid.uuid4()}"

    @classmethod
    async def open(cls, url: str, clock: Clock | None = None) -> Self:
        """A backend on the store behind the url.

        Without a clock, time is the store's, and `advance_time_to` can move it ahead for this backend.
        """
        with translated():
            manager = await connect(url, policies=CONFORMANCE, clock=clock)
        if not isinstance(manager.clock, ManualClock | ShiftedClock):
            manager = JobManager(
                manager.store, clock=ShiftedClock(manager.clock), policies=Policies(CONFORMANCE)
            )
        return cls(manager)

    async def close(self) -> None:
        """End the streams and give the store back. Closing twice is fine."""
        for stream in list(self._streams):
            await stream.aclose()
        await self._manager.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # --- producing -------------------------------------------------------------------------------

    async def enqueue(self, ctx: QueueCtx, message: JobMessage) -> str:
        """Store the job and return its id.

        While a job with the same idempotency key, tenant, queue and job type has not ended, its id is
        returned and nothing is stored.
        """
        if not isinstance(message, JobMessage):
            raise InvalidRequest(
                f"{validation.told(message)} is not a JobMessage; nothing was enqueued"
            )
        manager = self._of(ctx)
        await positions_taken()
        with translated():
            spec = JobSpec(
                type=message.job_type,
                payload=message.payload,
                queue=message.queue,
                priority=projection.priority_of(message.priority),
                key=message.idempotency_key,
                run_at=message.run_at,
                max_attempts=_attempts(message.max_retries),
            )
            return (await manager.submit(spec)).job.id

    # --- consuming -------------------------------------------------------------------------------

    async def dequeue(self, ctx: QueueCtx, queues: Sequence[str]) -> Leased | None:
        """Lease the most urgent, then oldest, eligible job of these queues. None: there is none."""
        manager = self._of(ctx)
        await positions_taken()
        with translated():
            names = validation.check_names(queues, "queue")
            if not names:
                raise InvalidRequest("name at least one queue; nothing was dequeued")
            jobs = await manager.claim(self._worker, queues=names)
        return projection.leased_of(jobs[0]) if jobs else None

    async def ack_complete(
        self, ctx: QueueCtx, job_id: str, lease_token: str, result: Any = None
    ) -> None:
        """The job succeeded: Completed."""
        manager, job, token = self._of(ctx), _job_id(job_id), _token(lease_token)
        await positions_taken()
        with translated():
            await manager.complete(job, token, result)

    async def ack_fail(
        self,
        ctx: QueueCtx,
        job_id: str,
        lease_token: str,
        error: str | BaseException,
        retry_at: datetime | None = None,
    ) -> None:
        """The job failed: Retrying at `retry_at`, or Failed without one or once max_retries is spent."""
        manager, job, token = self._of(ctx), _job_id(job_id), _token(lease_token)
        if not isinstance(error, str | BaseException):
            raise InvalidRequest(
                f"the error is {validation.told(error)}, not text; nothing was changed"
            )
        await positions_taken()
        with translated():
            when = None if retry_at is None else validation.check_time(retry_at, "retry_at")
            category = Category.PERMANENT if when is None else Category.TEMPORARY
            await manager.fail(job, token, error, category=category, retry_at=when)

    async def heartbeat_extend(
        self, ctx: QueueCtx, job_id: str, lease_token: str, duration: timedelta | float
    ) -> datetime:
        """The lease lasts `duration` from now, or as long as it already did if that is longer.

        Returns its new end.
        """
        manager, job, token = self._of(ctx), _job_id(job_id), _token(lease_token)
        with translated():
            seconds = _seconds(duration)
            until = (await manager.get(job)).lease_until
            if until is not None:
                seconds = max(seconds, (until - manager.clock.now()).total_seconds())
            beats = await manager.heartbeat([Lease(job, token, seconds)])
            if job in beats.refused:
                raise translate(beats.refused[job])
        extended = beats.extended[job].lease_until
        assert extended is not None
        return extended

    # --- cancelling and reading ------------------------------------------------------------------

    async def cancel(self, ctx: QueueCtx, job_id: str) -> bool:
        """Cancel now, whoever holds a lease. False: the job had ended before and is left alone."""
        manager, job = self._of(ctx), _job_id(job_id)
        await positions_taken()
        with translated():
            report = await manager.cancel([job])
        if report.not_found:
            raise JobNotFound(f"job {job} was not found; nothing was changed")
        return bool(report.jobs)

    async def get_status(self, ctx: QueueCtx, job_id: str) -> JobStatus:
        manager, job = self._of(ctx), _job_id(job_id)
        with translated():
            return projection.status_of(await manager.get(job))

    async def get_record(self, ctx: QueueCtx, job_id: str) -> JobRecord:
        manager, job = self._of(ctx), _job_id(job_id)
        with translated():
            return projection.record_of(await manager.get(job))

    def event_stream(self, ctx: QueueCtx) -> EventStream:
        """The tenant's events from this call on, live and in order. Not awaited (but it may be)."""
        stream = EventStream(self._of(ctx))
        self._streams.add(stream)
        return stream

    # --- test helpers ----------------------------------------------------------------------------

    async def force_lease_expiry(self, job_id: str) -> None:
        """The job's lease, of whatever tenant, ends now. Nobody is told: that is the reaper's work."""
        job_id = _job_id(job_id)
        with translated():
            job = await self._manager.get(job_id)
            if job.token is None:
                raise InvalidRequest(f"job {job_id} has no lease to expire; nothing was changed")
            fence = Fence(job_id, job.token)
            await self._manager.store.extend({fence: 0.0}, self._manager.clock.now())

    async def run_reaper_tick(self) -> None:
        """Take back every lease that has lapsed, of all tenants."""
        await positions_taken()
        with translated():
            await self._manager.reap()

    async def advance_time_to(self, target_time: datetime) -> None:
        """This backend's time is now `target_time`; a time that is past already changes nothing."""
        clock = self._manager.clock
        with translated():
            moment = validation.check_time(target_time, "target_time")
        match clock:
            case ShiftedClock():
                clock.advance_to(moment)
            case ManualClock():
                clock.set(max(moment, clock.now()))
            case _:
                raise InvalidRequest("this backend's clock cannot be moved; time is as it was")

    # --- inside ----------------------------------------------------------------------------------

    def _of(self, ctx: QueueCtx) -> JobManager:
        """The manager of the caller's tenant: the only one that calls with a ctx ever reach."""
        if not isinstance(ctx, QueueCtx):
            raise InvalidRequest(
                f"{validation.told(ctx)} is not a QueueCtx; nothing was read or changed"
            )
        with translated():
            # Checked here, because to a manager no tenant means every tenant.
            tenant = validation.check_name(ctx.tenant_id, "tenant id")
            if tenant not in self._tenants:
                self._tenants[tenant] = self._manager.scoped(tenant)
        return self._tenants[tenant]


def _job_id(value: object) -> str:
    with translated():
        return validation.check_id(str(value) if isinstance(value, uuid.UUID) else value)


def _token(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(
            f"the lease token is {validation.told(value)}, not text; nothing was changed"
        )
    return str(value)


def _attempts(max_retries: int | None) -> int | None:
    if max_retries is None:
        return None
    return validation.check_limit(max_retries, "max_retries", minimum=0) + 1


def _seconds(duration: timedelta | float) -> float:
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return validation.check_seconds(seconds, "the duration")
