"""How many: tallies by state, leases that hold, and what has yet to start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from headrace.model import CLAIMABLE, LEASED, State
from headrace.stores.base import Backlog, Held, Query, Tally
from headrace.stores.memory.jobs import Jobs

Row = tuple[tuple[str, str, State], tuple[int, int, int]]
"""(tenant, queue, state) and how many jobs, how many of them delayed, and the sum of their failures."""


def tallies(jobs: Jobs, query: Query, now: datetime) -> list[Tally]:
    """Of the jobs that match the query's tenant, queues and tags."""
    sums: dict[tuple[str, str, State], tuple[int, int, int]] = {}
    for key, amounts in _one_by_one(jobs, query, now) if query.tags else _by_lane(jobs, query, now):
        before = sums.get(key, (0, 0, 0))
        sums[key] = (before[0] + amounts[0], before[1] + amounts[1], before[2] + amounts[2])
    return [
        Tally(tenant=t, queue=q, state=s, jobs=jobs, delayed=delayed, failures=failures)
        for (t, q, s), (jobs, delayed, failures) in sorted(sums.items())
        if jobs
    ]


def held(jobs: Jobs, now: datetime, queues: Sequence[str]) -> list[Held]:
    """The leases on these queues that hold now."""
    counts = Counter(
        (job.tenant, job.queue, job.limit_key)
        for job in jobs.in_states(LEASED)
        if job.queue in queues and (job.lease_until is None or job.lease_until > now)
    )
    return [
        Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=count)
        for (tenant, queue, limit_key), count in counts.items()
    ]


def backlog(jobs: Jobs, tenant: str | None, queue: str | None) -> Backlog:
    """What waits to be started."""
    sizes = [
        len(job.payload_json)
        for job in jobs.in_states((State.BLOCKED, *CLAIMABLE))
        if tenant in (None, job.tenant) and queue in (None, job.queue)
    ]
    return Backlog(len(sizes), sum(sizes))


def _one_by_one(jobs: Jobs, query: Query, now: datetime) -> Iterator[Row]:
    for job in jobs.matching(query):
        late = job.state in CLAIMABLE and job.run_at > now
        yield (job.tenant, job.queue, job.state), (1, int(late), job.failures)


def _by_lane(jobs: Jobs, query: Query, now: datetime) -> Iterator[Row]:
    for key, lane in jobs.lanes.items():
        if query.tenant not in (None, key.tenant):
            continue
        if query.queues is not None and key.queue not in query.queues:
            continue
        for state, count in lane.states.items():
            late = jobs.lanes.delayed(lane, state, now) if state in CLAIMABLE else 0
            yield (key.tenant, key.queue, state), (count, late, lane.failures[state])
