"""Job Lifecycle: CompleteJob, FailJob, StopJob, StopJobWithRetry, MarkJobUnknownStopped.

What the text says of each of the five in the same words is stated once here and registered for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec

from headrace.contracts.backend_api import (
    Backend,
    InvalidArgumentError,
    InvalidStateError,
    Job,
    JobNotFoundError,
    JobStatus,
)
from headrace.testing.conformance.backend_api.suite import (
    FINAL,
    STATUSES,
    S,
    drain,
    put,
    suite,
    worker_of,
)
from headrace.testing.conformance.kit import CaseFunction, Env, raises


class Call(msgspec.Struct, frozen=True):
    """One of the five: what it takes jobs from, and to."""

    name: str
    run: Callable[[Backend, str], Awaitable[dict[str, int]]]
    sources: tuple[JobStatus, ...]
    target: JobStatus


COMPLETE = Call(
    "CompleteJob",
    lambda backend, job_id: backend.complete_job(job_id, b"done"),
    (S.RUNNING, S.CANCELLING, S.UNKNOWN_RETRY, S.UNKNOWN_STOPPED),
    S.COMPLETED,
)
FAIL = Call(
    "FailJob",
    lambda backend, job_id: backend.fail_job(job_id, "said"),
    (S.RUNNING, S.UNKNOWN_RETRY),
    S.FAILED_RETRY,
)
STOP = Call(
    "StopJob",
    lambda backend, job_id: backend.stop_job(job_id, "said"),
    (S.RUNNING, S.CANCELLING, S.UNKNOWN_RETRY),
    S.STOPPED,
)
STOP_WITH_RETRY = Call(
    "StopJobWithRetry",
    lambda backend, job_id: backend.stop_job_with_retry(job_id, "said"),
    (S.CANCELLING,),
    S.STOPPED,
)
MARK_UNKNOWN = Call(
    "MarkJobUnknownStopped",
    lambda backend, job_id: backend.mark_job_unknown_stopped(job_id, "said"),
    (S.CANCELLING, S.UNKNOWN_RETRY, S.RUNNING),
    S.UNKNOWN_STOPPED,
)
CALLS = (COMPLETE, FAIL, STOP, STOP_WITH_RETRY, MARK_UNKNOWN)


def expected(call: Call, before: Job, now: datetime) -> Job:
    """The job after the call, every field of it, by the text's postconditions."""
    changes: dict[str, Any] = {"status": call.target}
    if call is COMPLETE:
        changes |= {"result": b"done", "finalized_at": now}
        return msgspec.structs.replace(before, **changes)
    changes["error_message"] = "said"
    if call in (FAIL, STOP_WITH_RETRY):
        changes |= {"retry_count": before.retry_count + 1, "last_retry_at": now}
    if call.target in FINAL:
        changes["finalized_at"] = before.finalized_at or now
    return msgspec.structs.replace(before, **changes)


def _valid(call: Call, source: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", source)
        other = await put(backend, "other", S.RUNNING)
        env.clock.advance(30)
        freed = await call.run(backend, "a")
        assert await backend.get_job("a") == expected(call, before, env.clock.now())
        held = source in (S.RUNNING, S.CANCELLING)
        assert freed == ({worker_of("a"): 1} if held else {})
        assert await backend.get_job("other") == other

    return case


def _invalid(call: Call, source: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", source)
        env.clock.advance(30)
        with raises(InvalidStateError) as caught:
            await call.run(backend, "a")
        assert "a" in str(caught.error)
        assert await backend.get_job("a") == before

    return case


def _unknown(call: Call) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", call.sources[0])
        with raises(JobNotFoundError):
            await call.run(backend, "b")
        assert await backend.get_job("a") == before
        assert (await backend.get_job_stats([])).total_jobs == 1

    return case


def _empty_id(call: Call) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        with raises(InvalidArgumentError):
            await call.run(backend, "")

    return case


def _preserved(call: Call) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", call.sources[0])
        env.clock.advance(30)
        await call.run(backend, "a")
        after = await backend.get_job("a")
        assert after.assignee_id == worker_of("a")
        assert after.assigned_at == before.assigned_at
        assert after.assigned_at is not None

    return case


def _once(call: Call) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        await put(backend, "a", call.sources[0])
        answers = await asyncio.gather(
            *(call.run(backend, "a") for _ in range(10)), return_exceptions=True
        )
        assert answers.count({worker_of("a"): 1}) == 1
        assert sum(isinstance(answer, InvalidStateError) for answer in answers) == 9
        assert (await backend.get_job("a")).status is call.target

    return case


def _eligibility(call: Call) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        await put(backend, "a", call.sources[0])
        await call.run(backend, "a")
        assert await drain(backend) == (set() if call.target in FINAL else {"a"})

    return case


for _call in CALLS:
    for _status in STATUSES:
        if _status in _call.sources:
            suite.case(f"{_call.name}: Valid State Transitions", f"{_status} → {_call.target}")(
                _valid(_call, _status)
            )
        else:
            suite.case(
                f"{_call.name}: Error Conditions",
                f"a job that is {_status} is an error and stays as it is",
            )(_invalid(_call, _status))
    suite.case(f"{_call.name}: Error Conditions", "a job that does not exist is an error")(
        _unknown(_call)
    )
    suite.case(f"{_call.name}: Preconditions", "an empty jobID is refused")(_empty_id(_call))
    suite.case(f"{_call.name}: Postconditions", "AssigneeID and AssignedAt are preserved")(
        _preserved(_call)
    )
    suite.case(
        f"{_call.name}: Backend Expectations",
        "of concurrent calls one is carried out and frees capacity once",
    )(_once(_call))
    suite.case(
        f"{_call.name}: Observable Effects",
        "the job is never eligible again" if _call.target in FINAL else "the job is eligible again",
    )(_eligibility(_call))


@suite.case("CompleteJob: Postconditions", "the result comes back byte for byte")
async def result_bytes(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for name, result in (("bytes", bytes(range(256))), ("empty", b""), ("none", None)):
        await put(backend, name, S.RUNNING)
        await backend.complete_job(name, result)
        assert (await backend.get_job(name)).result == result


@suite.case("CompleteJob: Postconditions", "StartedAt is kept when it is set already")
async def started_kept(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.RUNNING)
    env.clock.advance(30)
    await backend.complete_job("a", b"")
    assert (await backend.get_job("a")).started_at == before.started_at


@suite.case("CompleteJob: Postconditions", "the new result replaces one that was there")
async def result_replaced(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for name, result in (("new", b"new"), ("none", None)):
        await put(backend, name, S.RUNNING)
        await backend.update_job_status(name, S.UNKNOWN_RETRY, b"partial", "")
        assert (await backend.get_job(name)).result == b"partial"
        await backend.complete_job(name, result)
        assert (await backend.get_job(name)).result == result


@suite.case(
    "CompleteJob: Postconditions",
    "FinalizedAt is the time of completion, even after UNKNOWN_STOPPED",
)
async def finalized_anew(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.UNKNOWN_STOPPED)
    env.clock.advance(30)
    await backend.complete_job("a", b"")
    after = await backend.get_job("a")
    assert after.finalized_at == env.clock.now()
    assert after.finalized_at != before.finalized_at


@suite.case("FailJob: Preconditions", "an empty errorMsg is refused")
async def fail_without_message(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.RUNNING)
    with raises(InvalidArgumentError):
        await backend.fail_job("a", "")
    assert await backend.get_job("a") == before


@suite.case("FailJob: Postconditions", "every failure counts and moves LastRetryAt")
async def failures_count(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    for number in range(1, 8):
        await backend.dequeue_jobs("w", [], 1)
        env.clock.advance(1)
        await backend.fail_job("a", f"failure {number}")
        job = await backend.get_job("a")
        assert (job.retry_count, job.last_retry_at) == (number, env.clock.now())
        assert (job.error_message, job.finalized_at) == (f"failure {number}", None)


@suite.case(
    "FailJob: Important",
    "a failed job stays FAILED_RETRY until it is assigned, never INITIAL_PENDING",
)
async def stays_failed(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.FAILED_RETRY)
    env.clock.advance(3600)
    assert (await backend.get_job("a")).status is S.FAILED_RETRY
    assert (await backend.get_job_stats([])).pending_jobs == 0


@suite.case("StopJob: Preconditions", "errorMsg may be empty, and is stored so")
async def stop_without_message(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.FAILED_RETRY)
    await backend.dequeue_jobs("w", [], 1)
    assert (await backend.get_job("a")).error_message == "first failure"
    assert await backend.stop_job("a", "") == {"w": 1}
    assert (await backend.get_job("a")).error_message == ""


@suite.case("StopJobWithRetry: Postconditions", "earlier failures are counted on")
async def retry_counted_on(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.FAILED_RETRY)
    await backend.dequeue_jobs("w", [], 1)
    await backend.cancel_jobs([], ["a"])
    env.clock.advance(7)
    assert await backend.stop_job_with_retry("a", "failed while cancelling") == {"w": 1}
    job = await backend.get_job("a")
    assert (job.status, job.retry_count, job.last_retry_at) == (S.STOPPED, 2, env.clock.now())
    assert (job.error_message, job.finalized_at) == ("failed while cancelling", env.clock.now())


@suite.case("MarkJobUnknownStopped: Postconditions", "FinalizedAt is the time of the call")
async def unknown_finalized(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    env.clock.advance(7)
    await backend.mark_job_unknown_stopped("a", "")
    job = await backend.get_job("a")
    assert (job.finalized_at, job.error_message) == (env.clock.now(), "")
