"""IJobStore: UpdateJob, UpdateJobStatus, UpdateJobResult, UpdateJobException."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headrace.contracts.job_store import Job, JobManager, JobStatus
from headrace.manager import JobManager as CoreManager
from headrace.model import Job as StoredJob
from headrace.testing.conformance.job_store.factories import (
    OTHER_WORKER,
    WORKER,
    claimed,
    code,
    data,
    done,
    in_status,
    open_manager,
    ours,
    read,
    submitted,
)
from headrace.testing.conformance.job_store.suite import suite
from headrace.testing.conformance.kit import Env

UPDATE = "IJobStore.UpdateJob"
STATUS = "IJobStore.UpdateJobStatus"
RESULT = "IJobStore.UpdateJobResult"
EXCEPTION = "IJobStore.UpdateJobException"

S = JobStatus
ENDED = {S.COMPLETED: "JOB_TERMINAL", S.FAILED: "JOB_TERMINAL", S.CANCELED: "JOB_CANCELED"}

LEGAL = {
    (S.QUEUED, S.IN_PROGRESS),
    (S.QUEUED, S.CANCELED),
    (S.SCHEDULED, S.CANCELED),
    (S.SCHEDULED, S.QUEUED),
    (S.IN_PROGRESS, S.QUEUED),
    (S.IN_PROGRESS, S.COMPLETED),
    (S.IN_PROGRESS, S.FAILED),
    (S.IN_PROGRESS, S.CANCELED),
}
REFUSED = {
    (S.QUEUED, S.SCHEDULED): "INVALID_UPDATE",
    (S.QUEUED, S.COMPLETED): "JOB_NOT_IN_PROGRESS",
    (S.QUEUED, S.FAILED): "JOB_NOT_IN_PROGRESS",
    (S.SCHEDULED, S.IN_PROGRESS): "INVALID_TRANSITION",
    (S.SCHEDULED, S.COMPLETED): "JOB_NOT_IN_PROGRESS",
    (S.SCHEDULED, S.FAILED): "JOB_NOT_IN_PROGRESS",
    (S.IN_PROGRESS, S.SCHEDULED): "INVALID_UPDATE",
}


async def refused(manager: JobManager, given: Job, expected: str) -> None:
    """UpdateJob answers with the code, and the stored job is as it was."""
    before = await read(manager, given.id)
    assert code(await manager.store.update_job(given)) == expected
    assert await read(manager, given.id) == before


@suite.case(STATUS, "every pair of statuses: the legal ones change, the others change nothing")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for source in S:
        for target in S:
            job = await in_status(manager, source)
            env.clock.advance(0.001)
            result = await manager.store.update_job_status(job.id, target)
            after = await read(manager, job.id)
            if (source, target) in LEGAL:
                assert (data(result), after.status) == (after, target)
            elif source is target:
                assert data(result) == after == job
            else:
                expected = ENDED.get(source) or REFUSED[source, target]
                assert (code(result), after) == (expected, job), (source, target)
            if after.status in (S.QUEUED, S.SCHEDULED):
                done(await manager.store.delete_job(job.id))


@suite.case(STATUS, "an unknown job is JOB_NOT_FOUND, an unknown status INVALID_STATUS")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    assert code(await manager.store.update_job_status(uuid.uuid4(), S.FAILED)) == "JOB_NOT_FOUND"
    job = await in_status(manager, S.QUEUED)
    nonsense: Any = "Sleeping"
    assert code(await manager.store.update_job_status(job.id, nonsense)) == "INVALID_STATUS"
    assert await read(manager, job.id) == job


@suite.case(STATUS, "a due retry can be put in progress, and a status may be given by its text")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.SCHEDULED)
    env.clock.advance(4)
    text: Any = "InProgress"
    started = data(await manager.store.update_job_status(job.id, text))
    assert started.status is S.IN_PROGRESS
    assert started.worker_id is not None
    done(await manager.process_job_success(job.id, "done"))


@suite.case(STATUS, "COMPLETED takes the result and FAILED the exception that were noted before")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.IN_PROGRESS)
    done(await manager.store.update_job_result(job.id, "noted"))
    completed = data(await manager.store.update_job_status(job.id, S.COMPLETED))
    assert (completed.status, completed.result) == (S.COMPLETED, "noted")
    job = await in_status(manager, S.IN_PROGRESS)
    done(await manager.store.update_job_exception(job.id, "noted too"))
    failed = data(await manager.store.update_job_status(job.id, S.FAILED))
    assert (failed.status, failed.exception, failed.retry_count) == (S.FAILED, "noted too", 0)


@suite.case(UPDATE, "a copy with another status takes the job there, result and all")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await submitted(manager)
    job = await claimed(manager)
    job.result = {"rows": 3}
    job.update_status(S.COMPLETED)
    env.clock.advance(1)
    updated = data(await manager.store.update_job(job))
    assert (updated.status, updated.result) == (S.COMPLETED, {"rows": 3})
    assert (updated.completed_at, updated.worker_id) == (env.clock.now(), None)
    assert await read(manager, job.id) == updated


@suite.case(UPDATE, "a copy with the same status and the same fields changes nothing")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for status in S:
        job = await in_status(manager, status)
        env.clock.advance(0.001)
        assert data(await manager.store.update_job(job)) == job
        if status in (S.QUEUED, S.SCHEDULED):
            done(await manager.store.delete_job(job.id))


@suite.case(UPDATE, "a worker is given by putting a Queued job in progress with its id")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.QUEUED)
    job.update_status(S.IN_PROGRESS)
    job.worker_id = OTHER_WORKER
    updated = data(await manager.store.update_job(job))
    assert (updated.status, updated.worker_id) == (S.IN_PROGRESS, OTHER_WORKER)
    assert data(await manager.claim_jobs_for_processing(WORKER, 1)) == []
    updated.worker_id = WORKER
    await refused(manager, updated, "INVALID_UPDATE")


@suite.case(UPDATE, "a plain delay of a job in progress costs no retry")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.IN_PROGRESS)
    when = env.clock.now() + timedelta(seconds=30, microseconds=5)
    job.update_status(S.SCHEDULED)
    job.set_retry_time(when)
    updated = data(await manager.store.update_job(job))
    assert (updated.status, updated.retry_delay_until) == (S.SCHEDULED, when)
    assert (updated.retry_count, updated.worker_id) == (0, None)
    env.clock.set(when)
    assert (await claimed(manager)).id == job.id


@suite.case(UPDATE, "name, payload and max_retries are fixed: INVALID_UPDATE and nothing changes")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.QUEUED)
    await refused(manager, replace(job, name="another"), "INVALID_UPDATE")
    await refused(manager, replace(job, payload={"n": 2}), "INVALID_UPDATE")
    await refused(manager, replace(job, max_retries=9), "INVALID_UPDATE")
    await refused(manager, replace(job, retry_count=1), "INVALID_UPDATE")
    await refused(manager, replace(job, worker_id=WORKER), "INVALID_UPDATE")
    later = env.clock.now() + timedelta(hours=1)
    await refused(manager, replace(job, retry_delay_until=later), "INVALID_UPDATE")


@suite.case(UPDATE, "the error names every field that could not be updated, and why")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.QUEUED)
    given = replace(job, name="another", payload=1, retry_count=2, result="r", exception="e")
    answer = await manager.store.update_job(given)
    assert code(answer) == "INVALID_UPDATE"
    assert answer.error is not None
    assert set(answer.error.fields) == {"name", "payload", "retry_count", "result", "exception"}
    for name, why in answer.error.fields.items():
        assert len(why) > 10
        assert name in answer.error.message
        assert why in answer.error.message
    assert await read(manager, job.id) == job
    await claimed(manager)
    done(await manager.process_job_success(job.id, "kept"))
    ended = await read(manager, job.id)
    answer = await manager.store.update_job(replace(ended, result="other", payload=2))
    assert code(answer) == "JOB_TERMINAL"
    assert answer.error is not None
    assert set(answer.error.fields) == {"result", "payload"}
    assert await read(manager, job.id) == ended


@suite.case(UPDATE, "times that the store writes itself are not taken, and named as not updated")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await submitted(manager)
    job = await claimed(manager)
    mine = env.clock.now() - timedelta(days=1)
    given = replace(job, status=S.COMPLETED, result=1, completed_at=mine, last_updated_at=mine)
    env.clock.advance(1)
    answer = await manager.store.update_job(given)
    assert set(answer.not_updated) == {"completed_at", "last_updated_at"}
    assert data(answer).completed_at == env.clock.now()
    assert (await manager.store.update_job(data(answer))).not_updated == {}


@suite.case(UPDATE, "a job that waits is put off, brought forward, and put into the pool")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    queued = await in_status(manager, S.QUEUED)
    later = env.clock.now() + timedelta(hours=1, microseconds=3)
    put_off = data(
        await manager.store.update_job(replace(queued, status=S.SCHEDULED, retry_delay_until=later))
    )
    assert (put_off.status, put_off.retry_delay_until) == (S.SCHEDULED, later)
    assert data(await manager.claim_jobs_for_processing(WORKER, 1)) == []
    sooner = env.clock.now() + timedelta(minutes=1)
    moved = data(await manager.store.update_job(replace(put_off, retry_delay_until=sooner)))
    assert moved.retry_delay_until == sooner
    env.clock.set(sooner)
    assert (await claimed(manager)).id == queued.id
    done(await manager.process_job_failure(queued.id, "once"))
    retry = await read(manager, queued.id)
    pooled = data(
        await manager.store.update_job(replace(retry, status=S.QUEUED, retry_delay_until=None))
    )
    assert (pooled.status, pooled.retry_count, pooled.exception) == (S.QUEUED, 1, "once")
    assert await read(manager, queued.id) == pooled
    assert (await claimed(manager)).id == queued.id


@suite.case(UPDATE, "what a status cannot carry is refused, not dropped")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.IN_PROGRESS)
    later = env.clock.now() + timedelta(hours=1)
    scheduled = replace(job, status=S.SCHEDULED, retry_delay_until=later)
    await refused(manager, replace(job, status=S.SCHEDULED), "INVALID_UPDATE")
    await refused(manager, replace(scheduled, exception="why"), "INVALID_UPDATE")
    await refused(manager, replace(scheduled, retry_count=2), "INVALID_UPDATE")
    await refused(manager, replace(job, status=S.FAILED, result="r"), "INVALID_UPDATE")
    await refused(manager, replace(job, status=S.COMPLETED, exception="why"), "INVALID_UPDATE")
    done(await manager.process_job_success(job.id, "still its own"))


@suite.case(UPDATE, "a Scheduled copy past max_retries is INVALID_TRANSITION and nothing changes")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await submitted(manager, max_retries=0)
    job = await claimed(manager)
    job.increment_retry_count()
    job.set_retry_time(env.clock.now())
    job.update_status(S.SCHEDULED)
    job.exception = "once too often"
    await refused(manager, job, "INVALID_TRANSITION")


@suite.case(UPDATE, "a copy of an older claim is CLAIM_LOST, whatever it wants")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await submitted(manager)
    old = await claimed(manager)
    done(await manager.store.release_job_to_pool(old.id))
    new = await claimed(manager, OTHER_WORKER)
    for status in (S.COMPLETED, S.FAILED, S.CANCELED, S.QUEUED):
        await refused(manager, replace(old, status=status), "CLAIM_LOST")
    later = env.clock.now() + timedelta(hours=1)
    delayed = replace(old, status=S.SCHEDULED, retry_delay_until=later)
    await refused(manager, delayed, "CLAIM_LOST")
    await refused(manager, replace(old, worker_id=None, result="late"), "CLAIM_LOST")
    new.update_status(S.COMPLETED)
    done(await manager.store.update_job(new))


@suite.case(UPDATE, "an unknown job is JOB_NOT_FOUND, and what is no job INVALID_JOB")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    assert code(await manager.store.update_job(Job())) == "JOB_NOT_FOUND"
    nothing: Any = None
    assert code(await manager.store.update_job(nothing)) == "INVALID_JOB"
    job = await in_status(manager, S.QUEUED)
    nonsense: Any = "Sleeping"
    await refused(manager, replace(job, status=nonsense), "INVALID_STATUS")


@suite.case(UPDATE, "an ended job does not change: JOB_TERMINAL or JOB_CANCELED")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    for status, expected in ENDED.items():
        job = await in_status(manager, status)
        await refused(manager, replace(job, result="another"), expected)
        await refused(manager, replace(job, status=S.QUEUED, result=None), expected)


@suite.case(RESULT, "a result noted on a job in progress shows, and its status stays")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.IN_PROGRESS)
    updated = data(await manager.store.update_job_result(job.id, "half of it"))
    assert (updated.status, updated.result) == (S.IN_PROGRESS, "half of it")
    assert await read(manager, job.id) == replace(job, result="half of it")
    done(await manager.process_job_success(job.id, "all of it"))
    assert (await read(manager, job.id)).result == "all of it"


@suite.case(RESULT, "a job that is not in progress is refused with its code and stays as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await _refuse_elsewhere(manager, "update_job_result")


@suite.case(RESULT, "what was noted in one attempt is void in the next")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.IN_PROGRESS)
    done(await manager.store.update_job_result(job.id, "stale"))
    done(await manager.store.release_job_to_pool(job.id))
    assert (await read(manager, job.id)).result is None
    assert (await claimed(manager)).result is None
    assert data(await manager.store.update_job_status(job.id, S.COMPLETED)).result is None


@suite.case(EXCEPTION, "an exception noted on a job in progress shows, and its status stays")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await in_status(manager, S.IN_PROGRESS)
    done(await manager.store.update_job_result(job.id, "half"))
    updated = data(await manager.store.update_job_exception(job.id, "a warning"))
    assert (updated.status, updated.exception) == (S.IN_PROGRESS, "a warning")
    assert updated == replace(job, result="half", exception="a warning")
    raised = data(await ours(manager).update_job_exception(job.id, ValueError("from code")))
    assert raised.exception == "from code"


@suite.case(EXCEPTION, "a job that is not in progress is refused with its code and stays as it was")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await _refuse_elsewhere(manager, "update_job_exception")
    job = await in_status(manager, S.IN_PROGRESS)
    nothing: Any = None
    assert code(await manager.store.update_job_exception(job.id, nothing)) == "INVALID_INPUT"


async def _refuse_elsewhere(manager: JobManager, method: str) -> None:
    call = getattr(manager.store, method)
    assert code(await call(uuid.uuid4(), "text")) == "JOB_NOT_FOUND"
    waiting = dict.fromkeys((S.SCHEDULED, S.QUEUED), "JOB_NOT_IN_PROGRESS")
    for status, expected in (ENDED | waiting).items():
        job = await in_status(manager, status)
        assert code(await call(job.id, "text")) == expected
        assert await read(manager, job.id) == job
        if status in waiting:
            done(await manager.store.delete_job(job.id))


class LateManager(CoreManager):
    """Something else happens between the next read of a job and what follows from it."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def get(self, job_id: str) -> StoredJob:
        job = await super().get(job_id)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return job


@suite.case(UPDATE, "a copy whose claim is lost during the update takes the job from nobody")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    plain = ours(manager).records.manager
    late = LateManager(plain.store, clock=plain.clock, policies=plain.policies, tenant=plain.tenant)
    for target in (S.QUEUED, S.COMPLETED, S.FAILED, S.CANCELED):
        await submitted(manager)
        stale = await claimed(manager)

        async def lose_it(job_id: object = stale.id) -> None:
            done(await manager.store.release_job_to_pool(job_id))  # type: ignore[arg-type]
            assert (await claimed(manager, OTHER_WORKER)).id == job_id

        late.meanwhile = lose_it
        ours(manager).records.manager = late
        assert code(await manager.store.update_job(replace(stale, status=target))) == "CLAIM_LOST"
        ours(manager).records.manager = plain
        held = await read(manager, stale.id)
        assert (held.status, held.worker_id) == (S.IN_PROGRESS, OTHER_WORKER), target
        done(await manager.process_job_success(stale.id))


@suite.case(UPDATE, "a copy of an older claim is CLAIM_LOST whatever it wants")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    await submitted(manager)
    stale = await claimed(manager)
    done(await manager.store.release_job_to_pool(stale.id))
    for target in S:
        await refused(manager, replace(stale, status=target), "CLAIM_LOST")
    await claimed(manager, OTHER_WORKER)
    for target in S:
        await refused(manager, replace(stale, status=target), "CLAIM_LOST")
