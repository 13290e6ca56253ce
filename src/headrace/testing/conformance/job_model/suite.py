"""The suite of the job model specification, and what its cases start from."""

from __future__ import annotations

from typing import Any

from headrace.contracts.job_model import Job, JobState, Queue
from headrace.manager import JobManager
from headrace.testing.conformance.kit import Env, Suite

suite = Suite("job_model", "The formal job model: identity, lifecycle, retries, dependencies")


async def open_queue(env: Env, **options: Any) -> Queue:
    """A queue on the case's store and clock."""
    return env.closing(await Queue.open(env.url, clock=env.clock, **options))


async def open_queue_like(env: Env, other: Queue, **options: Any) -> Queue:
    """A queue on the same store as another, as a different process would open it."""
    apart = await open_queue(env, **options)
    manager = JobManager(other.manager.store, clock=env.clock, policies=apart.manager.policies)
    return Queue(manager)


async def claimed(queue: Queue, worker: str = "w1", **filters: Any) -> Job:
    """The next job, which must be there."""
    job = await queue.claim(worker, **filters)
    assert job is not None
    assert job.token is not None
    return job


def token_of(job: Job) -> str:
    assert job.token is not None
    return job.token


async def state(queue: Queue, job_id: str) -> JobState:
    return (await queue.get(job_id)).state


async def states(queue: Queue, *ids: str) -> list[str]:
    return [(await queue.get(job_id)).state.value for job_id in ids]


async def run(queue: Queue, job_id: str, **fail: Any) -> Job:
    """Claim jobs until this one comes, which must be the next; complete it, or fail it."""
    job = await claimed(queue)
    assert job.id == job_id
    if fail:
        return await queue.fail(job.id, token_of(job), **fail)
    return await queue.complete(job.id, token_of(job))
