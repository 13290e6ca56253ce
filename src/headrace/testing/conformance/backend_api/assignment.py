"""Job Assignment: DequeueJobs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from headrace.contracts.backend_api import Backend, InvalidArgumentError, Job, JobStatus
from headrace.testing.conformance.backend_api.suite import (
    ELIGIBLE,
    STATUSES,
    S,
    drain,
    put,
    suite,
    worker_of,
)
from headrace.testing.conformance.kit import CaseFunction, Env, raises


@suite.case("DequeueJobs: Preconditions", "an empty assigneeID is refused")
async def empty_assignee(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    with raises(InvalidArgumentError):
        await backend.dequeue_jobs("", [], 1)
    assert (await backend.get_job("a")).status is S.INITIAL_PENDING


@suite.case("DequeueJobs: Preconditions", "a limit of 0 or less is refused")
async def bad_limit(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    for limit in (0, -1, -100):
        with raises(InvalidArgumentError):
            await backend.dequeue_jobs("w", [], limit)
    assert (await backend.get_job("a")).status is S.INITIAL_PENDING


@suite.case("DequeueJobs: Preconditions", "tags may be empty or nil")
async def no_tags(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id="a", tags=["x"]), Job(id="b")])
    nil: Any = None
    assert [job.id for job in await backend.dequeue_jobs("w", nil, 1)] == ["a"]
    assert [job.id for job in await backend.dequeue_jobs("w", [], 1)] == ["b"]


@suite.case("DequeueJobs: Postconditions", "a returned job is RUNNING, assigned and started now")
async def assigned(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a", payload=b"p", tags=["x"]))
    created = env.clock.now()
    env.clock.advance(5)
    (job,) = await backend.dequeue_jobs("worker-1", [], 1)
    now = env.clock.now()
    assert job == Job(
        id="a",
        status=S.RUNNING,
        payload=b"p",
        tags=["x"],
        created_at=created,
        started_at=now,
        assignee_id="worker-1",
        assigned_at=now,
    )
    assert await backend.get_job("a") == job


@suite.case("DequeueJobs: Postconditions", "StartedAt is kept when it is set already")
async def started_once(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    (first,) = await backend.dequeue_jobs("w1", [], 1)
    env.clock.advance(10)
    await backend.fail_job("a", "no")
    env.clock.advance(10)
    (second,) = await backend.dequeue_jobs("w2", [], 1)
    assert second.started_at == first.started_at
    assert second.assigned_at == env.clock.now()
    assert second.assignee_id == "w2"


@suite.case("DequeueJobs: Postconditions", "only jobs with all provided tags are returned")
async def and_tags(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs(
        [
            Job(id="x", tags=["x"]),
            Job(id="y", tags=["y"]),
            Job(id="xy", tags=["x", "y"]),
            Job(id="xyz", tags=["z", "y", "x"]),
            Job(id="none"),
        ]
    )
    assert await drain(backend, tags=["x", "y"]) == {"xy", "xyz"}
    assert await drain(backend, tags=["x"]) == {"x"}
    assert await drain(backend) == {"y", "none"}


@suite.case("DequeueJobs: Postconditions", "never more jobs than the limit")
async def within_limit(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}") for n in range(7)])
    assert len(await backend.dequeue_jobs("w", [], 3)) == 3
    assert (await backend.get_job_stats([])).running_jobs == 3
    assert len(await backend.dequeue_jobs("w", [], 3)) == 3
    assert len(await backend.dequeue_jobs("w", [], 3)) == 1
    assert await backend.dequeue_jobs("w", [], 3) == []


@suite.case("DequeueJobs: Postconditions", "the oldest by CreatedAt are selected first")
async def oldest_first(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    start = env.clock.now()
    for name, age in (("middle", 20), ("newest", 10), ("oldest", 30), ("older", 25)):
        await backend.enqueue_job(Job(id=name, created_at=start - timedelta(minutes=age)))
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(4)]
    assert order == ["oldest", "older", "middle", "newest"]


@suite.case(
    "DequeueJobs: Postconditions",
    "jobs without a CreatedAt of their own come in the order they came",
)
async def arrival_order(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for name in ("c", "a", "b"):
        await backend.enqueue_job(Job(id=name))
        env.clock.advance(1)
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(3)]
    assert order == ["c", "a", "b"]


@suite.case("DequeueJobs: Postconditions", "a failed job stands where LastRetryAt puts it")
async def retry_order(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="retried"))
    await backend.dequeue_jobs("w", [], 1)
    env.clock.advance(1)
    await backend.enqueue_job(Job(id="before the failure"))
    env.clock.advance(1)
    await backend.fail_job("retried", "no")
    env.clock.advance(1)
    await backend.enqueue_job(Job(id="after the failure"))
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(3)]
    assert order == ["before the failure", "retried", "after the failure"]


@suite.case("DequeueJobs: Postconditions", "a lost job keeps the place that CreatedAt gave it")
async def lost_order(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="lost"))
    await backend.dequeue_jobs("gone", [], 1)
    env.clock.advance(1)
    await backend.enqueue_job(Job(id="newer"))
    env.clock.advance(1)
    await backend.mark_worker_unresponsive("gone")
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(2)]
    assert order == ["lost", "newer"]


def _eligibility(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", status)
        env.clock.advance(60)
        taken = await backend.dequeue_jobs("w", [], 10)
        if status in ELIGIBLE:
            (job,) = taken
            assert (job.id, job.status, job.assignee_id) == ("a", S.RUNNING, "w")
        else:
            assert taken == []
            assert await backend.get_job("a") == before

    return case


for _status in STATUSES:
    _verb = "is assigned" if _status in ELIGIBLE else "is not assigned"
    suite.case("DequeueJobs: Backend Expectations", f"a job that is {_status} {_verb}")(
        _eligibility(_status)
    )


@suite.case(
    "DequeueJobs: Observable Effects",
    "an assigned job is not available to others until it is eligible again",
)
async def unavailable(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    await backend.dequeue_jobs("w1", [], 1)
    assert await backend.dequeue_jobs("w2", [], 1) == []
    assert await backend.dequeue_jobs("w1", [], 1) == []
    assert (await backend.get_job("a")).assignee_id == "w1"
    await backend.fail_job("a", "no")
    assert [job.id for job in await backend.dequeue_jobs("w2", [], 1)] == ["a"]


@suite.case("DequeueJobs: Observable Effects", "a job that failed is eligible in the same moment")
async def no_backoff(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    for attempt in range(1, 6):
        await backend.fail_job("a", "again")
        (job,) = await backend.dequeue_jobs("w", [], 1)
        assert (job.id, job.retry_count) == ("a", attempt)


@suite.case("DequeueJobs: Backend Expectations", "concurrent workers never get the same job")
async def no_double_assignment(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    ids = {f"j{n}" for n in range(60)}
    await backend.enqueue_jobs([Job(id=job_id) for job_id in ids])

    async def work(name: str) -> list[Job]:
        taken: list[Job] = []
        while jobs := await backend.dequeue_jobs(name, [], 2):
            assert len(jobs) <= 2
            taken += jobs
            await asyncio.sleep(0)
        return taken

    shares = await asyncio.gather(*(work(f"w{n}") for n in range(12)))
    taken = [job.id for share in shares for job in share]
    assert len(taken) == 60
    assert set(taken) == ids
    for number, share in enumerate(shares):
        for job in share:
            assert (await backend.get_job(job.id)).assignee_id == f"w{number}"


@suite.case("DequeueJobs: Error Conditions", "no eligible job is an empty slice, not an error")
async def nothing_eligible(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    assert await backend.dequeue_jobs("w", [], 5) == []
    await put(backend, "a", S.COMPLETED)
    assert await backend.dequeue_jobs("w", ["absent"], 5) == []


@suite.case(
    "DequeueJobs: Implementation Notes",
    "fewer jobs than the limit are returned when fewer are eligible",
)
async def fewer_than_limit(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id="a"), Job(id="b")])
    assert {job.id for job in await backend.dequeue_jobs("w", [], 1_000_000)} == {"a", "b"}


@suite.case(
    "Core Concepts: Assignee", "the backend knows which jobs are assigned to which assignee"
)
async def knows_assignees(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for job_id in ("a", "b"):
        await put(backend, job_id, S.RUNNING)
        assert (await backend.get_job(job_id)).assignee_id == worker_of(job_id)
