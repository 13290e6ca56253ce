"""IJobStore: GetJobsByStatus, GetDueScheduledJobs, GetJobStatistics."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.contracts.job_store import Job, JobStatistics, JobStatus
from headrace.testing.conformance.job_store.factories import (
    WORKER,
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

BY_STATUS = "IJobStore.GetJobsByStatus"
DUE = "IJobStore.GetDueScheduledJobs"
STATISTICS = "IJobStore.GetJobStatistics"

IN_ORDER = (
    JobStatus.COMPLETED,
    JobStatus.FAILED,
    JobStatus.CANCELED,
    JobStatus.IN_PROGRESS,
    JobStatus.SCHEDULED,
    JobStatus.QUEUED,
)
"""An order in which one job of each can be made without claiming another by mistake."""


@suite.case(BY_STATUS, "each status finds its own jobs and no others, as they are")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    made = {status: await in_status(manager, status) for status in IN_ORDER}
    for status, job in made.items():
        assert data(await manager.store.get_jobs_by_status(status, 10)) == [job]
    text: Any = "Completed"
    found = data(await manager.store.get_jobs_by_status(text, 10))
    assert [job.id for job in found] == [made[JobStatus.COMPLETED].id]


@suite.case(BY_STATUS, "at most `limit` jobs come, the oldest first, past any number of others")
async def _(env: Env) -> None:
    store = await open_store(env)
    later = env.clock.now() + timedelta(hours=1)
    ids = []
    for n in range(12):
        ids.append(data(await store.create_job(Job(payload=n))).id)
        done(await store.create_job(Job(retry_delay_until=later)))
    for limit in (0, 1, 5, 12, 100_000):
        found = data(await store.get_jobs_by_status(JobStatus.QUEUED, limit))
        assert [job.id for job in found] == ids[:limit]
    assert len(data(await store.get_jobs_by_status(JobStatus.SCHEDULED, 100))) == 12


@suite.case(BY_STATUS, "a negative limit is INVALID_LIMIT, an unknown status INVALID_STATUS")
async def _(env: Env) -> None:
    store = await open_store(env)
    nonsense: Any = "Sleeping"
    assert code(await store.get_jobs_by_status(JobStatus.QUEUED, -1)) == "INVALID_LIMIT"
    assert code(await store.get_jobs_by_status(nonsense, 1)) == "INVALID_STATUS"
    assert data(await store.get_jobs_by_status(JobStatus.FAILED, 1)) == []


@suite.case(DUE, "a retry is due at its time, not a microsecond before, and not once it is claimed")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.SCHEDULED)
    assert job.retry_delay_until is not None
    env.clock.set(job.retry_delay_until - timedelta(microseconds=1))
    assert data(await manager.store.get_due_scheduled_jobs(10)) == []
    env.clock.set(job.retry_delay_until)
    assert data(await manager.store.get_due_scheduled_jobs(10)) == [job]
    done(await manager.claim_jobs_for_processing(WORKER, 1))
    assert data(await manager.store.get_due_scheduled_jobs(10)) == []


@suite.case(
    DUE, "a job scheduled from the start is due at its time; one never scheduled is not listed"
)
async def _(env: Env) -> None:
    manager = await open_manager(env)
    when = env.clock.now() + timedelta(seconds=5)
    ids = [(await submitted(manager, retry_delay_until=when)).id for _ in range(3)]
    await submitted(manager)
    assert data(await manager.store.get_due_scheduled_jobs(10)) == []
    env.clock.set(when)
    assert [job.id for job in data(await manager.store.get_due_scheduled_jobs(10))] == ids
    assert [job.id for job in data(await manager.store.get_due_scheduled_jobs(2))] == ids[:2]
    assert code(await manager.store.get_due_scheduled_jobs(-1)) == "INVALID_LIMIT"


@suite.case(DUE, "listing due jobs changes none of them")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.SCHEDULED)
    env.clock.advance(60)
    done(await manager.store.get_due_scheduled_jobs(10))
    assert await read(manager, job.id) == job


@suite.case(STATISTICS, "an empty store counts zero of everything")
async def _(env: Env) -> None:
    store = await open_store(env)
    assert data(await store.get_job_statistics()) == JobStatistics()


@suite.case(STATISTICS, "every status is counted under its own name, and time moves the counts")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for count, status in enumerate(IN_ORDER, start=1):
        made = [await in_status(manager, status) for _ in range(1 if count > 3 else count)]
        assert len(made) in (1, count)
    later = env.clock.now() + timedelta(hours=1)
    await submitted(manager, retry_delay_until=later)
    assert data(await manager.get_job_statistics()) == JobStatistics(
        queued_count=1,
        in_progress_count=1,
        completed_count=1,
        failed_count=2,
        scheduled_count=2,
        canceled_count=3,
    )
    env.clock.set(later)
    counted = data(await manager.store.get_job_statistics())
    assert (counted.queued_count, counted.scheduled_count) == (2, 1)
