"""IJobManager: scheduled jobs and stale claims; Configuration; Separation of Concerns."""

from __future__ import annotations

from datetime import timedelta

from headrace.contracts.job_store import Job, JobManager, JobManagerConfiguration, JobStatus
from headrace.errors import InvalidLimit
from headrace.testing.conformance.job_store.factories import (
    OTHER_WORKER,
    WORKER,
    claimed,
    code,
    data,
    done,
    in_status,
    open_manager,
    open_store,
    read,
    submitted,
)
from headrace.testing.conformance.job_store.suite import suite
from headrace.testing.conformance.kit import Env, raises

SCHEDULED = "IJobManager.ProcessScheduledJobs"
STALE = "IJobManager.ProcessStaleJobClaims"
CONFIGURATION = "Configuration"
STORE_ONLY = "What JobStore Should NOT Do"
MANAGER_ONLY = "JobManager Responsibilities (Business Logic)"


@suite.case(
    SCHEDULED, "it succeeds, counts what it put into the pool, and changes no job that is not due"
)
async def _(env: Env) -> None:
    manager = await open_manager(env)
    assert (await manager.process_scheduled_jobs()).data == 0
    job = await in_status(manager, JobStatus.SCHEDULED)
    assert (await manager.process_scheduled_jobs()).data == 0
    assert await read(manager, job.id) == job
    env.clock.advance(4)
    assert data(await manager.process_scheduled_jobs()) == 1
    assert (await read(manager, job.id)).status is JobStatus.QUEUED
    assert (await manager.process_scheduled_jobs()).data == 0
    assert (await claimed(manager)).id == job.id


@suite.case(SCHEDULED, "a due job is claimable whether or not it was called")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await submitted(manager, retry_delay_until=env.clock.now() + timedelta(seconds=9))
    assert data(await manager.claim_jobs_for_processing(WORKER, 1)) == []
    env.clock.advance(9)
    assert (await claimed(manager)).id == job.id


@suite.case(STALE, "a claim is released when job_claim_timeout is over, not a microsecond before")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    env.clock.advance(300 - 0.000001)
    assert (await manager.process_stale_job_claims()).data == 0
    assert await read(manager, job.id) == job
    env.clock.advance(0.000001)
    assert data(await manager.process_stale_job_claims()) == 1
    found = await read(manager, job.id)
    assert (found.status, found.worker_id, found.retry_count) == (JobStatus.QUEUED, None, 0)
    assert code(await manager.process_job_success(job.id, "late")) == "JOB_NOT_IN_PROGRESS"
    again = await claimed(manager, OTHER_WORKER)
    assert (again.id, again.worker_id) == (job.id, OTHER_WORKER)


@suite.case(STALE, "only stale claims are released, all of them, once")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    stale = [await in_status(manager, JobStatus.IN_PROGRESS) for _ in range(3)]
    env.clock.advance(299)
    fresh = await in_status(manager, JobStatus.IN_PROGRESS)
    env.clock.advance(1)
    assert data(await manager.process_stale_job_claims()) == 3
    assert (await manager.process_stale_job_claims()).data == 0
    for job in stale:
        assert (await read(manager, job.id)).status is JobStatus.QUEUED
    assert await read(manager, fresh.id) == fresh


@suite.case(STALE, "a job whose every claim goes stale is Failed once its attempts are spent")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await submitted(manager, max_retries=1)
    for expected in (JobStatus.QUEUED, JobStatus.FAILED):
        await claimed(manager)
        env.clock.advance(300)
        done(await manager.process_stale_job_claims())
        assert (await read(manager, job.id)).status is expected


@suite.case(CONFIGURATION, "the defaults are the text's")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    configuration = manager.configuration
    assert configuration == JobManagerConfiguration()
    assert configuration.default_max_retries == 3
    assert configuration.retry_delay_base_seconds == 2.0
    assert configuration.job_claim_timeout == timedelta(minutes=5)
    assert configuration.max_concurrent_jobs == 10
    assert configuration.job_polling_interval_ms == 1000
    assert configuration.max_claim_batch_size == 10
    assert configuration.stale_job_claim_check_interval == timedelta(minutes=1)


@suite.case(CONFIGURATION, "retries, delays, claim timeout and batch size are as configured")
async def _(env: Env) -> None:
    configuration = JobManagerConfiguration(
        default_max_retries=2,
        retry_delay_base_seconds=0.5,
        job_claim_timeout=timedelta(seconds=30),
        max_claim_batch_size=1,
    )
    manager = await open_manager(env, configuration)
    job = await submitted(manager)
    for seconds in (1, 2):
        assert len(data(await manager.claim_jobs_for_processing(WORKER))) == 1
        done(await manager.process_job_failure(job.id, "error"))
        found = await read(manager, job.id)
        assert found.retry_delay_until == env.clock.now() + timedelta(seconds=seconds)
        env.clock.advance(seconds)
    await claimed(manager)
    done(await manager.process_job_failure(job.id, "error"))
    assert (await read(manager, job.id)).status is JobStatus.FAILED
    await in_status(manager, JobStatus.IN_PROGRESS)
    env.clock.advance(30)
    assert data(await manager.process_stale_job_claims()) == 1


@suite.case(CONFIGURATION, "numbers that make no sense are refused")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for fields in (
        {"default_max_retries": -1},
        {"retry_delay_base_seconds": -0.1},
        {"max_concurrent_jobs": 0},
        {"job_polling_interval_ms": 0},
        {"max_claim_batch_size": 0},
    ):
        with raises(InvalidLimit):
            JobManagerConfiguration(**fields)
    with raises(InvalidLimit):
        JobManagerConfiguration(job_claim_timeout=timedelta(0))
    assert manager.configuration.max_claim_batch_size == 10


@suite.case(STORE_ONLY, "Retry logic: noting an exception schedules nothing and ends nothing")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await submitted(manager, max_retries=0)
    job = await claimed(manager)
    for n in range(5):
        done(await manager.store.update_job_exception(job.id, f"error {n}"))
    found = await read(manager, job.id)
    assert (found.status, found.retry_count) == (JobStatus.IN_PROGRESS, 0)
    assert (found.worker_id, found.retry_delay_until) == (WORKER, None)


@suite.case(STORE_ONLY, "Retry logic: FAILED is Failed, however many retries the job has left")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    done(await manager.store.update_job_status(job.id, JobStatus.FAILED))
    assert (await read(manager, job.id)).status is JobStatus.FAILED
    env.clock.advance(86_400)
    assert data(await manager.claim_jobs_for_processing(WORKER, 1)) == []


@suite.case(
    STORE_ONLY, "Scheduling business logic: a retry is scheduled when the copy says, not by a rule"
)
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    when = env.clock.now() + timedelta(seconds=1, microseconds=234_567)
    job.increment_retry_count()
    job.set_retry_time(when)
    job.update_status(JobStatus.SCHEDULED)
    updated = data(await manager.store.update_job(job))
    assert (updated.retry_delay_until, updated.retry_count) == (when, 1)


@suite.case(MANAGER_ONLY, "one manager implementation works with any store it is given")
async def _(env: Env) -> None:
    store = await open_store(env)
    done(await store.create_job(Job(id="by-the-store")))
    quick = JobManager(store, JobManagerConfiguration(job_claim_timeout=timedelta(seconds=1)))
    slow = JobManager(store)
    assert quick.store is slow.store is store
    await submitted(slow, id="by-the-manager")
    first = await claimed(quick)
    second = await claimed(slow)
    assert {first.id, second.id} == {"by-the-store", "by-the-manager"}
    env.clock.advance(1)
    assert data(await slow.process_stale_job_claims()) == 1
    assert (await read(store, first.id)).status is JobStatus.QUEUED
    assert (await read(store, second.id)).status is JobStatus.IN_PROGRESS
