"""IJobStore: creating, reading, deleting, and clearing out."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

from headrace.codec import PAYLOAD_BYTES_DEFAULT
from headrace.contracts.job_store import Job, JobStatus, JobStore
from headrace.testing.conformance.job_store.factories import (
    WORKER,
    code,
    data,
    done,
    in_status,
    open_manager,
    open_store,
    ours,
    read,
)
from headrace.testing.conformance.job_store.suite import suite
from headrace.testing.conformance.kit import Env

CREATE = "IJobStore.CreateJob"
GET = "IJobStore.GetJobById"
DELETE = "IJobStore.DeleteJob"
CLEANUP = "IJobStore.CleanupCompletedJobs"


@suite.case(CREATE, "a created job is Queued, has the store's times and the default retries")
async def _(env: Env) -> None:
    store = await open_store(env)
    job = Job(id=uuid.uuid4(), name="resize", payload={"width": 80})
    done(await store.create_job(job))
    found = await read(store, job.id)
    assert (found.id, found.name, found.payload) == (job.id, "resize", {"width": 80})
    assert (found.status, found.retry_count, found.max_retries) == (JobStatus.QUEUED, 0, 3)
    assert (found.worker_id, found.result, found.exception) == (None, None, None)
    assert (found.created_at, found.last_updated_at) == (env.clock.now(), env.clock.now())
    assert (found.started_at, found.completed_at, found.retry_delay_until) == (None, None, None)


@suite.case(CREATE, "creating the same id again succeeds with the existing job and changes nothing")
async def _(env: Env) -> None:
    store = await open_store(env)
    job = Job(payload="first")
    created = data(await store.create_job(job))
    env.clock.advance(1)
    repeated = data(await store.create_job(Job(id=job.id, payload="second", max_retries=9)))
    assert repeated == created
    assert await read(store, job.id) == created
    assert data(await store.get_job_statistics()).queued_count == 1


@suite.case(CREATE, "many creations of one id at once make one job")
async def _(env: Env) -> None:
    store = await open_store(env)
    job = Job()
    results = await asyncio.gather(*(store.create_job(job) for _ in range(10)))
    assert {data(result).id for result in results} == {job.id}
    assert data(await store.get_job_statistics()).queued_count == 1


@suite.case(CREATE, "a job with a time to come is Scheduled until then and Queued from then on")
async def _(env: Env) -> None:
    store = await open_store(env)
    when = env.clock.now() + timedelta(seconds=10, microseconds=1)
    job = Job(status=JobStatus.SCHEDULED, retry_delay_until=when)
    done(await store.create_job(job))
    found = await read(store, job.id)
    assert (found.status, found.retry_delay_until) == (JobStatus.SCHEDULED, when)
    assert data(await store.claim_jobs_for_worker(WORKER, 1)) == []
    env.clock.set(when)
    assert (await read(store, job.id)).status is JobStatus.QUEUED
    assert [it.id for it in data(await store.claim_jobs_for_worker(WORKER, 1))] == [job.id]


@suite.case(CREATE, "an id may be a UUID, its text in any case, or any other text")
async def _(env: Env) -> None:
    store = await open_store(env)
    one = uuid.uuid4()
    assert data(await store.create_job(Job(id=str(one).upper()))).id == one
    assert (await read(store, one)).id == one
    assert (await read(store, str(one))).id == one
    assert data(await store.create_job(Job(id="order-17"))).id == "order-17"
    assert (await read(store, "order-17")).id == "order-17"


@suite.case(CREATE, "what cannot be created is refused with a code, and nothing is stored")
async def _(env: Env) -> None:
    store = await open_store(env)
    nothing: Any = None
    naive = env.clock.now().replace(tzinfo=None)
    bad: list[tuple[Any, str]] = [
        (nothing, "INVALID_JOB"),
        (Job(id=""), "INVALID_ID"),
        (Job(id=nothing), "INVALID_ID"),
        (Job(name=""), "INVALID_NAME"),
        (Job(payload=object()), "INVALID_PAYLOAD"),
        (Job(payload="x" * PAYLOAD_BYTES_DEFAULT), "PAYLOAD_TOO_LARGE"),
        (Job(max_retries=-1), "INVALID_LIMIT"),
        (Job(retry_delay_until=naive), "INVALID_TIME"),
        (Job(status=JobStatus.SCHEDULED), "INVALID_JOB"),
        (Job(status="Sleeping"), "INVALID_STATUS"),  # type: ignore[arg-type]  # on purpose
        (Job(status=JobStatus.IN_PROGRESS), "INVALID_JOB"),
        (Job(status=JobStatus.COMPLETED), "INVALID_JOB"),
        (Job(retry_count=1), "INVALID_JOB"),
        (Job(worker_id=WORKER), "INVALID_JOB"),
        (Job(result="done"), "INVALID_JOB"),
        (Job(exception="broken"), "INVALID_JOB"),
    ]
    for job, expected in bad:
        assert code(await store.create_job(job)) == expected
    assert data(await store.get_jobs_by_status(JobStatus.QUEUED, 10)) == []


@suite.case(GET, "an unknown id is JOB_NOT_FOUND with a message, an empty one INVALID_ID")
async def _(env: Env) -> None:
    store = await open_store(env)
    unknown = uuid.uuid4()
    result = await store.get_job_by_id(unknown)
    assert code(result) == "JOB_NOT_FOUND"
    assert result.error is not None
    assert str(unknown) in result.error.message
    assert code(await store.get_job_by_id("")) == "INVALID_ID"


@suite.case(GET, "what is returned is a copy: changing it changes nothing stored")
async def _(env: Env) -> None:
    store = await open_store(env)
    job = Job(payload={"n": 1})
    done(await store.create_job(job))
    copy = await read(store, job.id)
    copy.status = JobStatus.COMPLETED
    copy.payload["n"] = 2
    found = await read(store, job.id)
    assert (found.status, found.payload) == (JobStatus.QUEUED, {"n": 1})


@suite.case(DELETE, "a deleted job is gone, whether it waited or had ended")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for status in (
        JobStatus.COMPLETED,
        JobStatus.FAILED,
        JobStatus.CANCELED,
        JobStatus.SCHEDULED,
        JobStatus.QUEUED,
    ):
        job = await in_status(manager, status)
        done(await manager.store.delete_job(job.id))
        assert code(await manager.get_job_by_id(job.id)) == "JOB_NOT_FOUND"
        assert code(await manager.store.delete_job(job.id)) == "JOB_NOT_FOUND"
    env.clock.advance(3600)
    assert data(await manager.claim_jobs_for_processing(WORKER, 10)) == []


@suite.case(DELETE, "a job that a worker has is JOB_ALREADY_STARTED and stays")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    assert code(await manager.store.delete_job(job.id)) == "JOB_ALREADY_STARTED"
    assert await read(manager, job.id) == job
    done(await manager.process_job_success(job.id, "done"))


@suite.case(DELETE, "an unknown id is JOB_NOT_FOUND and no other job is touched")
async def _(env: Env) -> None:
    store = await open_store(env)
    job = data(await store.create_job(Job()))
    assert code(await store.delete_job(uuid.uuid4())) == "JOB_NOT_FOUND"
    assert await read(store, job.id) == job


@suite.case(CLEANUP, "jobs completed longer ago than max_age go, the count says how many")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    old = [await in_status(manager, JobStatus.COMPLETED) for _ in range(3)]
    env.clock.advance(100)
    young = await in_status(manager, JobStatus.COMPLETED)
    env.clock.advance(10)
    assert data(await manager.store.cleanup_completed_jobs(timedelta(seconds=110))) == 0
    assert data(await manager.store.cleanup_completed_jobs(timedelta(seconds=109))) == 3
    for job in old:
        assert code(await manager.get_job_by_id(job.id)) == "JOB_NOT_FOUND"
    assert await read(manager, young.id) == young
    env.clock.advance(1)
    assert data(await ours(manager).cleanup_completed_jobs(0)) == 1


@suite.case(CLEANUP, "only Completed jobs go, however old the others are")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    kept = [
        await in_status(manager, status)
        for status in (
            JobStatus.FAILED,
            JobStatus.CANCELED,
            JobStatus.SCHEDULED,
            JobStatus.IN_PROGRESS,
            JobStatus.QUEUED,
        )
    ]
    env.clock.advance(365 * 86_400)
    assert data(await manager.store.cleanup_completed_jobs(timedelta(days=1))) == 0
    for job in kept:
        assert (await read(manager, job.id)).status is job.status


@suite.case(CLEANUP, "a negative age is INVALID_LIMIT and nothing goes")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.COMPLETED)
    nothing: Any = None
    for age in (timedelta(seconds=-1), -1, nothing):
        assert code(await ours(manager).cleanup_completed_jobs(age)) == "INVALID_LIMIT"
    assert await read(manager, job.id) == job


@suite.case("Connection Management", "a store closes twice, and a closed one answers with a code")
async def _(env: Env) -> None:
    async with await JobStore.open(env.url, env.clock) as store:
        done(await store.create_job(Job()))
    await store.close()
    assert code(await store.create_job(Job())) == "STORE_CLOSED"
    assert code(await store.get_job_statistics()) == "STORE_CLOSED"
