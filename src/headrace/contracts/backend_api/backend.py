"""Backend: the specification's interface on any store. It translates; the manager decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Self

from headrace import model, validation
from headrace.clock import Clock
from headrace.codec import PAYLOAD_BYTES_MAX
from headrace.connect import connect
from headrace.contracts.backend_api import commands
from headrace.contracts.backend_api.commands import END_OF_TIME, Decide, SameStatus, Update
from headrace.contracts.backend_api.errors import (
    BackendError,
    translate,
    translated,
    translating,
)
from headrace.contracts.backend_api.submission import policy_of, spec_of, specs_of
from headrace.contracts.backend_api.values import Job, JobStats, JobStatus, job_of, stats_of
from headrace.contracts.presets import BACKEND_API
from headrace.errors import DuplicateJob, InvalidBatch
from headrace.input_checks import guarding
from headrace.manager import Changed, JobManager
from headrace.manager.leases import CLAIM_LIMIT_MAX
from headrace.model import State
from headrace.spec import JobSpec

Tags = Iterable[str] | None
Ids = Iterable[str] | None


@guarding(translated)
class Backend:
    """Jobs by the specification `Backend API`, on the policy preset of that name.

    Every call is atomic and safe from many tasks at once; one that raises (always a BackendError) has
    changed nothing. `freed` in an answer maps a worker to how many of its jobs it does not hold any more.
    """

    def __init__(
        self,
        manager: JobManager,
        *,
        payload_bytes_max: int | None = None,
        result_bytes_max: int | None = None,
    ) -> None:
        """On a manager that is open already, whose policy should be `POLICY`.

        The limits are for payloads and results as they are given (None: the preset's, 1 MB; at most 16
        MB). What is stored of a payload, which is a little more, must fit into the policy's all the same.
        """
        self._manager = manager
        self.payload_bytes_max = _bytes_max(payload_bytes_max, "payload_bytes_max")
        self.result_bytes_max = _bytes_max(result_bytes_max, "result_bytes_max")

    @classmethod
    async def open(
        cls,
        url: str,
        clock: Clock | None = None,
        *,
        payload_bytes_max: int | None = None,
        result_bytes_max: int | None = None,
    ) -> Self:
        """On the store behind `url`. Without a clock the store's own is the authority.

        The limits are those of `Backend(manager, …)`; the policy is made to fit them.
        """
        with translated():
            policy = policy_of(_bytes_max(payload_bytes_max, "payload_bytes_max"))
            _bytes_max(result_bytes_max, "result_bytes_max")
            return cls(
                await connect(url, policies=policy, clock=clock),
                payload_bytes_max=payload_bytes_max,
                result_bytes_max=result_bytes_max,
            )

    @property
    def manager(self) -> JobManager:
        """What this stands on; another adapter on the same manager sees the same jobs."""
        return self._manager

    @translating
    async def close(self) -> None:
        """Give everything back; every later call raises. Closing twice is fine."""
        await self._manager.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # --- job submission --------------------------------------------------------------------------

    @translating
    async def enqueue_job(self, job: Job) -> str:
        """Store a new job; its id. It is eligible at once."""
        (job_id,) = await self._submit([spec_of(job, self.payload_bytes_max)])
        return job_id

    @translating
    async def enqueue_jobs(self, jobs: Sequence[Job]) -> list[str]:
        """Store all or none; the ids in order. The error names the job by `index` and `job_id`."""
        return await self._submit(specs_of(jobs, self.payload_bytes_max))

    # --- job assignment --------------------------------------------------------------------------

    @translating
    async def dequeue_jobs(self, assignee_id: str, tags: Tags = (), limit: int = 1) -> list[Job]:
        """Assign up to `limit` eligible jobs that have all the tags, oldest first, in one step."""
        return [job_of(job) for job in await self._claim(assignee_id, tags, limit)]

    # --- job lifecycle ---------------------------------------------------------------------------

    @translating
    async def complete_job(self, job_id: str, result: Any = None) -> dict[str, int]:
        """RUNNING, CANCELLING, UNKNOWN_RETRY, UNKNOWN_STOPPED → COMPLETED."""
        return dict(
            (await self._change(job_id, commands.complete(result, self.result_bytes_max))).freed
        )

    @translating
    async def fail_job(self, job_id: str, error_msg: str) -> dict[str, int]:
        """RUNNING, UNKNOWN_RETRY → FAILED_RETRY: eligible again at once."""
        return dict((await self._change(job_id, commands.fail(error_msg))).freed)

    @translating
    async def stop_job(self, job_id: str, error_msg: str = "") -> dict[str, int]:
        """RUNNING, CANCELLING, UNKNOWN_RETRY → STOPPED."""
        return dict((await self._change(job_id, commands.stop(error_msg))).freed)

    @translating
    async def stop_job_with_retry(self, job_id: str, error_msg: str = "") -> dict[str, int]:
        """CANCELLING → STOPPED, counted as a failure."""
        return dict((await self._change(job_id, commands.stop_with_retry(error_msg))).freed)

    @translating
    async def mark_job_unknown_stopped(self, job_id: str, error_msg: str = "") -> dict[str, int]:
        """RUNNING, CANCELLING, UNKNOWN_RETRY → UNKNOWN_STOPPED."""
        return dict((await self._change(job_id, commands.mark_unknown_stopped(error_msg))).freed)

    @translating
    async def update_job_status(
        self,
        job_id: str,
        status: JobStatus,
        result: Any = None,
        error_msg: str = "",
    ) -> dict[str, int]:
        """One step of `commands.UPDATES`; the status that the job has already changes nothing."""
        update = Update(status, result, error_msg, self.result_bytes_max)
        try:
            changed = await self._change(job_id, update)
        except SameStatus:
            return {}
        return dict(changed.freed) if update.frees_capacity else {}

    # --- cancellation ----------------------------------------------------------------------------

    @translating
    async def cancel_jobs(self, tags: Tags = (), job_ids: Ids = ()) -> tuple[list[str], list[str]]:
        """Cancel what is named or tagged, in one step: (cancelled ids, unknown or final ids)."""
        report = await self._manager.cancel(_listed(job_ids), tags=_listed(tags))
        self._observe(report.jobs)
        cancelled = [job.id for job in (*report.jobs, *report.already)]
        return cancelled, [*(job.id for job in report.ended), *report.not_found]

    @translating
    async def acknowledge_cancellation(self, job_id: str, was_executing: bool) -> None:
        """CANCELLING → STOPPED, or UNKNOWN_STOPPED if the worker did not have it."""
        await self._change(job_id, commands.acknowledge_cancellation(was_executing))

    # --- worker management -----------------------------------------------------------------------

    @translating
    async def mark_worker_unresponsive(self, assignee_id: str) -> None:
        """All its jobs in one step: RUNNING → UNKNOWN_RETRY, CANCELLING → UNKNOWN_STOPPED."""
        self._observe((await self._manager.expire_worker(assignee_id)).jobs)

    # --- query operations ------------------------------------------------------------------------

    @translating
    async def get_job(self, job_id: str) -> Job:
        return job_of(await self._manager.get(job_id))

    @translating
    async def get_job_stats(self, tags: Tags = ()) -> JobStats:
        return stats_of(await self._manager.stats(tags=_listed(tags)))

    # --- maintenance -----------------------------------------------------------------------------

    @translating
    async def reset_running_jobs(self) -> None:
        """As mark_worker_unresponsive, for every worker."""
        self._observe((await self._manager.reset_running()).jobs)

    @translating
    async def cleanup_expired_jobs(self, ttl: timedelta | float) -> None:
        """Delete jobs that were COMPLETED longer than `ttl` (seconds, or a timedelta) ago."""
        seconds = validation.check_seconds(ttl, "ttl")
        await self._manager.cleanup({State.COMPLETED: seconds}, limit=validation.LIMIT_MAX)

    @translating
    async def delete_jobs(self, tags: Tags = (), job_ids: Ids = ()) -> None:
        """Delete what is named or tagged if all of it is final. Unknown ids are passed over."""
        await self._manager.delete(_listed(job_ids), tags=_listed(tags))

    # --- inside ----------------------------------------------------------------------------------

    def _observe(self, jobs: Sequence[model.Job]) -> None:
        """Called with the jobs that a call has stored or changed, as they are after it."""

    async def _submit(self, specs: Sequence[JobSpec]) -> list[str]:
        try:
            submitted = await self._manager.submit_many(specs)
        except InvalidBatch as error:
            raise _about(translate(error), specs[error.index].id) from error
        except DuplicateJob as error:
            raise _about(translate(error), specs[0].id) from error
        self._observe(submitted.jobs)
        return [job.id for job in submitted.jobs]

    async def _claim(self, assignee_id: str, tags: Tags, limit: int) -> Sequence[model.Job]:
        validation.check_limit(limit, "limit")
        return await self._manager.claim(
            assignee_id,
            tags=_listed(tags),
            limit=min(limit, CLAIM_LIMIT_MAX),
            due_by=END_OF_TIME,
        )

    async def _change(self, job_id: str, decide: Decide) -> Changed:
        changed = await self._manager.change(job_id, decide)
        self._observe(changed.jobs)
        return changed


def _listed(values: Iterable[str] | None) -> Iterable[str]:
    """No list is an empty one. What is not a list is left for the manager to refuse."""
    return () if values is None else values


def _bytes_max(given: int | None, what: str) -> int:
    """A limit for contents as they are given; without one the preset's."""
    if given is None:
        return BACKEND_API.payload_bytes_max
    return validation.check_limit(given, what, maximum=PAYLOAD_BYTES_MAX)


def _about(error: BackendError, job_id: str | None) -> BackendError:
    error.job_id = job_id
    return error
