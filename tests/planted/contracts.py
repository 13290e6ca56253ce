"""Defects of `backend_api` and `job_store`, each with the part of its suite that must object."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from unittest import mock

from msgspec.structs import replace

from headrace import lifecycle
from headrace.contracts.backend_api import backend, submission
from headrace.contracts.job_store import (
    BackgroundService,
    Id,
    JobManager,
    MethodResult,
    fields,
    updates,
)
from headrace.contracts.job_store import Job as Offered
from headrace.contracts.job_store.records import Records
from headrace.model import Job
from headrace.spec import JobSpec
from headrace.testing.conformance.job_store import background as kit_of_the_service
from tests.planted.defect import Defect, patched

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Of the kit's clock."""


class Planted(NamedTuple):
    suite: str
    part: str
    defect: Defect


right_spec = submission.spec_of


def created_ahead_is_due_now(job: Any, payload_bytes_max: int) -> JobSpec:
    spec = right_spec(job, payload_bytes_max)
    return spec if spec.run_at is None else replace(spec, run_at=min(spec.run_at, START))


def only_the_preset_size(given: int | None, what: str) -> int:
    return 1 << 20


async def a_release_costs_a_retry(records: Records, stored: Job, shown: str | None = None) -> Job:
    return await records.change(stored.id, lambda _: lifecycle.Expire())


async def a_maximum_is_a_default(
    self: JobManager, worker_id: Id, max_claim_count: int | None = None
) -> MethodResult[list[Offered]]:
    count = self.configuration.max_claim_batch_size if max_claim_count is None else max_claim_count
    return await self.store.claim_jobs_for_worker(worker_id, count)


async def only_counted(self: JobManager, due: Offered) -> bool:
    return due.status == "Scheduled"


async def stale_claims_stay(self: BackgroundService) -> bool:
    return False


def room_for_all(self: BackgroundService) -> int:
    return self._manager.configuration.max_claim_batch_size


def impatiently(defect: Defect) -> Defect:
    """What never happens is not waited for as long as what is only slow."""

    @contextlib.contextmanager
    def both() -> Iterator[None]:
        with mock.patch.object(kit_of_the_service, "SOON_SECONDS", 0.3), defect():
            yield

    return both


STORE = "job_store"
SERVICE = "Component Diagram: Background Service"

DEFECTS: dict[str, Planted] = {
    "a job dated ahead waits for its time": Planted(
        "backend_api",
        "9. Ordering",
        patched(backend, "END_OF_TIME", datetime(1970, 1, 1, tzinfo=UTC)),
    ),
    "a job dated ahead stands where it came": Planted(
        "backend_api", "9. Ordering", patched(backend, "spec_of", created_ahead_is_due_now)
    ),
    "a configured size is not heeded": Planted(
        "backend_api",
        "CompleteJob: Postconditions",
        patched(backend, "_bytes_max", only_the_preset_size),
    ),
    "a release to the pool costs a retry": Planted(
        STORE, "IJobStore.ReleaseJobToPool", patched(updates, "release", a_release_costs_a_retry)
    ),
    "max_claim_batch_size is only a default": Planted(
        STORE,
        "IJobManager.ClaimJobsForProcessing",
        patched(JobManager, "claim_jobs_for_processing", a_maximum_is_a_default),
    ),
    "due jobs are counted and not moved": Planted(
        STORE, "IJobManager.ProcessScheduledJobs", patched(JobManager, "_queued", only_counted)
    ),
    "what an update cannot carry is dropped": Planted(
        STORE, "IJobStore.UpdateJob", patched(fields, "check", lambda given, shown: None)
    ),
    "the service leaves stale claims": Planted(
        STORE, SERVICE, impatiently(patched(BackgroundService, "_recover", stale_claims_stay))
    ),
    "the service runs more than max_concurrent_jobs": Planted(
        STORE, SERVICE, impatiently(patched(BackgroundService, "_room", room_for_all))
    ),
}
