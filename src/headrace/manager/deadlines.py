"""What becomes of a job whose holder comes too late.

Past its lifetime the job is dead, past its execution timeout the attempt has failed. The holder is refused
first. Then what time demands is carried out at once, so that the job goes on without waiting for its lease
to lapse.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import cast

from headrace import lifecycle, validation
from headrace.errors import LeaseExpired, StoreError
from headrace.manager import settlement
from headrace.manager.changes import Order, Settled, change_each
from headrace.manager.context import Context
from headrace.model import Category, Failure, Job

logger = logging.getLogger("headrace.manager")


async def settle(context: Context, outcomes: Sequence[settlement.Outcome]) -> Settled:
    """Record many outcomes in one step of the store; each stands or is refused alone."""
    outcomes = cast("Sequence[settlement.Outcome]", validation.listed(outcomes, "outcomes"))
    settled = await settlement.settle(context, outcomes)
    late = [
        outcome.job_id
        for outcome, answer in zip(outcomes, settled.outcomes, strict=True)
        if isinstance(answer, LeaseExpired)
    ]
    if not late:
        return settled
    freed = await enforce(context, late)
    return Settled(settled.outcomes, Counter(settled.freed) + Counter(freed))


@contextlib.asynccontextmanager
async def enforced(context: Context, job_id: str) -> AsyncIterator[None]:
    """Around what the holder of a lease asks for."""
    try:
        yield
    except LeaseExpired:
        await enforce(context, [job_id])
        raise


async def enforce(context: Context, job_ids: Sequence[str]) -> dict[str, int]:
    """End the attempts of these jobs that have run into a deadline; the capacity freed, by worker.

    The others are left alone, those whose own lease has lapsed among them: they are the reaper's.
    """
    try:
        jobs = await context.read(list(dict.fromkeys(job_ids)))
        orders = [
            _demanded(context, job)
            for job in jobs.values()
            if lifecycle.is_overdue(job, context.now())
        ]
        return dict((await change_each(context, orders)).freed)
    except StoreError as error:
        logger.warning("%d late jobs are left to maintenance: %s", len(job_ids), error)
        return {}


def _demanded(context: Context, job: Job) -> Order:
    if job.expires_at is not None and job.expires_at <= context.now():
        return Order(job.id, lambda _: lifecycle.Outlive())
    return settlement.order(context, timed_out(job))


def timed_out(job: Job) -> settlement.Failed:
    """The outcome of the attempt that holds the job now, when its execution timeout has struck."""
    failure = Failure(
        f"the execution took longer than {job.timeout_seconds:g} s",
        Category.TIMEOUT,
        "execution_timeout",
    )
    return settlement.Failed(job_id=job.id, token=job.token, failure=failure)
