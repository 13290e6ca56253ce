"""Short ways to the jobs that the cases are about, and the assertions that all of them make."""

from __future__ import annotations

import uuid
from typing import TypeVar

from headrace.contracts.job_store import (
    IJobStore,
    Job,
    JobManager,
    JobManagerConfiguration,
    JobStatus,
    JobStore,
    MethodResult,
    RetryStrategy,
)
from headrace.testing.conformance.kit import Env

T = TypeVar("T")

WORKER = uuid.UUID(int=1)
OTHER_WORKER = uuid.UUID(int=2)


async def open_store(env: Env) -> JobStore:
    store = await env.open(JobStore)
    assert isinstance(store, JobStore)
    return store


async def open_manager(
    env: Env,
    configuration: JobManagerConfiguration | None = None,
    retry_strategy: RetryStrategy | None = None,
) -> JobManager:
    manager = await JobManager.open(env.url, env.clock, configuration, retry_strategy)
    return env.closing(manager)


def ours(manager: JobManager) -> JobStore:
    """The manager's store, with what it can do besides the interface."""
    assert isinstance(manager.store, JobStore)
    return manager.store


def data(result: MethodResult[T]) -> T:
    """What a success brought."""
    assert result.is_success, result.error
    assert result.error is None
    assert result.data is not None
    return result.data


def done(result: MethodResult[T]) -> None:
    """A success that need not bring anything."""
    assert result.is_success, result.error
    assert result.error is None


def code(result: MethodResult[T]) -> str:
    """The code of a failure, which says something and brings nothing."""
    assert not result.is_success
    assert result.data is None
    assert result.error is not None
    assert len(result.error.message) > 10
    return result.error.code


async def read(place: IJobStore | JobManager, job_id: object) -> Job:
    assert isinstance(job_id, uuid.UUID | str)
    return data(await place.get_job_by_id(job_id))


async def submitted(manager: JobManager, **fields: object) -> Job:
    job = Job(**fields)  # type: ignore[arg-type]  # the fields of a Job
    done(await manager.submit_job(job))
    return job


async def claimed(manager: JobManager, worker: uuid.UUID = WORKER) -> Job:
    """Claim the one job that is due."""
    (job,) = data(await manager.claim_jobs_for_processing(worker, 1))
    return job


async def in_status(manager: JobManager, status: JobStatus) -> Job:
    """A fresh job in that status. Nothing else may be due meanwhile."""
    job = await submitted(manager, payload={"n": 1})
    match status:
        case JobStatus.QUEUED:
            return await read(manager, job.id)
        case JobStatus.CANCELED:
            done(await manager.cancel_job(job.id))
            return await read(manager, job.id)
        case _:
            await claimed(manager)
    if status is JobStatus.SCHEDULED:
        done(await manager.process_job_failure(job.id, "failed once"))
    elif status is JobStatus.COMPLETED:
        done(await manager.process_job_success(job.id, "the result"))
    elif status is JobStatus.FAILED:
        done(await manager.store.update_job_status(job.id, JobStatus.FAILED))
    found = await read(manager, job.id)
    assert found.status is status
    return found
