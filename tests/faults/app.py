"""The application of the storm: handlers of every kind that write down what they do.

Each puts its lease token into its result or its error, so that the checker sees whose word was recorded.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace import Context, Headrace, JobSpec, PermanentError, Policy, SyncContext, TemporaryError
from headrace.errors import Snooze
from headrace.model import DEFAULT_QUEUE, DEFAULT_TENANT
from headrace.retry import Constant
from headrace.stores.base import KeyScope
from headrace.testing.checker import ClientLog, Said, signed

LOG_VARIABLE = "HEADRACE_STORM_LOG"
"""The folder of the clients' logs."""
LEASE_SECONDS = 2.0
POLICY = Policy(
    lease_seconds=LEASE_SECONDS,
    max_attempts=None,  # kills are no reason to give up; the tasks that are meant to have a budget
    backoff=Constant(initial=0.2),
    key_released_when_terminal=False,
)

app = Headrace("memory:", policies=POLICY)


@functools.cache
def client_log() -> ClientLog:
    """One file per process: who is killed leaves whole lines behind."""
    return ClientLog(Path(os.environ[LOG_VARIABLE]) / f"process-{os.getpid()}.log")


def scope_of(task: str, key: str) -> KeyScope:
    return KeyScope(DEFAULT_TENANT, DEFAULT_QUEUE, task, key)


@contextmanager
def recorded(ctx: Any) -> Iterator[dict[str, str]]:
    """Write down that a handler began and how it ended. Cut short, it does not say how."""
    job_id, token = ctx.job.id, ctx.token
    log = client_log()
    log.began(job_id, token, ctx.attempt)
    try:
        yield {"token": token}
    except Snooze:
        log.ended(job_id, token, Said.SNOOZED)
        raise
    except (TemporaryError, PermanentError):
        log.ended(job_id, token, Said.FAILED)
        raise
    log.ended(job_id, token, Said.COMPLETED)


@app.task
async def work(ctx: Context, seconds: float) -> dict[str, str]:
    with recorded(ctx) as result:
        await asyncio.sleep(seconds)
    return result


@app.task
def work_in_thread(ctx: SyncContext, seconds: float) -> dict[str, str]:
    with recorded(ctx) as result:
        time.sleep(seconds)
    return result


@app.task
async def work_until(ctx: Context, path: str) -> dict[str, str]:
    """Until there is a file of that name."""
    with recorded(ctx) as result:
        while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240, PTH110 - a look at a local disk
            await asyncio.sleep(0.02)
    return result


@app.task(isolation="process")
def work_in_child(ctx: SyncContext, seconds: float) -> dict[str, str]:
    with recorded(ctx) as result:
        time.sleep(seconds)
        ctx.progress(0.5)
    return result


@app.task
async def fail_at_first(ctx: Context, times: int) -> dict[str, str]:
    with recorded(ctx) as result:
        await asyncio.sleep(0.05)
        if ctx.job.failures < times:
            raise TemporaryError(signed(ctx.token, "not yet"), retry_after=0.1)
    return result


@app.task(max_attempts=3)
async def fail_always(ctx: Context) -> None:
    with recorded(ctx):
        raise TemporaryError(signed(ctx.token, "never"), retry_after=0.1)


@app.task
async def fail_for_good(ctx: Context) -> None:
    with recorded(ctx):
        raise PermanentError(signed(ctx.token, "no such row"))


@app.task
async def snooze_once(ctx: Context) -> dict[str, str]:
    with recorded(ctx) as result:
        if ctx.last_checkpoint is None:
            await ctx.checkpoint({"snoozed": True})
            raise Snooze(0.3)
    return result


@app.task
async def spawn(ctx: Context, count: int) -> dict[str, str]:
    """Children with keys: an attempt after a crash finds those that the one before has spawned."""
    with recorded(ctx) as result:
        keys = [f"{ctx.job.id}/{n}" for n in range(count)]
        specs = [JobSpec(type="work", payload={"seconds": 0.1}, key=key) for key in keys]
        ticket = f"{ctx.job.id}/{ctx.token}"
        client_log().asked(ticket, [None] * count, [scope_of("work", key) for key in keys])
        jobs: Sequence[Any] = await ctx.spawn(*specs)
        client_log().answered(ticket, [job.id for job in jobs])
    return result


@app.task
async def wait_to_be_cancelled(ctx: Context) -> dict[str, str]:
    """Long enough to be found running; whoever is not cancelled completes."""
    with recorded(ctx) as result:
        await asyncio.sleep(3.0)
    return result
