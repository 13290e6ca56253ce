"""ProcessScheduledJobs and the strategy behind it: what it calls due is put into the pool."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from headrace.contracts.job_store import (
    IJobStore,
    Job,
    JobManager,
    JobManagerConfiguration,
    JobStatus,
    MethodResult,
)
from headrace.testing.conformance.job_store.factories import (
    WORKER,
    claimed,
    code,
    data,
    done,
    in_status,
    open_store,
    read,
    submitted,
)
from headrace.testing.conformance.job_store.suite import suite
from headrace.testing.conformance.kit import Env

SCHEDULED = "IJobManager.ProcessScheduledJobs"
S = JobStatus


class Chosen:
    """A strategy that calls those jobs due that are chosen, whatever the time."""

    def __init__(self, choose: Callable[[Job], bool]) -> None:
        self.choose = choose
        self.batches: list[int] = []

    async def get_due_jobs(self, job_store: IJobStore, max_count: int) -> MethodResult[list[Job]]:
        found = data(await job_store.get_jobs_by_status(S.SCHEDULED, 1000))
        due = [job for job in found if self.choose(job)][:max_count]
        self.batches.append(len(due))
        return MethodResult.success(due)


class Stale:
    """A strategy that answers what it was given, long ago."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = list(jobs)

    async def get_due_jobs(
        self,
        job_store: IJobStore,  # noqa: ARG002 - the interface's
        max_count: int,  # noqa: ARG002 - the interface's
    ) -> MethodResult[list[Job]]:
        return MethodResult.success(self.jobs)


class Raising:
    async def get_due_jobs(
        self,
        job_store: IJobStore,  # noqa: ARG002 - the interface's
        max_count: int,  # noqa: ARG002 - the interface's
    ) -> MethodResult[list[Job]]:
        raise ZeroDivisionError("the calendar is out of order")


async def _scheduled(env: Env, manager: JobManager, *ids: str) -> None:
    later = env.clock.now() + timedelta(hours=1)
    for job_id in ids:
        await submitted(manager, id=job_id, retry_delay_until=later)


@suite.case(SCHEDULED, "what the strategy calls due is claimable now, whatever the time; no other")
async def _(env: Env) -> None:
    store = await open_store(env)
    manager = JobManager(store, scheduling_strategy=Chosen(lambda job: job.id != "b"))
    retry = await in_status(manager, S.SCHEDULED)
    await _scheduled(env, manager, "a", "b")
    assert data(await manager.claim_jobs_for_processing(WORKER)) == []
    assert data(await manager.process_scheduled_jobs()) == 2
    for job_id in (retry.id, "a"):
        found = await read(manager, job_id)
        assert (found.status, found.retry_delay_until) == (S.QUEUED, None)
    assert (await read(manager, retry.id)).retry_count == 1
    assert (await read(manager, "b")).status is S.SCHEDULED
    assert (await manager.process_scheduled_jobs()).data == 0
    got = data(await manager.claim_jobs_for_processing(WORKER))
    assert {job.id for job in got} == {retry.id, "a"}


@suite.case(SCHEDULED, "a strategy that calls nothing due moves nothing")
async def _(env: Env) -> None:
    store = await open_store(env)
    manager = JobManager(store, scheduling_strategy=Chosen(lambda _: False))
    job = await in_status(manager, S.SCHEDULED)
    env.clock.advance(3600)
    assert (await manager.process_scheduled_jobs()).data == 0
    assert (await read(manager, job.id)).status is S.SCHEDULED


@suite.case(SCHEDULED, "all that is due is moved, max_claim_batch_size at a time")
async def _(env: Env) -> None:
    strategy = Chosen(lambda _: True)
    configuration = JobManagerConfiguration(max_claim_batch_size=2)
    manager = JobManager(await open_store(env), configuration, scheduling_strategy=strategy)
    await _scheduled(env, manager, *"abcde")
    assert data(await manager.process_scheduled_jobs()) == 5
    assert strategy.batches == [2, 2, 1]
    assert data(await manager.get_job_statistics()).queued_count == 5


@suite.case(SCHEDULED, "due jobs keep the order of their times in the pool")
async def _(env: Env) -> None:
    manager = JobManager(await open_store(env))
    for job_id, seconds in (("late", 9), ("early", 3), ("middle", 6)):
        when = env.clock.now() + timedelta(seconds=seconds)
        await submitted(manager, id=job_id, retry_delay_until=when)
    env.clock.advance(5)
    await submitted(manager, id="new")
    env.clock.advance(5)
    done(await manager.process_scheduled_jobs())
    got = data(await manager.claim_jobs_for_processing(WORKER))
    assert [job.id for job in got] == ["early", "new", "middle", "late"]


@suite.case(SCHEDULED, "a job that was claimed, has ended or is gone meanwhile is left alone")
async def _(env: Env) -> None:
    store = await open_store(env)
    manager = JobManager(store)
    scheduled = [await in_status(manager, S.SCHEDULED) for _ in range(3)]
    env.clock.advance(4)
    running, ended, gone = scheduled
    assert (await claimed(manager)).id == running.id
    done(await manager.cancel_job(ended.id))
    done(await store.delete_job(gone.id))
    late = JobManager(store, scheduling_strategy=Stale(*scheduled))
    assert (await late.process_scheduled_jobs()).data == 0
    assert (await read(manager, running.id)).status is S.IN_PROGRESS
    assert (await read(manager, ended.id)).status is S.CANCELED


@suite.case(SCHEDULED, "a strategy that raises is a failed result, and no job is moved")
async def _(env: Env) -> None:
    manager = JobManager(await open_store(env), scheduling_strategy=Raising())
    job = await in_status(manager, S.SCHEDULED)
    answer = await manager.process_scheduled_jobs()
    assert code(answer) == "SCHEDULING_STRATEGY_FAILED"
    assert answer.error is not None
    assert "out of order" in answer.error.message
    assert await read(manager, job.id) == job
