"""Maintenance and Resource Management: CleanupExpiredJobs, ResetRunningJobs, DeleteJobs, Close."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from headrace.contracts.backend_api import (
    Backend,
    BackendError,
    InvalidArgumentError,
    InvalidStateError,
    Job,
    JobNotFoundError,
    JobStatus,
)
from headrace.testing.conformance.backend_api.suite import (
    FINAL,
    NOT_FINAL,
    STATUSES,
    S,
    drain,
    put,
    suite,
)
from headrace.testing.conformance.kit import CaseFunction, Env, raises

HOUR = timedelta(hours=1)


@suite.case(
    "CleanupExpiredJobs: Error Conditions", "a ttl of 0 or less is an error and deletes nothing"
)
async def bad_ttl(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.COMPLETED)
    env.clock.advance(1_000_000)
    for ttl in (timedelta(0), timedelta(seconds=-1), 0, -5.0):
        with raises(InvalidArgumentError):
            await backend.cleanup_expired_jobs(ttl)
    assert (await backend.get_job("a")).status is S.COMPLETED


@suite.case(
    "CleanupExpiredJobs: Postconditions",
    "COMPLETED jobs older than ttl are deleted, younger ones stay",
)
async def cleanup(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "old", S.COMPLETED)
    env.clock.advance(60)
    await put(backend, "young", S.COMPLETED)
    env.clock.advance(HOUR.total_seconds() - 30)
    await backend.cleanup_expired_jobs(HOUR)
    with raises(JobNotFoundError):
        await backend.get_job("old")
    assert (await backend.get_job("young")).status is S.COMPLETED


@suite.case("CleanupExpiredJobs: Postconditions", "age counts from completion, not from creation")
async def cleanup_by_completion(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    env.clock.advance(2 * HOUR.total_seconds())
    await backend.complete_job("a", b"")
    await backend.cleanup_expired_jobs(HOUR)
    assert (await backend.get_job("a")).status is S.COMPLETED


def _kept(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", status)
        env.clock.advance(1000 * HOUR.total_seconds())
        await backend.cleanup_expired_jobs(HOUR)
        assert await backend.get_job("a") == before

    return case


for _status in STATUSES:
    if _status is not S.COMPLETED:
        suite.case(
            "CleanupExpiredJobs: Backend Expectations", f"an old job that is {_status} stays"
        )(_kept(_status))


@suite.case("CleanupExpiredJobs: Observable Effects", "the jobs are gone and the statistics say so")
async def cleanup_effects(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for number in range(5):
        await put(backend, f"j{number}", S.COMPLETED, tags=["t"])
    await put(backend, "pending", S.INITIAL_PENDING, tags=["t"])
    env.clock.advance(10)
    await backend.cleanup_expired_jobs(5.0)
    stats = await backend.get_job_stats(["t"])
    assert (stats.total_jobs, stats.completed_jobs, stats.pending_jobs) == (1, 0, 1)
    assert await backend.enqueue_job(Job(id="j0")) == "j0"


@suite.case("CleanupExpiredJobs: Backend Expectations", "any number of old jobs goes in one call")
async def cleanup_many(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}") for n in range(1200)])
    jobs = await backend.dequeue_jobs("w", [], 1200)
    for job in jobs:
        await backend.complete_job(job.id, None)
    env.clock.advance(10)
    await backend.cleanup_expired_jobs(1)
    assert (await backend.get_job_stats([])).total_jobs == 0


@suite.case(
    "ResetRunningJobs: Postconditions", "every RUNNING job becomes UNKNOWN_RETRY, whoever holds it"
)
async def reset(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = {f"j{n}": await put(backend, f"j{n}", S.RUNNING) for n in range(5)}
    env.clock.advance(30)
    await backend.reset_running_jobs()
    for job_id, job in before.items():
        after = await backend.get_job(job_id)
        assert after == msgspec.structs.replace(
            job, status=S.UNKNOWN_RETRY, error_message=after.error_message
        )
        assert (after.assignee_id, after.assigned_at) == (job.assignee_id, job.assigned_at)


@suite.case("ResetRunningJobs: Postconditions", "a CANCELLING job becomes UNKNOWN_STOPPED")
async def reset_cancelling(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.CANCELLING)
    env.clock.advance(30)
    await backend.reset_running_jobs()
    after = await backend.get_job("a")
    assert (after.status, after.finalized_at) == (S.UNKNOWN_STOPPED, env.clock.now())
    assert (after.assignee_id, after.assigned_at) == (before.assignee_id, before.assigned_at)


@suite.case("ResetRunningJobs: Postconditions", "jobs in other statuses stay as they are")
async def reset_others(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    others = [status for status in STATUSES if status not in (S.RUNNING, S.CANCELLING)]
    before = [await put(backend, status.lower(), status) for status in others]
    env.clock.advance(30)
    await backend.reset_running_jobs()
    assert [await backend.get_job(job.id) for job in before] == before


@suite.case("ResetRunningJobs: Postconditions", "without running jobs it is a no-op, not an error")
async def reset_nothing(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.reset_running_jobs()
    await backend.enqueue_job(Job(id="a"))
    await backend.reset_running_jobs()
    assert (await backend.get_job("a")).status is S.INITIAL_PENDING


@suite.case("ResetRunningJobs: Observable Effects", "the jobs are eligible and their workers free")
async def reset_effects(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    await put(backend, "b", S.RUNNING)
    await backend.reset_running_jobs()
    assert await backend.complete_job("a", b"") == {}
    assert await drain(backend) == {"b"}


@suite.case("DeleteJobs: Preconditions", "neither tags nor jobIDs is an error and deletes nothing")
async def delete_without_filter(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.COMPLETED)
    nil: Any = None
    for tags, job_ids in (([], []), (nil, nil)):
        with raises(InvalidArgumentError):
            await backend.delete_jobs(tags, job_ids)
    assert (await backend.get_job("a")).status is S.COMPLETED


def _deleted(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        await put(backend, "named", status)
        await put(backend, "tagged", status, tags=["t", "u"])
        await put(backend, "kept", status, tags=["t"])
        await backend.delete_jobs(["t", "u"], ["named"])
        for job_id in ("named", "tagged"):
            with raises(JobNotFoundError):
                await backend.get_job(job_id)
        assert (await backend.get_job("kept")).status is status
        assert (await backend.get_job_stats([])).total_jobs == 1

    return case


def _not_deleted(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        finals = [await put(backend, final.lower(), final, tags=["t"]) for final in FINAL]
        live = await put(backend, "live", status, tags=["t"])
        with raises(InvalidStateError):
            await backend.delete_jobs(["t"], [])
        with raises(InvalidStateError):
            await backend.delete_jobs([], ["completed", "live"])
        assert [await backend.get_job(job.id) for job in (*finals, live)] == [*finals, live]

    return case


for _status in FINAL:
    suite.case(
        "DeleteJobs: Postconditions", f"jobs that are {_status} are deleted, by tags or by ID"
    )(_deleted(_status))
for _status in NOT_FINAL:
    suite.case(
        "DeleteJobs: Error Conditions", f"one matching job that is {_status}: none is deleted"
    )(_not_deleted(_status))


@suite.case("DeleteJobs: Postconditions", "IDs that do not exist are passed over")
async def delete_unknown(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.COMPLETED)
    await backend.delete_jobs([], ["ghost", "a"])
    await backend.delete_jobs(["absent"], ["a"])
    assert (await backend.get_job_stats([])).total_jobs == 0


@suite.case(
    "DeleteJobs: Observable Effects", "a deleted job's ID is free, and its tags count it no more"
)
async def delete_effects(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.STOPPED, tags=["t"])
    await backend.delete_jobs([], ["a"])
    assert (await backend.get_job_stats(["t"])).total_jobs == 0
    assert await backend.enqueue_job(Job(id="a")) == "a"
    assert (await backend.get_job("a")).status is S.INITIAL_PENDING


@suite.case("Close: Postconditions", "the backend is unusable afterwards")
async def closed(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    await backend.close()
    with raises(BackendError):
        await backend.get_job("a")


@suite.case("Close: Backend Expectations", "closing twice is graceful")
async def closed_twice(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.close()
    await backend.close()


@suite.case("Close: Observable Effects", "leaving `async with` closes it")
async def closed_by_with(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    async with backend as same:
        assert same is backend
        await same.enqueue_job(Job(id="a"))
    with raises(BackendError):
        await backend.enqueue_job(Job(id="b"))
