"""The suite of the queue semantics specification, and what its cases start from."""

from __future__ import annotations

import random
from typing import Any

from headrace.contracts.queue_semantics import Job, JobState, Queue
from headrace.testing.conformance.kit import Env, Suite

suite = Suite("queue_semantics", "Queue semantics and invariants: leases, retries, ordering")


class FixedDice(random.Random):
    """Always throws the same number, so that a random delay becomes an exact one."""

    def __init__(self, draw: float) -> None:
        super().__init__(0)
        self._draw = draw

    def random(self) -> float:
        return self._draw


async def open_queue(env: Env, **options: Any) -> Queue:
    """A queue on the case's store and clock."""
    return env.closing(await Queue.open(env.url, clock=env.clock, **options))


async def claimed(queue: Queue, worker: str = "w1", name: str | None = None) -> Job:
    """The next job, which must be there."""
    job = await queue.claim(worker, queue=name)
    assert job is not None
    assert job.lease_token is not None
    return job


async def states(queue: Queue, *ids: str) -> list[JobState]:
    return [(await queue.get(job_id)).state for job_id in ids]


def token_of(job: Job) -> str:
    assert job.lease_token is not None
    return job.lease_token
