"""What the cases of the Queue are played on: queues, streams, and managers with a flaw."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from headrace.contracts.backend_api import (
    Backend,
    Job,
    JobStream,
    Queue,
)
from headrace.contracts.presets import BACKEND_API
from headrace.manager import JobManager
from headrace.model import Event
from headrace.model import Job as StoredJob
from headrace.testing.conformance.kit import Env, raises

SUBMISSION = "Integration Patterns 1. Job Submission"
ASSIGNMENT = "Integration Patterns 2. Job Assignment"
COMPLETION = "Integration Patterns 3. Job Completion"
CAPACITY = "Integration Patterns 4. Capacity Management"
WORKERS = "Integration Patterns 5. Worker Management"

PATIENCE_SECONDS = 20.0
"""How long a job that must come may take; the poll interval of a store without hints fits in."""
QUIET_SECONDS = 0.05
"""How long nothing must come where nothing may come."""


async def take(stream: JobStream, count: int) -> list[Job]:
    """The next `count` jobs."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [await anext(stream) for _ in range(count)]


async def nothing(stream: JobStream) -> None:
    """No job comes; asking in vain does not end the stream."""
    with raises(TimeoutError):
        await asyncio.wait_for(anext(stream), QUIET_SECONDS)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what follows a stream's end on its own, such as jobs given back after a `break`."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await condition():  # noqa: ASYNC110 - the end of the stream tells nobody
            await asyncio.sleep(0.005)


async def fill(queue: Queue, count: int, **fields: Any) -> list[str]:
    return await queue.enqueue_jobs([Job(id=f"j{n}", **fields) for n in range(count)])


@contextlib.asynccontextmanager
async def streaming(
    env: Env, jobs: int, max_assigned: int, **fields: Any
) -> AsyncIterator[tuple[Queue, JobStream]]:
    """A queue with jobs, and a stream of worker `w` on it."""
    queue: Queue = await env.open(Queue)
    await fill(queue, jobs, **fields)
    async with queue.stream_jobs("w", [], max_assigned) as stream:
        yield queue, stream


async def neighbours(env: Env) -> tuple[Queue, Backend, JobManager]:
    """A queue, and a backend on the same store that the queue knows nothing of."""
    manager = await env.manager(BACKEND_API)
    backend = Backend(manager)
    return env.closing(Queue(backend)), backend, manager


class DeafManager(JobManager):
    """Hears nothing of the event log: what a stream learns, it learns from its own queue."""

    async def events(self, **_: Any) -> tuple[Event, ...]:
        return ()


class LateManager(JobManager):
    """The answer of the first claim comes late: something else happens before it arrives."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def claim(self, *args: Any, **options: Any) -> tuple[StoredJob, ...]:
        jobs = await super().claim(*args, **options)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return jobs


_M = TypeVar("_M", bound=JobManager)


async def special(env: Env, kind: type[_M]) -> tuple[Queue, _M]:
    """A queue on a manager of this kind."""
    plain = await env.manager(BACKEND_API)
    manager = kind(plain.store, clock=plain.clock, policies=plain.policies)
    return env.closing(Queue(manager)), manager
