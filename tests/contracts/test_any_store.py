"""JobManager and its background service over a plain class: nothing of it but the interface's methods."""

from __future__ import annotations

import asyncio
import inspect
import runpy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.clock import ManualClock
from headrace.contracts.job_store import (
    AsyncEndpointError,
    BackgroundService,
    ClaimsScheduledJobs,
    HasClock,
    Id,
    IJobStore,
    Job,
    JobManager,
    JobManagerConfiguration,
    JobStatus,
    JobStore,
    MethodResult,
    OneStepChanges,
    TimedClaims,
)
from headrace.errors import InvalidInput

EXAMPLE = Path(__file__).parents[2] / "examples" / "job_store.py"
S = JobStatus
CAPABILITIES = (HasClock, TimedClaims, OneStepChanges, ClaimsScheduledJobs)


@pytest.fixture
def store() -> Any:
    return runpy.run_path(str(EXAMPLE))["DictStore"]()


@pytest.fixture
def clock() -> ManualClock:
    """The store of the example has the host's clock, and this one moves on from there."""
    return ManualClock(datetime.now(UTC))


@pytest.fixture
def manager(store: IJobStore, clock: ManualClock) -> JobManager:
    return JobManager(store, clock=clock)


def data(answer: MethodResult[Any]) -> Any:
    assert answer.is_success, answer.error
    return answer.data


def code(answer: MethodResult[Any]) -> str:
    assert answer.error is not None
    return answer.error.code


async def read(manager: JobManager, job_id: Id) -> Job:
    job: Job = data(await manager.get_job_by_id(job_id))
    return job


def test_the_class_has_the_interface_and_no_more(store: Any) -> None:
    assert isinstance(store, IJobStore)
    assert not isinstance(store, CAPABILITIES)
    assert len(inspect.getsource(JobStore)) > 0
    wanted = {name for name in vars(IJobStore) if not name.startswith("_")}
    assert {name for name in dir(store) if not name.startswith("_")} == wanted | {"jobs"}


async def test_our_own_store_has_the_interface_and_every_capability() -> None:
    async with await JobStore.open("memory:") as ours:
        assert isinstance(ours, IJobStore)
        for capability in CAPABILITIES:
            assert isinstance(ours, capability)


async def test_a_job_succeeds(manager: JobManager) -> None:
    job = Job(payload={"n": 1})
    assert data(await manager.submit_job(job)) == job.id
    assert (job.status, job.max_retries) == (S.QUEUED, 3)
    (claimed,) = data(await manager.claim_jobs_for_processing("w", 5))
    assert (claimed.id, claimed.status, claimed.worker_id) == (job.id, S.IN_PROGRESS, "w")
    assert data(await manager.claim_jobs_for_processing("w", 5)) == []
    data(await manager.process_job_success(job.id, "done"))
    found = await read(manager, job.id)
    assert (found.status, found.result, found.worker_id) == (S.COMPLETED, "done", None)
    assert code(await manager.process_job_success(job.id, "again")) == "JOB_TERMINAL"
    assert data(await manager.get_job_statistics()).completed_count == 1


async def test_failures_are_retried_by_the_rule_and_then_final(
    manager: JobManager, clock: ManualClock
) -> None:
    job = Job(max_retries=2)
    data(await manager.submit_job(job))
    for retry, seconds in ((1, 4), (2, 8)):
        data(await manager.claim_jobs_for_processing("w"))
        data(await manager.process_job_failure(job.id, f"failure {retry}"))
        found = await read(manager, job.id)
        assert (found.status, found.retry_count) == (S.SCHEDULED, retry)
        assert found.retry_delay_until == clock.now() + timedelta(seconds=seconds)
        assert (found.worker_id, found.exception) == (None, f"failure {retry}")
        assert data(await manager.claim_jobs_for_processing("w")) == []
        await _make_due(manager, job.id)
        assert data(await manager.process_scheduled_jobs()) == 1
        assert data(await manager.process_scheduled_jobs()) == 0
    data(await manager.claim_jobs_for_processing("w"))
    data(await manager.process_job_failure(job.id, ValueError("the last")))
    found = await read(manager, job.id)
    assert (found.status, found.retry_count, found.exception) == (S.FAILED, 2, "the last")


async def _make_due(manager: JobManager, job_id: Id) -> None:
    job = await read(manager, job_id)
    job.retry_delay_until = datetime.now(UTC)
    data(await manager.store.update_job(job))


async def test_cancelling(manager: JobManager) -> None:
    waiting, running = Job(id="waiting"), Job(id="running")
    data(await manager.submit_job(running))
    data(await manager.claim_jobs_for_processing("w"))
    data(await manager.submit_job(waiting))
    assert data(await manager.cancel_job("waiting")).status is S.CANCELED
    assert code(await manager.cancel_job("waiting")) == "JOB_CANCELED"
    assert code(await manager.cancel_job("running")) == "JOB_ALREADY_STARTED"
    assert data(await manager.process_job_cancellation("running")).status is S.CANCELED
    assert code(await manager.cancel_job("none")) == "JOB_NOT_FOUND"
    assert code(await manager.process_job_success("waiting")) == "JOB_CANCELED"


async def test_stale_claims_are_released(manager: JobManager, clock: ManualClock) -> None:
    data(await manager.submit_job(Job(id="j")))
    data(await manager.claim_jobs_for_processing("gone"))
    assert data(await manager.process_stale_job_claims()) == 0
    clock.advance(301)
    assert data(await manager.process_stale_job_claims()) == 1
    assert (await read(manager, "j")).status is S.QUEUED
    assert data(await manager.process_stale_job_claims()) == 0


async def test_a_claim_takes_no_more_than_max_claim_batch_size(store: IJobStore) -> None:
    manager = JobManager(store, JobManagerConfiguration(max_claim_batch_size=2))
    for _ in range(5):
        data(await manager.submit_job(Job()))
    assert len(data(await manager.claim_jobs_for_processing("w", 100))) == 2
    assert len(data(await manager.claim_jobs_for_processing("w", 1))) == 1
    assert len(data(await manager.claim_jobs_for_processing("w"))) == 2


async def test_a_store_that_leaves_the_assignment_to_the_manager(store: Any) -> None:
    async def claim(_: Id, limit: int) -> MethodResult[list[Job]]:
        answer: MethodResult[list[Job]] = await store.get_jobs_by_status(S.QUEUED, limit)
        return answer

    store.claim_jobs_for_worker = claim
    manager = JobManager(store)
    data(await manager.submit_job(Job(id="j")))
    (job,) = data(await manager.claim_jobs_for_processing("w"))
    assert (job.status, job.worker_id) == (S.IN_PROGRESS, "w")
    assert (await read(manager, "j")).worker_id == "w"


async def test_what_the_store_refuses_or_raises_is_a_result(store: Any) -> None:
    manager = JobManager(store)
    data(await manager.submit_job(Job(id="j")))
    data(await manager.claim_jobs_for_processing("w"))

    async def refuse(_: Job) -> MethodResult[Any]:
        return MethodResult.failure(AsyncEndpointError("READ_ONLY", "the store is read-only"))

    async def broken(_: Job) -> MethodResult[Any]:
        raise ConnectionResetError("the line is dead")

    store.update_job = refuse
    assert code(await manager.process_job_success("j")) == "READ_ONLY"
    store.update_job = store.create_job = broken
    answer = await manager.process_job_failure("j", "no")
    assert code(answer) == "STORE_FAILED"
    assert "the line is dead" in str(answer.error)
    job = Job(id="k")
    assert code(await manager.submit_job(job)) == "STORE_FAILED"
    assert (job.created_at, job.max_retries) == (None, None)
    assert (await read(manager, "j")).status is S.IN_PROGRESS


class Biting(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it bites")

    __repr__ = __str__


async def test_an_error_that_cannot_be_printed_is_a_result_too(store: Any) -> None:
    async def bite(*_: object) -> MethodResult[Any]:
        raise Biting

    class Strategy:
        get_due_jobs = bite

        def should_retry(self, *_: object) -> bool:
            raise Biting

    strategy: Any = Strategy()
    manager = JobManager(store, scheduling_strategy=strategy, retry_strategy=strategy)
    answer = await manager.process_scheduled_jobs()
    assert code(answer) == "SCHEDULING_STRATEGY_FAILED"
    assert "Biting" in str(answer.error)
    data(await manager.submit_job(Job(id="j")))
    data(await manager.claim_jobs_for_processing("w"))
    assert code(await manager.process_job_failure("j", "no")) == "RETRY_STRATEGY_FAILED"
    store.update_job = bite
    assert code(await manager.process_job_success("j")) == "STORE_FAILED"


async def test_what_is_no_answer_is_told_as_a_failure(store: Any) -> None:
    async def nothing(*_: object) -> None:
        return None

    class NoAnswer:
        get_due_jobs = nothing

    strategy: Any = NoAnswer()
    answer = await JobManager(store, scheduling_strategy=strategy).process_scheduled_jobs()
    assert code(answer) == "SCHEDULING_STRATEGY_FAILED"
    store.get_job_by_id = nothing
    assert code(await JobManager(store).get_job_by_id("j")) == "STORE_FAILED"


def test_what_lacks_a_method_is_refused_by_name(store: Any) -> None:
    del type(store).release_job_to_pool
    with pytest.raises(InvalidInput, match=r"DictStore .* release_job_to_pool"):
        JobManager(store)


async def test_the_background_service_runs_over_it(store: IJobStore) -> None:
    quick = JobManagerConfiguration(
        retry_delay_base_seconds=0.01, job_polling_interval_ms=5, max_concurrent_jobs=2
    )
    manager = JobManager(store, quick)
    assert manager.needs_scheduling
    tried: list[Id] = []

    async def handle(job: Job) -> str:
        tried.append(job.id)
        if tried.count(job.id) == 1:
            raise TimeoutError("not yet")
        return "done"

    ids = [data(await manager.submit_job(Job())) for _ in range(5)]
    async with BackgroundService(manager, handle), asyncio.timeout(20):
        while data(await manager.get_job_statistics()).completed_count < 5:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert sorted(map(str, tried)) == sorted(map(str, ids * 2))
    assert {(await read(manager, job_id)).retry_count for job_id in ids} == {1}
