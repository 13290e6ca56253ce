"""Behavioral Invariants 1 to 9, and freedAssigneeIDs."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

from headrace.contracts.backend_api import Backend, BackendError, Job, JobNotFoundError, Queue
from headrace.contracts.presets import BACKEND_API
from headrace.limits import QueueLimits
from headrace.testing.conformance.backend_api.suite import (
    ELIGIBLE,
    STATUSES,
    S,
    drain,
    put,
    suite,
    worker_of,
)
from headrace.testing.conformance.kit import Env, raises


@suite.case(
    "1. Thread Safety", "every call of every kind at once leaves every job in a lawful status"
)
async def all_at_once(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}", tags=["t"]) for n in range(30)])

    assigned: Counter[str] = Counter()
    freed: Counter[str] = Counter()

    async def work(name: str) -> None:
        for _ in range(6):
            for job in await backend.dequeue_jobs(name, ["t"], 2):
                assigned[name] += 1
                try:
                    if int(job.id[1:]) % 3 == 0:
                        freed.update(await backend.fail_job(job.id, "no"))
                    else:
                        freed.update(await backend.complete_job(job.id, b"ok"))
                except BackendError:
                    pass  # cancelled or declared lost meanwhile
                await asyncio.sleep(0)

    async def disturb() -> None:
        for number in range(0, 30, 7):
            await backend.cancel_jobs([], [f"j{number}"])
            await backend.mark_worker_unresponsive(f"w{number % 5}")
            await backend.get_job_stats(["t"])
            await asyncio.sleep(0)

    await asyncio.gather(*(work(f"w{n}") for n in range(5)), disturb())
    assert freed <= assigned
    stats = await backend.get_job_stats(["t"])
    cancelling = sum(
        [(await backend.get_job(f"j{n}")).status is S.CANCELLING for n in range(30)], start=0
    )
    counted = (
        stats.pending_jobs
        + stats.running_jobs
        + stats.completed_jobs
        + stats.stopped_jobs
        + stats.failed_jobs
    )
    assert (stats.total_jobs, counted + cancelling) == (30, 30)


@suite.case("2. Atomicity", "a reader never sees a transition half done")
async def no_half_changes(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    seen: list[Job] = []

    async def read() -> None:
        for _ in range(20):
            seen.append(await backend.get_job("a"))
            await asyncio.sleep(0)

    await asyncio.gather(read(), backend.fail_job("a", "no"), read())
    for job in seen:
        failed = (S.FAILED_RETRY, 1, "no", env.clock.now())
        running = (S.RUNNING, 0, "", None)
        now = (job.status, job.retry_count, job.error_message, job.last_retry_at)
        assert now in (failed, running)


@suite.case("2. Atomicity", "a batch, a bulk delete and a bulk cancel are all or nothing")
async def bulk_atomicity(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "live", S.RUNNING, tags=["t"])
    await put(backend, "done", S.COMPLETED, tags=["t"])
    with raises(BackendError):
        await backend.enqueue_jobs([Job(id="new", tags=["t"]), Job(id="done")])
    with raises(BackendError):
        await backend.delete_jobs(["t"], [])
    with raises(BackendError):
        await backend.cancel_jobs([""], ["live"])
    assert (await backend.get_job("live")).status is S.RUNNING
    assert (await backend.get_job("done")).status is S.COMPLETED
    with raises(JobNotFoundError):
        await backend.get_job("new")


@suite.case("3. State Transitions", "no call ever brings a job back to INITIAL_PENDING")
async def never_back(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in STATUSES:
        if status is S.INITIAL_PENDING:
            continue
        await put(backend, status.lower(), status)
        with raises(BackendError):
            await backend.update_job_status(status.lower(), S.INITIAL_PENDING, None, "")
    await backend.mark_worker_unresponsive(worker_of("running"))
    await backend.reset_running_jobs()
    await backend.cancel_jobs([], [status.lower() for status in STATUSES])
    assert (await backend.get_job_stats([])).pending_jobs == 0


@suite.case("3. State Transitions", "a FAILED_RETRY job stays so and is eligible")
async def failed_is_eligible(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.FAILED_RETRY)
    assert (await backend.get_job("a")).status is S.FAILED_RETRY
    assert await drain(backend) == {"a"}


@suite.case("4. Tag Matching", "tags match case-sensitively, in any order, and all of them")
async def tag_matching(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs(
        [
            Job(id="lower", tags=["red", "blue"]),
            Job(id="upper", tags=["Red", "blue"]),
            Job(id="longer", tags=["reddish", "blue"]),
        ]
    )
    assert (await backend.get_job_stats(["blue", "red"])).total_jobs == 1
    assert (await backend.get_job_stats(["RED"])).total_jobs == 0
    assert await drain(backend, tags=["blue", "red"]) == {"lower"}
    assert await backend.cancel_jobs(["blue", "Red"], []) == (["upper"], [])
    await backend.delete_jobs(["Red"], [])
    assert await drain(backend, tags=["blue"]) == {"longer"}


@suite.case("4. Tag Matching", "empty tags accept all jobs")
async def no_tags_match_all(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id="a", tags=["x"]), Job(id="b")])
    assert (await backend.get_job_stats([])).total_jobs == 2
    assert await drain(backend) == {"a", "b"}


@suite.case("5. Eligibility", "of jobs in every status DequeueJobs assigns the eligible ones")
async def eligibility(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in STATUSES:
        await put(backend, status.lower(), status)
    assert await drain(backend) == {status.lower() for status in ELIGIBLE}


@suite.case("6. Assignment Semantics", "a RUNNING job cannot be assigned to another worker")
async def no_reassignment(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.RUNNING)
    for worker in ("w1", "w2", worker_of("a")):
        assert await backend.dequeue_jobs(worker, [], 10) == []
    assert await backend.get_job("a") == before


@suite.case("6. Assignment Semantics", "time alone takes no job from its worker")
async def held_for_ever(env: Env) -> None:
    manager = await env.manager(BACKEND_API)
    backend = Backend(manager)
    before = [await put(backend, status.lower(), status) for status in (S.RUNNING, S.CANCELLING)]
    env.clock.advance(10_000_000)
    await manager.maintain()
    assert [await backend.get_job(job.id) for job in before] == before


@suite.case("7. AssigneeID Preservation", "AssigneeID and AssignedAt outlive every later status")
async def preserved(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in STATUSES:
        if status in (S.INITIAL_PENDING, S.UNSCHEDULED):
            continue
        env.clock.advance(1)
        at = env.clock.now()
        job = await put(backend, status.lower(), status)
        assert (job.assignee_id, job.assigned_at) == (worker_of(status.lower()), at)


@suite.case(
    "8. freedAssigneeIDs Semantics", "each job's capacity is freed exactly once in its whole life"
)
async def freed_once(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    freed: Counter[str] = Counter()
    await backend.dequeue_jobs("w1", [], 1)
    freed.update(await backend.fail_job("a", "no"))
    await backend.dequeue_jobs("w2", [], 1)
    await backend.cancel_jobs([], ["a"])
    freed.update(await backend.mark_job_unknown_stopped("a", "no answer"))
    freed.update(await backend.complete_job("a", b"late"))
    assert freed == {"w1": 1, "w2": 1}


@suite.case(
    "9. Ordering", "selection is by COALESCE(LastRetryAt, CreatedAt) across all eligible statuses"
)
async def ordering(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    start = env.clock.now()
    await put(backend, "lost at 0", S.RUNNING)
    env.clock.advance(1)
    await put(backend, "failed", S.RUNNING)
    env.clock.advance(1)
    await backend.enqueue_job(Job(id="new at 2"))
    env.clock.advance(1)
    await backend.fail_job("failed", "at 3")
    env.clock.advance(1)
    await backend.enqueue_job(Job(id="new at 4"))
    env.clock.advance(1)
    await backend.mark_worker_unresponsive(worker_of("lost at 0"))
    await backend.enqueue_job(Job(id="backdated to 1", created_at=start + timedelta(seconds=1)))
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(5)]
    assert order == ["lost at 0", "backdated to 1", "new at 2", "failed", "new at 4"]


@suite.case("9. Ordering", "a limit takes the oldest of them")
async def oldest_within_limit(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    start = env.clock.now()
    for number in (3, 1, 4, 0, 2):
        created = start - timedelta(minutes=10 - number)
        await backend.enqueue_job(Job(id=f"j{number}", created_at=created))
    assert {job.id for job in await backend.dequeue_jobs("w", [], 2)} == {"j0", "j1"}
    assert {job.id for job in await backend.dequeue_jobs("w", [], 2)} == {"j2", "j3"}


@suite.case("9. Ordering", "a CreatedAt ahead of the clock is a place in line as any other")
async def created_ahead(env: Env) -> None:
    start = env.clock.now()
    for tags in ((), ("x",), ("x", "y")):
        backend: Backend = await env.open(Backend)
        name = "-".join(tags)
        for minutes in (50, -10, 20, 1000, 30):
            created = start + timedelta(minutes=minutes)
            await backend.enqueue_job(Job(id=f"{name}{minutes}", created_at=created, tags=tags))
        await backend.enqueue_job(Job(id=f"{name}0", tags=tags))
        order = [(await backend.dequeue_jobs("w", tags, 1))[0].id for _ in range(4)]
        assert order == [f"{name}{minutes}" for minutes in (-10, 0, 20, 30)]
        rest = await backend.dequeue_jobs("w", tags, 5)
        assert {job.id for job in rest} == {f"{name}50", f"{name}1000"}
        assert {job.started_at for job in rest} == {start}


@suite.case("9. Ordering", "a failed job goes by LastRetryAt, though its CreatedAt is ahead")
async def failed_ahead(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    start = env.clock.now()
    await backend.enqueue_job(Job(id="ahead", created_at=start + timedelta(hours=2)))
    await backend.dequeue_jobs("w", [], 1)
    env.clock.advance(1)
    await backend.fail_job("ahead", "now it counts from here")
    await backend.enqueue_job(Job(id="new", created_at=start + timedelta(hours=1)))
    assert (await backend.get_job("ahead")).last_retry_at == env.clock.now()
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(2)]
    assert order == ["ahead", "new"]


@suite.case("9. Ordering", "what stands ahead of the clock goes every way that other jobs go")
async def ahead_in_every_status(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    ahead = env.clock.now() + timedelta(days=1)

    async def running(job_id: str) -> None:
        await backend.enqueue_job(Job(id=job_id, created_at=ahead))
        (job,) = await backend.dequeue_jobs(worker_of(job_id), [], 1)
        assert (job.id, job.status) == (job_id, S.RUNNING)

    await running("regained")
    await backend.mark_worker_unresponsive(worker_of("regained"))
    await backend.update_job_status("regained", S.RUNNING)
    assert (await backend.get_job("regained")).status is S.RUNNING
    await running("given back")
    await backend.update_job_status("given back", S.FAILED_RETRY)
    assert [job.id for job in await backend.dequeue_jobs("w", [], 9)] == ["given back"]
    await running("lost")
    await backend.reset_running_jobs()
    assert await drain(backend) == {"regained", "given back", "lost"}
    await backend.enqueue_job(Job(id="cancelled", created_at=ahead))
    assert await backend.cancel_jobs([], ["cancelled"]) == (["cancelled"], [])
    await backend.delete_jobs([], ["cancelled"])


@suite.case("9. Ordering", "a stream delivers what stands ahead of the clock, in its place")
async def ahead_in_a_stream(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    start = env.clock.now()
    for hours in (3, 1, 2):
        await queue.enqueue_job(Job(id=f"{hours}", created_at=start + timedelta(hours=hours)))
    async with asyncio.timeout(20), queue.stream_jobs("w", [], 1) as stream:
        for wanted in ("1", "2", "3"):
            assert (await anext(stream)).id == wanted
            await queue.complete_job(wanted)


@suite.case("9. Ordering", "a LastRetryAt ahead of the clock is eligible, in its place")
async def retried_ahead(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    start = env.clock.now()
    for name in ("a", "b"):
        await put(backend, name, S.RUNNING)
    env.clock.advance(600)
    await backend.fail_job("b", "at 600")
    env.clock.advance(1)
    await backend.fail_job("a", "at 601")
    env.clock.set(start)  # the clock is set back by ten minutes
    await backend.enqueue_job(Job(id="c"))
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(3)]
    assert order == ["c", "b", "a"]


@suite.case("9. Ordering", "the order is the same behind a queue's limits")
async def ahead_behind_limits(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.manager.set_limits("default", QueueLimits(concurrency=100))
    start = env.clock.now()
    for minutes in (50, -10, 20):
        created = start + timedelta(minutes=minutes)
        await backend.enqueue_job(Job(id=f"{minutes}", created_at=created))
    order = [(await backend.dequeue_jobs("w", [], 1))[0].id for _ in range(3)]
    assert order == ["-10", "20", "50"]


@suite.case(
    "freedAssigneeIDs Return Value",
    "the key is the worker, the value its freed jobs; empty when none was held",
)
async def freed_map(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "held", S.RUNNING)
    await put(backend, "lost", S.UNKNOWN_RETRY)
    assert await backend.complete_job("held", b"") == {worker_of("held"): 1}
    assert await backend.complete_job("lost", b"") == {}


@suite.case(
    "freedAssigneeIDs Return Value",
    "Multiplicity: several jobs of one worker freed at once are counted",
)
async def multiplicity(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await queue.enqueue_jobs([Job(id=f"j{n}") for n in range(7)])
    first = [job.id for job in await queue.dequeue_jobs("w1", [], 3)]
    second = [job.id for job in await queue.dequeue_jobs("w2", [], 2)]
    lost = [job.id for job in await queue.dequeue_jobs("w3", [], 1)]
    await queue.mark_worker_unresponsive("w3")
    answer = await queue.complete_jobs(dict.fromkeys((*first, *second, *lost, "ghost"), b""))
    assert answer.freed == {"w1": 3, "w2": 2}
    assert set(answer.errors) == {"ghost"}
    assert isinstance(answer.errors["ghost"], JobNotFoundError)
