"""A job as it goes on: looked at again whenever it may have changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from headrace.manager.context import Context
from headrace.model import Job

LOOK_SECONDS = 0.5
"""Progress makes no event, so it is looked for. A change of state is seen as soon as the log grows."""
PAUSE_SECONDS = 0.005
"""Between two looks at least: a busy log gives hints all the time."""


async def watch(
    context: Context,
    job_id: str,
    *,
    look_seconds: float,
    timeout_seconds: float | None,
) -> AsyncIterator[Job]:
    """The job, and again after each change, up to its end or that of the time."""
    end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    shown: tuple[Any, ...] | None = None
    while True:
        seen = await context.store.tail()
        job = await context.read_one(job_id)
        if _shown(job) != shown:
            shown = _shown(job)
            yield job
        if job.is_terminal:
            return
        left = look_seconds if end is None else min(look_seconds, end - time.monotonic())
        if left <= 0:
            return
        await context.store.wait(seen, left)
        await asyncio.sleep(PAUSE_SECONDS)


def _shown(job: Job) -> tuple[Any, ...]:
    """What makes it worth showing again."""
    return (job.state, job.attempt, job.failures, job.run_at, job.progress, job.progress_note)
