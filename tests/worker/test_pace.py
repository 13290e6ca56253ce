"""Jobs start when a limit lets them, and when they are due: not at the worker's next look."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headrace import Context, Headrace, Job, Snooze, State
from headrace.errors import TemporaryError
from headrace.limits import QueueLimits, Rate
from tests.worker.counting import Counted
from tests.worker.running import reached, until, working

SECONDS = 1.0
POLL_SECONDS = 30.0
"""Whatever happens in time here was not found by looking now and then."""
PROMPT_SECONDS = 0.15
WORKERS = 8


async def test_a_rate_without_a_burst_is_kept_and_never_passed(store_url: str) -> None:
    app = Counted(store_url)
    starts: list[datetime] = []

    @app.task(queue="paced")
    async def paced(ctx: Context) -> None:
        assert ctx.job.assigned_at is not None
        starts.append(ctx.job.assigned_at)

    async with app:
        await (await app.manager()).set_limits("paced", QueueLimits(rate=Rate(20, burst=1)))
        await app.submit_many([paced.spec() for _ in range(60)])
        async with working(app, poll_seconds=POLL_SECONDS):
            await until(lambda: len(starts) > 0)
            app.verbs.clear()
            await asyncio.sleep(SECONDS)
            claims = app.verbs["claim"]
    tokens = [starts[0] + timedelta(seconds=number / 20) for number in range(len(starts))]
    assert all(start >= token for start, token in zip(starts, tokens, strict=True))
    assert len([start for start in starts if start < tokens[0] + timedelta(seconds=1)]) >= 15
    assert claims < 8 * len(starts), "it waits for tokens, and does not ask for them all the time"


async def test_retries_snoozes_and_delayed_jobs_start_when_they_are_due(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task
    async def retried(ctx: Context) -> str:
        if ctx.job.attempt == 1:
            raise TemporaryError("once more", retry_after=0.3)
        return _late(ctx.job)

    @app.task
    async def snoozed(ctx: Context) -> str:
        if ctx.job.attempt == 1:
            raise Snooze(0.4)
        return _late(ctx.job)

    @app.task
    async def delayed(ctx: Context) -> str:
        return _late(ctx.job)

    async with app, working(app, poll_seconds=POLL_SECONDS):
        jobs = [await retried.submit(), await snoozed.submit()]
        jobs.append(await delayed.options(delay=0.5).submit())
        ended = [await reached(app, job, State.COMPLETED) for job in jobs]
    late = [float(job.result) for job in ended]
    assert max(late) < PROMPT_SECONDS, late
    assert min(late) >= 0, late


def _late(job: Job) -> str:
    """How many seconds after it was due the job was claimed."""
    assert job.assigned_at is not None
    return str((job.assigned_at - job.run_at).total_seconds())


async def test_many_workers_that_wait_for_one_job_do_not_hammer_the_store(
    tmp_path: Path,
) -> None:
    app = Counted(f"sqlite:///{tmp_path}/jobs.db?synchronous=normal")
    done: list[datetime] = []

    @app.task
    async def soon() -> None:
        done.append(datetime.now(UTC))

    async with app:
        await app.submit_many([soon.options(delay=0.05 * number).spec() for number in range(20)])
        async with AsyncExitStack() as workers:
            for _ in range(WORKERS):
                await workers.enter_async_context(working(app, poll_seconds=POLL_SECONDS))
            await until(lambda: len(done) == 20)
            claims = app.verbs["claim"]
    assert claims < WORKERS * 20 * 4, claims
