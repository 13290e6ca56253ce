"""IJobStore: claiming and releasing; Distributed Locking Methods in IJobStore."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

from headrace.contracts.job_store import Job, JobManager, JobStatus, JobStore, MethodResult
from headrace.contracts.presets import JOB_STORE
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
from headrace.testing.conformance.kit import Env

CLAIM = "IJobStore.ClaimJobsForWorker"
RELEASE = "IJobStore.ReleaseJobToPool"
LOCKING = "Distributed Locking Methods in IJobStore"
OWNERSHIP = "Worker Authentication"


@suite.case(CLAIM, "claimed jobs are InProgress and the worker's own")
async def _(env: Env) -> None:
    store = await open_store(env)
    jobs = [data(await store.create_job(Job())) for _ in range(3)]
    env.clock.advance(1)
    got = data(await store.claim_jobs_for_worker(WORKER, 2))
    assert [job.id for job in got] == [job.id for job in jobs[:2]]
    for job in got:
        assert (job.status, job.worker_id) == (JobStatus.IN_PROGRESS, WORKER)
        assert (job.started_at, job.last_updated_at) == (env.clock.now(), env.clock.now())
        assert await read(store, job.id) == job
    assert (await read(store, jobs[2].id)).status is JobStatus.QUEUED


@suite.case(CLAIM, "Queued and due Scheduled jobs are available, all others are not")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for status in (
        JobStatus.COMPLETED,
        JobStatus.FAILED,
        JobStatus.CANCELED,
        JobStatus.IN_PROGRESS,
    ):
        await in_status(manager, status)
    retry = await in_status(manager, JobStatus.SCHEDULED)
    queued = await in_status(manager, JobStatus.QUEUED)
    got = data(await manager.store.claim_jobs_for_worker(WORKER, 10))
    assert [job.id for job in got] == [queued.id]
    assert retry.retry_delay_until is not None
    env.clock.set(retry.retry_delay_until - timedelta(microseconds=1))
    assert data(await manager.store.claim_jobs_for_worker(WORKER, 10)) == []
    env.clock.set(retry.retry_delay_until)
    got = data(await manager.store.claim_jobs_for_worker(WORKER, 10))
    assert [job.id for job in got] == [retry.id]


@suite.case(CLAIM, "an empty pool gives an empty list, and so does a claim of none")
async def _(env: Env) -> None:
    store = await open_store(env)
    assert data(await store.claim_jobs_for_worker(WORKER, 5)) == []
    job = data(await store.create_job(Job()))
    assert data(await store.claim_jobs_for_worker(WORKER, 0)) == []
    assert await read(store, job.id) == job


@suite.case(
    CLAIM, "a negative count is INVALID_LIMIT, an empty worker INVALID_NAME, and nothing is claimed"
)
async def _(env: Env) -> None:
    store = await open_store(env)
    job = data(await store.create_job(Job()))
    nothing: Any = None
    assert code(await store.claim_jobs_for_worker(WORKER, -1)) == "INVALID_LIMIT"
    assert code(await store.claim_jobs_for_worker(WORKER, nothing)) == "INVALID_LIMIT"
    assert code(await store.claim_jobs_for_worker("", 1)) == "INVALID_NAME"
    assert code(await store.claim_jobs_for_worker(nothing, 1)) == "INVALID_NAME"
    assert await read(store, job.id) == job


@suite.case(CLAIM, "a worker may be named by any text")
async def _(env: Env) -> None:
    store = await open_store(env)
    done(await store.create_job(Job()))
    (job,) = data(await store.claim_jobs_for_worker("worker-a", 1))
    assert job.worker_id == "worker-a"


@suite.case(LOCKING, "1. Only one worker can claim a specific job at a time")
async def _(env: Env) -> None:
    store = await open_store(env)
    ids = {data(await store.create_job(Job())).id for _ in range(40)}
    workers = [uuid.UUID(int=n) for n in range(1, 21)]
    claims = [store.claim_jobs_for_worker(worker, 3) for worker in workers]
    answers: list[MethodResult[list[Job]]] = await asyncio.gather(*claims)
    got = [(worker, job) for worker, it in zip(workers, answers, strict=True) for job in data(it)]
    assert len(got) == 40
    assert {job.id for _, job in got} == ids
    for worker, job in got:
        assert (await read(store, job.id)).worker_id == worker


@suite.case(LOCKING, "2. The operation is atomic to prevent race conditions")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for _ in range(10):
        job = await submitted(manager)
        canceled, *claims = await asyncio.gather(
            manager.cancel_job(job.id),
            *(manager.claim_jobs_for_processing(uuid.UUID(int=n), 1) for n in range(1, 9)),
        )
        winners = [it for claim in claims for it in data(claim)]
        found = await read(manager, job.id)
        if winners:
            assert (len(winners), code(canceled)) == (1, "JOB_ALREADY_STARTED")
            assert found == winners[0]
        else:
            done(canceled)
            assert (found.status, found.started_at) == (JobStatus.CANCELED, None)


@suite.case(
    LOCKING, "3. Each JobStore implementation claims the same way: two stores over one backend"
)
async def _(env: Env) -> None:
    backend = await env.manager(JOB_STORE)
    first, second = JobStore(backend), JobStore(backend)
    for _ in range(20):
        done(await first.create_job(Job()))
    answers = await asyncio.gather(
        *(store.claim_jobs_for_worker(WORKER, 3) for store in (first, second) * 5)
    )
    got = [job.id for answer in answers for job in data(answer)]
    assert len(got) == len(set(got)) == 20


@suite.case(RELEASE, "a released job is Queued, has no worker, and is claimable at once")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    released = data(await manager.store.release_job_to_pool(job.id))
    assert (released.status, released.worker_id) == (JobStatus.QUEUED, None)
    assert (released.retry_count, released.retry_delay_until) == (0, None)
    assert await read(manager, job.id) == released
    again = await claimed(manager, OTHER_WORKER)
    assert (again.id, again.worker_id) == (job.id, OTHER_WORKER)


@suite.case(RELEASE, "a job that is not in progress is refused with its code and stays as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    assert code(await manager.store.release_job_to_pool(uuid.uuid4())) == "JOB_NOT_FOUND"
    for status, expected in (
        (JobStatus.COMPLETED, "JOB_TERMINAL"),
        (JobStatus.FAILED, "JOB_TERMINAL"),
        (JobStatus.CANCELED, "JOB_CANCELED"),
        (JobStatus.SCHEDULED, "JOB_NOT_IN_PROGRESS"),
        (JobStatus.QUEUED, "JOB_NOT_IN_PROGRESS"),
    ):
        job = await in_status(manager, status)
        assert code(await manager.store.release_job_to_pool(job.id)) == expected
        assert await read(manager, job.id) == job


@suite.case(RELEASE, "a release never fails a job, however often, and costs none of its retries")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for retries in (0, 1):
        job = await submitted(manager, max_retries=retries)
        for _ in range(2 * retries + 3):
            await claimed(manager)
            env.clock.advance(0.5)
            released = data(await manager.store.release_job_to_pool(job.id))
            assert (released.status, released.retry_count) == (JobStatus.QUEUED, 0)
        for n in range(retries + 1):
            await claimed(manager)
            done(await manager.process_job_failure(job.id, "its own failure"))
            found = await read(manager, job.id)
            assert found.status is (JobStatus.FAILED if n == retries else JobStatus.SCHEDULED)
            env.clock.advance(60)


@suite.case(OWNERSHIP, "a manager that lost its claim to another is refused with CLAIM_LOST")
async def _(env: Env) -> None:
    backend = await env.manager(JOB_STORE)
    mine, theirs = JobManager(JobStore(backend)), JobManager(JobStore(backend))
    job = await submitted(mine)
    await claimed(mine)
    done(await theirs.store.release_job_to_pool(job.id))
    assert code(await mine.process_job_success(job.id, "late")) == "JOB_NOT_IN_PROGRESS"
    new = await claimed(theirs, OTHER_WORKER)
    assert code(await mine.process_job_success(job.id, "late")) == "CLAIM_LOST"
    assert code(await mine.process_job_failure(job.id, "late")) == "CLAIM_LOST"
    assert code(await mine.process_job_cancellation(job.id)) == "CLAIM_LOST"
    assert code(await mine.store.update_job_result(job.id, "late")) == "CLAIM_LOST"
    assert code(await mine.store.update_job_status(job.id, JobStatus.FAILED)) == "CLAIM_LOST"
    assert await read(mine, job.id) == new
    done(await theirs.process_job_success(job.id, "in time"))
    assert (await read(mine, job.id)).result == "in time"


@suite.case(OWNERSHIP, "a claim that was used up stays used up, though another claim follows")
async def _(env: Env) -> None:
    backend = await env.manager(JOB_STORE)
    mine, theirs = JobManager(JobStore(backend)), JobManager(JobStore(backend))
    job = await submitted(mine)
    await claimed(mine)
    done(await mine.process_job_failure(job.id, "once"))
    env.clock.advance(4)
    new = await claimed(theirs, OTHER_WORKER)
    assert code(await mine.process_job_failure(job.id, "once, sent twice")) == "CLAIM_LOST"
    assert await read(mine, job.id) == new


@suite.case(OWNERSHIP, "a store and a manager over it share their claims")
async def _(env: Env) -> None:
    store = await open_store(env)
    manager = JobManager(store)
    job = await submitted(manager)
    done(await store.claim_jobs_for_worker(WORKER, 1))
    done(await manager.process_job_success(job.id, "done"))
    await manager.close()
    assert (await read(store, job.id)).result == "done"
