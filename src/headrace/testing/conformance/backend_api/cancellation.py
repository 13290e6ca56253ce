"""Cancellation: CancelJobs, AcknowledgeCancellation."""

from __future__ import annotations

import asyncio
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

CANCELLED = {
    S.INITIAL_PENDING: S.UNSCHEDULED,
    S.RUNNING: S.CANCELLING,
    S.FAILED_RETRY: S.STOPPED,
    S.UNKNOWN_RETRY: S.STOPPED,
}


@suite.case("CancelJobs: Preconditions", "neither tags nor jobIDs is an error, and cancels nothing")
async def no_filter(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    nil: Any = None
    with raises(InvalidArgumentError):
        await backend.cancel_jobs([], [])
    with raises(InvalidArgumentError):
        await backend.cancel_jobs(nil, nil)
    assert (await backend.get_job("a")).status is S.INITIAL_PENDING


def _cancels(source: JobStatus, target: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", source, tags=["t"])
        env.clock.advance(30)
        assert await backend.cancel_jobs([], ["a"]) == (["a"], [])
        after = await backend.get_job("a")
        assert after.status is target
        assert (after.assignee_id, after.assigned_at) == (before.assignee_id, before.assigned_at)
        assert after.retry_count == before.retry_count
        assert after.finalized_at == (env.clock.now() if target in FINAL else None)
        assert await drain(backend) == set()

    return case


def _final_is_unknown(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", status, tags=["t"])
        assert await backend.cancel_jobs([], ["a"]) == ([], ["a"])
        assert await backend.cancel_jobs(["t"], []) == ([], ["a"])
        assert await backend.get_job("a") == before

    return case


for _source, _target in CANCELLED.items():
    suite.case("CancelJobs: Postconditions", f"{_source} → {_target}")(_cancels(_source, _target))
for _status in FINAL:
    suite.case(
        "CancelJobs: Postconditions", f"a job that is {_status} is unknown and stays as it is"
    )(_final_is_unknown(_status))


@suite.case("CancelJobs: Postconditions", "a job already CANCELLING is cancelled without a change")
async def already_cancelling(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.CANCELLING, tags=["t"])
    env.clock.advance(30)
    assert await backend.cancel_jobs([], ["a"]) == (["a"], [])
    assert await backend.cancel_jobs(["t"], []) == (["a"], [])
    assert await backend.get_job("a") == before


@suite.case("CancelJobs: Postconditions", "a job that does not exist is unknown")
async def not_found(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    cancelled, unknown = await backend.cancel_jobs([], ["nobody", "a", "nothing"])
    assert (cancelled, set(unknown)) == (["a"], {"nobody", "nothing"})


@suite.case(
    "CancelJobs: Backend Expectations", "every job of the union of tags and jobIDs, each once"
)
async def union(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs(
        [
            Job(id="both", tags=["x", "y"]),
            Job(id="tagged", tags=["y", "x", "z"]),
            Job(id="half", tags=["x"]),
            Job(id="named"),
            Job(id="other"),
        ]
    )
    cancelled, unknown = await backend.cancel_jobs(["x", "y"], ["named", "both", "both"])
    assert sorted(cancelled) == ["both", "named", "tagged"]
    assert unknown == []
    assert await drain(backend) == {"half", "other"}


@suite.case("CancelJobs: Backend Expectations", "each job goes its own way in one call")
async def mixed(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in STATUSES:
        await put(backend, status.lower(), status, tags=["t"])
    cancelled, unknown = await backend.cancel_jobs(["t"], ["ghost"])
    assert set(cancelled) == {status.lower() for status in (*CANCELLED, S.CANCELLING)}
    assert set(unknown) == {*(status.lower() for status in FINAL), "ghost"}
    for status in STATUSES:
        assert (await backend.get_job(status.lower())).status is CANCELLED.get(status, status)


@suite.case(
    "CancelJobs: Backend Expectations", "a concurrent dequeue and cancel agree on every job"
)
async def cancel_against_dequeue(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}", tags=["t"]) for n in range(20)])
    (cancelled, unknown), taken = await asyncio.gather(
        backend.cancel_jobs(["t"], []),
        asyncio.gather(*(backend.dequeue_jobs(f"w{n}", [], 4) for n in range(5))),
    )
    assert (len(cancelled), unknown) == (20, [])
    running = {job.id for jobs in taken for job in jobs}
    for number in range(20):
        job = await backend.get_job(f"j{number}")
        assert job.status is (S.CANCELLING if job.id in running else S.UNSCHEDULED)


@suite.case("CancelJobs: Observable Effects", "a CANCELLING job awaits its acknowledgment")
async def awaits(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    await backend.cancel_jobs([], ["a"])
    env.clock.advance(1_000_000)
    job = await backend.get_job("a")
    assert (job.status, job.finalized_at) == (S.CANCELLING, None)


@suite.case("CancelJobs: Error Conditions", "final jobs among others do not fail the call")
async def final_among_others(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "done", S.COMPLETED)
    await backend.enqueue_job(Job(id="a"))
    assert await backend.cancel_jobs([], ["done", "a"]) == (["a"], ["done"])


def _acknowledged(was_executing: bool, target: JobStatus) -> CaseFunction:  # noqa: FBT001 - the text's argument
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", S.CANCELLING)
        env.clock.advance(30)
        answer: Any = await backend.acknowledge_cancellation("a", was_executing)  # type: ignore[func-returns-value]  # that is the statement
        assert answer is None
        now = env.clock.now()
        assert await backend.get_job("a") == msgspec.structs.replace(
            before, status=target, finalized_at=now
        )
        assert await drain(backend) == set()

    return case


suite.case(
    "AcknowledgeCancellation: Valid State Transitions", "CANCELLING → STOPPED if it was executing"
)(_acknowledged(True, S.STOPPED))  # noqa: FBT003 - the text's argument
suite.case(
    "AcknowledgeCancellation: Valid State Transitions",
    "CANCELLING → UNKNOWN_STOPPED if it was not executing",
)(_acknowledged(False, S.UNKNOWN_STOPPED))  # noqa: FBT003 - the text's argument


def _not_cancelling(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", status)
        for was_executing in (True, False):
            with raises(InvalidStateError):
                await backend.acknowledge_cancellation("a", was_executing)
        assert await backend.get_job("a") == before

    return case


for _status in STATUSES:
    if _status is not S.CANCELLING:
        suite.case(
            "AcknowledgeCancellation: Error Conditions",
            f"a job that is {_status} is an error and stays as it is",
        )(_not_cancelling(_status))


@suite.case("AcknowledgeCancellation: Error Conditions", "a job that does not exist is an error")
async def acknowledge_unknown(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(JobNotFoundError):
        await backend.acknowledge_cancellation("a", was_executing=True)


@suite.case("AcknowledgeCancellation: Preconditions", "an empty jobID is refused")
async def acknowledge_empty(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(InvalidArgumentError):
        await backend.acknowledge_cancellation("", was_executing=True)


@suite.case("AcknowledgeCancellation: Postconditions", "AssigneeID and AssignedAt are preserved")
async def acknowledge_preserves(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.CANCELLING)
    env.clock.advance(30)
    await backend.acknowledge_cancellation("a", was_executing=True)
    after = await backend.get_job("a")
    assert (after.assignee_id, after.assigned_at) == (worker_of("a"), before.assigned_at)


@suite.case("AcknowledgeCancellation: Postconditions", "the error message stays as it is")
async def acknowledge_keeps_message(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for was_executing in (True, False):
        job_id = f"job-{was_executing}"
        await put(backend, job_id, S.RUNNING)
        await backend.update_job_status(job_id, S.CANCELLING, None, "not needed any more")
        await backend.acknowledge_cancellation(job_id, was_executing)
        assert (await backend.get_job(job_id)).error_message == "not needed any more"


@suite.case(
    "AcknowledgeCancellation: Observable Effects", "the worker does not hold the job any more"
)
async def acknowledge_frees(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.CANCELLING)
    await backend.acknowledge_cancellation("a", was_executing=True)
    before = await backend.get_job("a")
    await backend.mark_worker_unresponsive(worker_of("a"))
    assert await backend.get_job("a") == before


@suite.case(
    "AcknowledgeCancellation: Backend Expectations", "of concurrent acknowledgments one is accepted"
)
async def acknowledge_once(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.CANCELLING)
    answers = await asyncio.gather(
        *(backend.acknowledge_cancellation("a", n % 2 == 0) for n in range(10)),
        return_exceptions=True,
    )
    assert answers.count(None) == 1
    winner = answers.index(None)
    target = S.STOPPED if winner % 2 == 0 else S.UNKNOWN_STOPPED
    assert (await backend.get_job("a")).status is target
