"""IJobManager: submitting, claiming, and how attempts end."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from headrace.contracts.job_store import Job, JobManager, JobManagerConfiguration, JobStatus
from headrace.testing.conformance.job_store.factories import (
    OTHER_WORKER,
    WORKER,
    claimed,
    code,
    data,
    done,
    in_status,
    open_manager,
    read,
    submitted,
)
from headrace.testing.conformance.job_store.suite import suite
from headrace.testing.conformance.kit import Env

SUBMIT = "IJobManager.SubmitJob"
CLAIM = "IJobManager.ClaimJobsForProcessing"
SUCCESS = "IJobManager.ProcessJobSuccess"
FAILURE = "IJobManager.ProcessJobFailure"
CANCELLATION = "IJobManager.ProcessJobCancellation"
CANCEL = "IJobManager.CancelJob"
READING = "IJobManager.GetJobById"

NOT_IN_PROGRESS = {
    JobStatus.COMPLETED: "JOB_TERMINAL",
    JobStatus.FAILED: "JOB_TERMINAL",
    JobStatus.CANCELED: "JOB_CANCELED",
    JobStatus.SCHEDULED: "JOB_NOT_IN_PROGRESS",
    JobStatus.QUEUED: "JOB_NOT_IN_PROGRESS",
}


@suite.case(
    SUBMIT, "1. Set initial job properties: Queued, created and updated now, on the job itself"
)
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = Job(payload=[1, 2], status=JobStatus.FAILED, retry_count=7)
    assert data(await manager.submit_job(job)) == job.id
    now = env.clock.now()
    assert (job.status, job.created_at, job.last_updated_at) == (JobStatus.QUEUED, now, now)
    assert (job.retry_count, job.max_retries) == (0, 3)
    assert await read(manager, job.id) == job


@suite.case(SUBMIT, "2. Persist the job: the id is the answer, a repeated one too")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await submitted(manager, payload="first")
    env.clock.advance(1)
    assert data(await manager.submit_job(Job(id=job.id, payload="second"))) == job.id
    assert (await read(manager, job.id)).payload == "first"
    assert data(await manager.get_job_statistics()).queued_count == 1


@suite.case(SUBMIT, "what the store refuses is passed on, and the given job is as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = Job(name="")
    assert code(await manager.submit_job(job)) == "INVALID_NAME"
    assert (job.created_at, job.max_retries) == (None, None)
    nothing: Any = None
    assert code(await manager.submit_job(nothing)) == "INVALID_JOB"


@suite.case(SUBMIT, "max_retries is the job's own or the configuration's default")
async def _(env: Env) -> None:
    manager = await open_manager(env, JobManagerConfiguration(default_max_retries=1))
    assert (await submitted(manager)).max_retries == 1
    assert (await submitted(manager, max_retries=8)).max_retries == 8
    assert (await submitted(manager, max_retries=0)).max_retries == 0


@suite.case(CLAIM, "jobs are InProgress and assigned to the worker, up to the number asked for")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    ids = [(await submitted(manager)).id for _ in range(3)]
    got = data(await manager.claim_jobs_for_processing(WORKER, 2))
    assert [job.id for job in got] == ids[:2]
    assert {(job.status, job.worker_id) for job in got} == {(JobStatus.IN_PROGRESS, WORKER)}
    (last,) = data(await manager.claim_jobs_for_processing(OTHER_WORKER, 2))
    assert (last.id, last.worker_id) == (ids[2], OTHER_WORKER)
    assert code(await manager.claim_jobs_for_processing(WORKER, -1)) == "INVALID_LIMIT"


@suite.case(
    CLAIM, "max_claim_batch_size is what a claim takes without a number, and its maximum with one"
)
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for _ in range(25):
        await submitted(manager)
    assert len(data(await manager.claim_jobs_for_processing(WORKER))) == 10
    assert len(data(await manager.claim_jobs_for_processing(WORKER, 3))) == 3
    assert len(data(await manager.claim_jobs_for_processing(WORKER, 12))) == 10
    assert data(await manager.claim_jobs_for_processing(WORKER, 0)) == []
    assert len(data(await manager.claim_jobs_for_processing(WORKER, 1_000_000))) == 2


@suite.case(CLAIM, "UpdateJob with the claimed copies, as the text does it, changes nothing more")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await submitted(manager)
    job = await claimed(manager)
    job.update_status(JobStatus.IN_PROGRESS)
    job.worker_id = WORKER
    assert data(await manager.store.update_job(job)) == job


@suite.case(SUCCESS, "an InProgress job is Completed with its result")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    env.clock.advance(2)
    done(await manager.process_job_success(job.id, "42"))
    found = await read(manager, job.id)
    assert (found.status, found.result, found.exception) == (JobStatus.COMPLETED, "42", None)
    assert (found.completed_at, found.last_updated_at) == (env.clock.now(), env.clock.now())
    assert (found.worker_id, found.retry_count) == (None, 0)


@suite.case(SUCCESS, "a job that is not InProgress is refused with its code and stays as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    assert code(await manager.process_job_success(uuid.uuid4(), "x")) == "JOB_NOT_FOUND"
    for status, expected in NOT_IN_PROGRESS.items():
        job = await in_status(manager, status)
        assert code(await manager.process_job_success(job.id, "x")) == expected
        assert await read(manager, job.id) == job


@suite.case(SUCCESS, "a claim that has timed out is CLAIM_EXPIRED, to the microsecond")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    env.clock.advance(300)
    assert code(await manager.process_job_success(job.id, "late")) == "CLAIM_EXPIRED"
    assert await read(manager, job.id) == job
    env.clock.advance(-0.000001)
    done(await manager.process_job_success(job.id, "just in time"))


@suite.case(FAILURE, "1. Get current job state: an unknown job is JOB_NOT_FOUND and named")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    unknown = uuid.uuid4()
    result = await manager.process_job_failure(unknown, "error")
    assert code(result) == "JOB_NOT_FOUND"
    assert result.error is not None
    assert str(unknown) in result.error.message


@suite.case(FAILURE, "2. Check if retry is possible: Scheduled, retry counted, worker released")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    done(await manager.process_job_failure(job.id, "first error"))
    found = await read(manager, job.id)
    assert found.status is JobStatus.SCHEDULED
    assert (found.retry_count, found.worker_id) == (1, None)
    assert (found.exception, found.completed_at) == ("first error", None)
    assert found.retry_delay_until == env.clock.now() + timedelta(seconds=4)


@suite.case(FAILURE, "the delays are 4, 8 and 16 seconds, then the job is Failed")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await submitted(manager)
    for retry, seconds in ((1, 4), (2, 8), (3, 16)):
        await claimed(manager)
        done(await manager.process_job_failure(job.id, f"error {retry}"))
        found = await read(manager, job.id)
        assert (found.status, found.retry_count) == (JobStatus.SCHEDULED, retry)
        assert found.retry_delay_until == env.clock.now() + timedelta(seconds=seconds)
        env.clock.advance(seconds - 0.000001)
        assert data(await manager.claim_jobs_for_processing(WORKER, 1)) == []
        env.clock.advance(0.000001)
    await claimed(manager)
    done(await manager.process_job_failure(job.id, "the last error"))
    found = await read(manager, job.id)
    assert (found.status, found.retry_count) == (JobStatus.FAILED, 3)
    assert (found.exception, found.worker_id) == ("the last error", None)
    assert found.completed_at == env.clock.now()
    env.clock.advance(86_400)
    assert data(await manager.claim_jobs_for_processing(WORKER, 1)) == []


@suite.case(FAILURE, "with max_retries 0 the first failure is Failed, no retry counted")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await submitted(manager, max_retries=0)
    await claimed(manager)
    done(await manager.process_job_failure(job.id, "error"))
    found = await read(manager, job.id)
    assert (found.status, found.retry_count) == (JobStatus.FAILED, 0)


@suite.case(
    FAILURE, "3. Persist updated job state: a retry that succeeds keeps what it went through"
)
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.SCHEDULED)
    env.clock.advance(4)
    again = await claimed(manager)
    assert (again.retry_count, again.exception) == (1, "failed once")
    done(await manager.process_job_success(job.id, "at last"))
    found = await read(manager, job.id)
    assert (found.status, found.retry_count) == (JobStatus.COMPLETED, 1)
    assert (found.result, found.exception) == ("at last", "failed once")


@suite.case(FAILURE, "a job that is not InProgress is refused with its code and stays as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for status, expected in NOT_IN_PROGRESS.items():
        job = await in_status(manager, status)
        assert code(await manager.process_job_failure(job.id, "x")) == expected
        assert await read(manager, job.id) == job
    running = await claimed(manager)
    nothing: Any = None
    assert code(await manager.process_job_failure(running.id, nothing)) == "INVALID_INPUT"
    assert await read(manager, running.id) == running


@suite.case(FAILURE, "the text's own ProcessJobFailure, run on JobStore.UpdateJob, gives the same")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await submitted(manager, max_retries=1)
    for expected in (JobStatus.SCHEDULED, JobStatus.FAILED):
        await claimed(manager)
        await _as_written(manager, job.id, "error", env)
        found = await read(manager, job.id)
        assert (found.status, found.retry_count) == (expected, 1)
        assert (found.exception, found.worker_id) == ("error", None)
        if found.retry_delay_until is not None:
            assert found.retry_delay_until == env.clock.now() + timedelta(seconds=4)
            env.clock.set(found.retry_delay_until)


async def _as_written(manager: JobManager, job_id: object, exception: str, env: Env) -> None:
    """DefaultJobManager.ProcessJobFailure, line by line."""
    job = await read(manager, job_id)
    assert job.max_retries is not None
    if job.retry_count < job.max_retries:
        job.increment_retry_count()
        delay = timedelta(seconds=2**job.retry_count * 2.0)
        job.set_retry_time(env.clock.now() + delay)
        job.update_status(JobStatus.SCHEDULED)
        job.worker_id = None
        job.exception = exception
    else:
        job.set_exception(exception)
    done(await manager.store.update_job(job))


@suite.case(CANCELLATION, "Queued, Scheduled and InProgress jobs are Canceled")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for status in (JobStatus.IN_PROGRESS, JobStatus.SCHEDULED, JobStatus.QUEUED):
        job = await in_status(manager, status)
        done(await manager.process_job_cancellation(job.id))
        found = await read(manager, job.id)
        assert (found.status, found.worker_id) == (JobStatus.CANCELED, None)
        assert found.completed_at == env.clock.now()
    env.clock.advance(3600)
    assert data(await manager.claim_jobs_for_processing(WORKER, 5)) == []


@suite.case(CANCELLATION, "an ended job is refused with its code and stays as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    assert code(await manager.process_job_cancellation(uuid.uuid4())) == "JOB_NOT_FOUND"
    for status in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED):
        job = await in_status(manager, status)
        assert code(await manager.process_job_cancellation(job.id)) == NOT_IN_PROGRESS[status]
        assert await read(manager, job.id) == job


@suite.case(CANCEL, "a job that has not started is Canceled, a waiting retry too")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for status in (JobStatus.SCHEDULED, JobStatus.QUEUED):
        job = await in_status(manager, status)
        done(await manager.cancel_job(job.id))
        assert (await read(manager, job.id)).status is JobStatus.CANCELED
    queued = await in_status(manager, JobStatus.CANCELED)
    assert queued.exception is None


@suite.case(CANCEL, "a job that has started is JOB_ALREADY_STARTED and goes on")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    assert code(await manager.cancel_job(job.id)) == "JOB_ALREADY_STARTED"
    assert await read(manager, job.id) == job
    done(await manager.process_job_success(job.id, "done"))


@suite.case(CANCEL, "an unknown or ended job is refused with its code and stays as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    assert code(await manager.cancel_job(uuid.uuid4())) == "JOB_NOT_FOUND"
    assert code(await manager.cancel_job("")) == "INVALID_ID"
    for status in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED):
        job = await in_status(manager, status)
        assert code(await manager.cancel_job(job.id)) == NOT_IN_PROGRESS[status]
        assert await read(manager, job.id) == job


@suite.case(READING, "the manager reads what the store holds, and JOB_NOT_FOUND what it does not")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    assert await read(manager, job.id) == await read(manager.store, job.id)
    assert code(await manager.get_job_by_id(uuid.uuid4())) == "JOB_NOT_FOUND"


@suite.case("IJobManager.GetJobStatistics", "the manager counts what the store counts")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await in_status(manager, JobStatus.SCHEDULED)
    counted = data(await manager.get_job_statistics())
    assert counted.scheduled_count == 1
    assert counted == data(await manager.store.get_job_statistics())
