"""Finding jobs, and how many there are: tallies by state, and what has yet to start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import attrgetter

from headrace.model import CLAIMABLE, Job, State
from headrace.stores.base import Backlog, Query, Tally
from headrace.stores.memory.jobs import Jobs

Row = tuple[tuple[str, str, State], tuple[int, int, int]]
"""(tenant, queue, state) and how many jobs, how many of them delayed, and the sum of their failures."""


def find(jobs: Jobs, query: Query) -> list[Job]:
    found = sorted(_matching(jobs, query), key=attrgetter("seq"), reverse=query.newest_first)
    return found[: query.limit]


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


def backlog(jobs: Jobs, tenant: str | None, queue: str | None) -> Backlog:
    """What waits to be started."""
    sizes = [
        len(job.payload_json)
        for job in jobs.in_states((State.BLOCKED, *CLAIMABLE))
        if tenant in (None, job.tenant) and queue in (None, job.queue)
    ]
    return Backlog(len(sizes), sum(sizes))


def _one_by_one(jobs: Jobs, query: Query, now: datetime) -> Iterator[Row]:
    for job in _matching(jobs, query):
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


def _matching(jobs: Jobs, query: Query) -> Iterator[Job]:
    """In any order, and regardless of the query's limit."""
    return (job for job in jobs.candidates(query) if _matches(job, query))


def _matches(job: Job, query: Query) -> bool:
    return (
        query.tenant in (None, job.tenant)
        and (query.queues is None or job.queue in query.queues)
        and (query.types is None or job.type in query.types)
        and (query.states is None or job.state in query.states)
        and set(query.tags) <= set(job.tags)
        and query.assignee in (None, job.assignee)
        and (query.created_from is None or job.created_at >= query.created_from)
        and (query.created_before is None or job.created_at < query.created_before)
        and (
            query.finalized_before is None
            or (job.finalized_at is not None and job.finalized_at < query.finalized_before)
        )
        and (
            query.after_seq is None
            or (job.seq < query.after_seq if query.newest_first else job.seq > query.after_seq)
        )
    )
