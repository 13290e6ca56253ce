"""Who holds the slots of a queue: the jobs that are leased, by worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import msgspec

from headrace import validation
from headrace.manager.context import Context
from headrace.model import LEASED, State
from headrace.stores.base import FIND_LIMIT_MAX, Query

HOLDERS = 100


class HeldJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that takes a slot."""

    id: str
    tenant: str
    type: str
    limit_key: str | None
    state: State
    worker: str | None
    attempt: int
    since: datetime | None
    lease_until: datetime | None


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """The leased jobs of a queue, those that were submitted first first."""

    queue: str
    jobs: tuple[HeldJob, ...]
    workers: Mapping[str, int]
    """How many of them each worker holds, the one with the most first."""
    at_least: bool
    """There are more, which were not looked at."""

    @property
    def told(self) -> str:
        """`w-3: 4, w-7: 1`."""
        shown = [f"{worker}: {jobs}" for worker, jobs in list(self.workers.items())[:5]]
        more = self.at_least or len(self.workers) > len(shown)
        return ", ".join([*shown, "…"] if more else shown)


async def find_holders(context: Context, queue: str, limit: int) -> Holders:
    """Up to so many jobs."""
    validation.check_limit(limit, "limit", maximum=FIND_LIMIT_MAX - 1)
    query = Query(
        tenant=context.tenant, queues=(queue,), states=tuple(sorted(LEASED)), limit=limit + 1
    )
    found = await context.store.find(query)
    jobs = found[:limit]
    counted = Counter(job.assignee for job in jobs if job.assignee is not None)
    return Holders(
        queue=queue,
        jobs=tuple(
            HeldJob(
                id=job.id,
                tenant=job.tenant,
                type=job.type,
                limit_key=job.limit_key,
                state=job.state,
                worker=job.assignee,
                attempt=job.attempt,
                since=job.assigned_at,
                lease_until=job.lease_until,
            )
            for job in jobs
        ),
        workers=dict(counted.most_common()),
        at_least=len(found) > limit,
    )
