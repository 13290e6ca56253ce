"""A worker that runs while a test looks at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from headrace import Headrace, Job, State
from headrace.worker import Settings, Worker

PATIENCE_SECONDS = 30.0


@asynccontextmanager
async def working(app: Headrace, **settings: object) -> AsyncIterator[Worker]:
    """A worker on the application until the block ends; what ends it early is raised."""
    quick: dict[str, object] = {"poll_seconds": 0.1, "watch_seconds": 0.1, "grace_seconds": 0.0}
    worker = Worker(app, Settings(**{**quick, **settings}))  # type: ignore[arg-type]
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, PATIENCE_SECONDS)


async def until(condition: Callable[[], Awaitable[bool] | bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await _asked(condition):  # noqa: ASYNC110 - what it waits for is in a store
            await asyncio.sleep(0.01)


async def _asked(condition: Callable[[], Awaitable[bool] | bool]) -> bool:
    answer = condition()
    return answer if isinstance(answer, bool) else await answer


async def reached(app: Headrace, job: Job, *states: State) -> Job:
    """The job once it is in one of the states."""

    async def is_there() -> bool:
        return (await app.get(job)).state in states

    await until(is_there)
    return await app.get(job)


async def kinds(app: Headrace, job: Job) -> list[str]:
    """What happened to the job, by the log."""
    return [event.kind.value for event in await (await app.manager()).events(job_id=job.id)]
