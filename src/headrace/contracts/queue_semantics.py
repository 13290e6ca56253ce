"""The queue semantics specification: enqueue, claim, ack, nack and heartbeat under a fenced lease.

    queue = await Queue.open("sqlite:///jobs.db")
    await queue.enqueue("welcome-17", {"user": 17}, queue="mail")
    job = await queue.claim("worker-1", queue="mail")
    await queue.ack(job.id, job.lease_token)

A lapsed lease needs no reaper: the next claim, of whatever queue, takes it back first.
"""

from __future__ import annotations

import contextlib
import enum
import random
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from headrace import validation
from headrace.clock import Clock
from headrace.connect import connect
from headrace.contracts import vocabulary
from headrace.contracts.duration import Duration, seconds
from headrace.contracts.presets import QUEUE_SEMANTICS
from headrace.errors import DuplicateJob, InvalidInput, JobNotFound, Refusal
from headrace.input_checks import guarding
from headrace.manager import JobManager
from headrace.model import CLAIMABLE, DEFAULT_QUEUE, Category, Lease, Priority, new_id
from headrace.model import Job as StoredJob
from headrace.policy import Policy
from headrace.redaction import Redacted
from headrace.retry import FullJitter
from headrace.spec import JobSpec

TYPE = "job"
"""The specification has no job types; every job is stored under this one."""


class JobState(enum.StrEnum):
    """A job is always in exactly one of these."""

    READY = "Ready"
    """Available to be claimed (from `retry_at` on, where that is set)."""
    IN_FLIGHT = "InFlight"
    """Leased by a worker; also while the lease has lapsed and nobody has claimed since."""
    FAILED = "Failed"
    """Retries are exhausted; it will not be processed again."""
    SUCCEEDED = "Succeeded"
    """Completed; it will not be processed again."""


class StaleLease(Refusal):
    """The token does not hold the job's present lease: wrong, lapsed, or the job is not in flight.

    The job is as it was. The specification calls this ErrStaleLease.
    """

    code = "STALE_LEASE"


class Job(Redacted, frozen=True):
    """One job in the specification's words.

    To enqueue, the first four fields are enough; `max_retries` and `execution_timeout` are the queue's
    where they are left out. All other fields are history, and a new job has none.
    """

    id: str
    payload: Any = None
    queue: str = DEFAULT_QUEUE
    priority: int = Priority.NORMAL
    state: JobState = JobState.READY
    lease_token: str | None = None
    """Set while in flight, and only then."""
    lease_version: int = 0
    """Counts claims; each lease has a greater one than all before it."""
    lease_expires_at: datetime | None = None
    worker: str | None = None
    """Who holds the lease."""
    retry_count: int = 0
    """How often it went back to Ready, after a nack or a lease timeout; at most `max_retries`."""
    max_retries: int | None = None
    retry_at: datetime | None = None
    """After a nack: not claimable before."""
    error: str | None = None
    """What went wrong last."""
    execution_timeout: Duration | None = None
    """Seconds that the handler may run, however often the lease is extended meanwhile."""
    enqueued_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def status(self) -> JobState:
        """The specification says both state and status."""
        return self.state


_GIVEN = frozenset({"id", "payload", "queue", "priority", "max_retries", "execution_timeout"})
"""What a producer may say of a job."""


@guarding(leaving=("token",))
class Queue:
    """Many named queues on one store. A call that raises has changed nothing."""

    def __init__(self, manager: JobManager) -> None:
        self.manager = manager

    @classmethod
    async def open(
        cls,
        url: str,
        clock: Clock | None = None,
        *,
        lease_ttl: Duration | None = None,
        max_retries: int | None = None,
        base_delay: Duration | None = None,
        max_delay: Duration | None = None,
        execution_timeout: Duration | None = None,
        dice: random.Random | None = None,
    ) -> Self:
        """Open the store behind the url. What is left out is as the specification says."""
        policy = _policy(lease_ttl, max_retries, base_delay, max_delay, execution_timeout)
        return cls(await connect(url, policies=policy, clock=clock, dice=dice))

    async def close(self) -> None:
        await self.manager.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def policy(self) -> Policy:
        """The numbers in force: lease, attempts, backoff, execution timeout."""
        return self.manager.policies.default

    @property
    def heartbeat_interval(self) -> float:
        """Seconds between two heartbeats: a third of the lease."""
        assert self.policy.lease_seconds is not None
        return self.policy.lease_seconds / 3

    # --- the producer ----------------------------------------------------------------------------

    async def enqueue(
        self,
        job: Job | str | UnsetType = UNSET,
        payload: Any = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = Priority.NORMAL,
        *,
        id: str | UnsetType = UNSET,
    ) -> Job:
        """Store a new job as Ready: a `Job`, or an id and the rest. Without an id it gets a UUID.

        Raises DuplicateJob when the id is stored already, whatever became of that job, and
        InvalidInput for a `Job` that says more than a new job can: a state, a lease, an error.
        """
        if not isinstance(job, Job):
            name = id if job is UNSET else job
            name = new_id() if name is UNSET else validation.check_id(name)
            job = Job(name, payload, queue, priority)
        elif id is not UNSET:
            raise InvalidInput(f"the job brings its own id; {validation.UNCHANGED}")
        return _view((await self.manager.submit(_spec(job))).job)

    # --- the worker ------------------------------------------------------------------------------

    async def claim(self, worker: str, queue: str | Iterable[str] | None = None) -> Job | None:
        """Lease the first claimable job of the queue (None: of any) to this worker, or None.

        Leases that have lapsed are taken back first. Atomic: no two workers get the same job.
        """
        queues = [queue] if isinstance(queue, str) else queue
        await self.manager.reap()
        claimed = await self.manager.claim(
            worker, queues=queues, lease_seconds=self.policy.lease_seconds
        )
        return _view(claimed[0]) if claimed else None

    async def ack(self, job_id: str, token: str) -> Job:
        """The handler succeeded: the job is Succeeded for good. Raises StaleLease, JobNotFound."""
        with _fence():
            return _view((await self.manager.complete(job_id, _text(token))).job)

    async def nack(self, job_id: str, token: str, error: BaseException | str = "nacked") -> Job:
        """The handler failed: Ready again from `retry_at` on, or Failed when retries are exhausted.

        Raises StaleLease, JobNotFound.
        """
        with _fence():
            changed = await self.manager.fail(
                job_id, _text(token), error, category=Category.TEMPORARY
            )
        return _view(changed.job)

    async def heartbeat(self, job_id: str, token: str) -> Job:
        """Let the lease last a full LeaseTTL from now. Raises StaleLease, JobNotFound."""
        held = Lease(validation.check_id(job_id), _text(token), self.policy.lease_seconds)
        with _fence():
            for refusal in (await self.manager.heartbeat([held])).refused.values():
                raise refusal
        return await self.get(job_id)

    # --- reading and recovery --------------------------------------------------------------------

    async def get(self, job_id: str) -> Job:
        """The job as the store has it now. Raises JobNotFound."""
        return _view(await self.manager.get(job_id))

    async def recover(self) -> tuple[Job, ...]:
        """Take back lapsed leases now, as the next claim would; the jobs as they are after."""
        return tuple(_view(job) for job in (await self.manager.reap()).jobs)


@contextlib.contextmanager
def _fence() -> Iterator[None]:
    """Every way in which a lease may not hold is one error to this specification."""
    try:
        yield
    except Refusal as refusal:
        raise StaleLease(refusal.message, job_id=refusal.job_id) from refusal


def _text(token: object) -> str:
    """What is not text was never a token: it is treated as one that nobody holds."""
    return token if isinstance(token, str) else ""


def _spec(job: Job) -> JobSpec:
    for field in msgspec.structs.fields(Job):
        if field.name not in _GIVEN and getattr(job, field.name) != field.default:
            raise InvalidInput(
                f"a new job has no {field.name} yet: leave it out; {validation.UNCHANGED}"
            )
    retries, timeout = job.max_retries, job.execution_timeout
    return JobSpec(
        id=validation.check_id(job.id),
        type=TYPE,
        payload=job.payload,
        queue=job.queue,
        priority=job.priority,
        max_attempts=UNSET if retries is None else _attempts(retries),
        timeout_seconds=UNSET
        if timeout is None
        else validation.check_seconds(seconds(timeout), "execution_timeout"),
    )


def _attempts(max_retries: int) -> int:
    """The first attempt is no retry."""
    return validation.check_limit(max_retries, "max_retries", minimum=0) + 1


def _view(job: StoredJob) -> Job:
    max_retries = None if job.max_attempts is None else job.max_attempts - 1
    given_back = job.failures + job.losses
    return Job(
        id=job.id,
        payload=job.payload,
        queue=job.queue,
        priority=job.priority,
        state=JobState(vocabulary.queue_semantics(job.state, True, job.attempt)),
        lease_token=job.token,
        lease_version=job.attempt,
        lease_expires_at=job.lease_until,
        worker=job.assignee if job.is_leased else None,
        retry_count=given_back if max_retries is None else min(given_back, max_retries),
        max_retries=max_retries,
        retry_at=job.run_at if job.failures and job.state in CLAIMABLE else None,
        error=None if job.failure is None else job.failure.message,
        execution_timeout=job.timeout_seconds,
        enqueued_at=job.created_at,
        finished_at=job.finalized_at,
    )


def _policy(
    lease_ttl: Duration | None,
    max_retries: int | None,
    base_delay: Duration | None,
    max_delay: Duration | None,
    execution_timeout: Duration | None,
) -> Policy:
    """The preset, with what the caller gave in its place."""
    preset = QUEUE_SEMANTICS
    assert isinstance(preset.backoff, FullJitter)
    given: dict[str, Any] = {}
    if lease_ttl is not None:
        given["lease_seconds"] = validation.check_seconds(seconds(lease_ttl), "lease_ttl")
    if max_retries is not None:
        given["max_attempts"] = _attempts(max_retries)
    if execution_timeout is not None:
        given["timeout_seconds"] = validation.check_seconds(
            seconds(execution_timeout), "execution_timeout"
        )
    base = preset.backoff.initial if base_delay is None else seconds(base_delay)
    cap = preset.backoff.cap if max_delay is None else seconds(max_delay)
    given["backoff"] = FullJitter(
        initial=validation.check_seconds(base, "base_delay", zero=True),
        cap=validation.check_seconds(cap, "max_delay", zero=True),
    )
    return msgspec.structs.replace(preset, **given)


__all__ = ["DuplicateJob", "Job", "JobNotFound", "JobState", "Queue", "StaleLease"]
