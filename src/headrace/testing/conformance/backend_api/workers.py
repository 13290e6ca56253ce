"""Worker Management: MarkWorkerUnresponsive."""

from __future__ import annotations

import asyncio

import msgspec

from headrace.contracts.backend_api import Backend, InvalidArgumentError, Job, JobStatus
from headrace.testing.conformance.backend_api.suite import (
    STATUSES,
    S,
    drain,
    put,
    suite,
    worker_of,
)
from headrace.testing.conformance.kit import CaseFunction, Env, raises

MOVED = {S.RUNNING: S.UNKNOWN_RETRY, S.CANCELLING: S.UNKNOWN_STOPPED}


@suite.case("MarkWorkerUnresponsive: Preconditions", "an empty assigneeID is refused")
async def empty_assignee(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    with raises(InvalidArgumentError):
        await backend.mark_worker_unresponsive("")
    assert (await backend.get_job("a")).status is S.RUNNING


def _moves(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", status)
        env.clock.advance(30)
        await backend.mark_worker_unresponsive(worker_of("a"))
        after = await backend.get_job("a")
        assert after == msgspec.structs.replace(
            before,
            status=MOVED[status],
            finalized_at=env.clock.now() if status is S.CANCELLING else None,
            error_message=after.error_message,
        )

    return case


def _stays(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", status)
        env.clock.advance(30)
        await backend.mark_worker_unresponsive(worker_of("a"))
        assert await backend.get_job("a") == before

    return case


for _status in STATUSES:
    if _status in MOVED:
        suite.case("MarkWorkerUnresponsive: Postconditions", f"{_status} → {MOVED[_status]}")(
            _moves(_status)
        )
    else:
        suite.case(
            "MarkWorkerUnresponsive: Postconditions", f"a job that is {_status} stays as it is"
        )(_stays(_status))


@suite.case("MarkWorkerUnresponsive: Postconditions", "AssigneeID and AssignedAt are preserved")
async def preserved(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in MOVED:
        before = await put(backend, status.lower(), status)
        env.clock.advance(30)
        await backend.mark_worker_unresponsive(worker_of(before.id))
        after = await backend.get_job(before.id)
        assert (after.assignee_id, after.assigned_at) == (before.assignee_id, before.assigned_at)


@suite.case(
    "MarkWorkerUnresponsive: Postconditions", "a worker without jobs is a no-op, not an error"
)
async def no_jobs(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.RUNNING)
    await backend.mark_worker_unresponsive("idle")
    assert await backend.get_job("a") == before


@suite.case(
    "MarkWorkerUnresponsive: Backend Expectations",
    "all jobs of the worker, and only those, in one step",
)
async def all_of_one(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}") for n in range(12)])
    gone = {job.id for job in await backend.dequeue_jobs("gone", [], 6)}
    kept = {job.id for job in await backend.dequeue_jobs("kept", [], 4)}
    cancelling = sorted(gone)[:2]
    await backend.cancel_jobs([], cancelling)
    await backend.mark_worker_unresponsive("gone")
    for number in range(12):
        job = await backend.get_job(f"j{number}")
        expected = S.INITIAL_PENDING
        if job.id in kept:
            expected = S.RUNNING
        elif job.id in gone:
            expected = S.UNKNOWN_STOPPED if job.id in cancelling else S.UNKNOWN_RETRY
        assert job.status is expected


@suite.case(
    "MarkWorkerUnresponsive: Backend Expectations",
    "a job that was reassigned belongs to its new worker",
)
async def reassigned(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.FAILED_RETRY)
    await backend.dequeue_jobs("new", [], 1)
    before = await backend.get_job("a")
    await backend.mark_worker_unresponsive(worker_of("a"))
    assert await backend.get_job("a") == before


@suite.case(
    "MarkWorkerUnresponsive: Backend Expectations",
    "completions meanwhile are neither lost nor undone",
)
async def against_completion(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}") for n in range(20)])
    await backend.dequeue_jobs("w", [], 20)
    _, *freed = await asyncio.gather(
        backend.mark_worker_unresponsive("w"),
        *(backend.complete_job(f"j{n}", b"done") for n in range(20)),
    )
    for number in range(20):
        job = await backend.get_job(f"j{number}")
        assert (job.status, job.result) == (S.COMPLETED, b"done")
    # Whatever was completed first was freed by its completion, the rest by the worker's end.
    assert all(answer in ({"w": 1}, {}) for answer in freed)


@suite.case(
    "MarkWorkerUnresponsive: Observable Effects",
    "RUNNING jobs become eligible, CANCELLING jobs final",
)
async def effects(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id="a"), Job(id="b")])
    await backend.dequeue_jobs("w", [], 2)
    await backend.cancel_jobs([], ["b"])
    await backend.mark_worker_unresponsive("w")
    assert await drain(backend) == {"a"}
    await backend.delete_jobs([], ["b"])


@suite.case(
    "MarkWorkerUnresponsive: Observable Effects", "what the worker held is not freed a second time"
)
async def freed_once(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    await backend.mark_worker_unresponsive(worker_of("a"))
    assert await backend.complete_job("a", b"late") == {}
    assert (await backend.get_job("a")).status is S.COMPLETED
