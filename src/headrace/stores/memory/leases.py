"""Leases: does one hold, keeping them, what their holders say meanwhile, and what is over at some time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from headrace import lifecycle
from headrace.model import Job
from headrace.stores.base import Extended, Fence, Note, Rewrite

if TYPE_CHECKING:
    from headrace.stores.memory.tables import Tables  # they hold deadlines


def holds(tables: Tables, fence: Fence, now: datetime) -> bool:
    job = tables.jobs.get(fence.job_id)
    return (
        job is not None
        and job.token is not None
        and job.token == fence.token
        and lifecycle.lease_holds(job, now)
    )


def extend(tables: Tables, leases: Mapping[Fence, float | None], now: datetime) -> list[Extended]:
    extended = []
    for fence, seconds in leases.items():
        if holds(tables, fence, now):
            job = tables.jobs[fence.job_id]
            until = None if seconds is None else now + timedelta(seconds=seconds)
            tables.jobs.touch(replace(job, lease_until=until))
            extended.append(Extended(job.id, job.state, until))
    return extended


def annotate(tables: Tables, fence: Fence, note: Note, now: datetime) -> bool:
    if not holds(tables, fence, now):
        return False
    tables.jobs.touch(replace(tables.jobs[fence.job_id], **given(note)))
    return True


def given(said: Note | Rewrite) -> dict[str, Any]:
    """What is to be written: everything but the address that is not None."""
    return {
        name: value
        for name in said.__struct_fields__
        if name not in ("job_id", "version") and (value := getattr(said, name)) is not None
    }


class Deadline(NamedTuple):
    at: datetime
    seq: int
    job_id: str


class Deadlines:
    """A heap that is never searched: what no longer holds is dropped when it comes up."""

    def __init__(self, jobs: Mapping[str, Job], holds: Callable[[Job, datetime], bool]) -> None:
        self._jobs = jobs
        self._holds = holds
        """Whether this deadline is still the job's."""
        self._heap: list[Deadline] = []

    def note(self, job: Job, at: datetime) -> None:
        heapq.heappush(self._heap, Deadline(at, job.seq, job.id))

    def over(self, now: datetime, limit: int, tenant: str | None) -> list[Job]:
        """Jobs whose deadline is not after `now`, the earliest first. Reading takes nothing away.

        A deadline that no longer holds (moved by a heartbeat, its job ended, its id used again) is
        dropped; one that was noted twice is kept once.
        """
        found: list[Job] = []
        kept: dict[str, Deadline] = {}
        while self._heap and self._heap[0].at <= now and len(found) < limit:
            deadline = heapq.heappop(self._heap)
            job = self._jobs.get(deadline.job_id)
            if job is None or job.seq != deadline.seq or not self._holds(job, deadline.at):
                continue
            if kept.setdefault(job.id, deadline) is deadline and tenant in (None, job.tenant):
                found.append(job)
        for deadline in kept.values():
            heapq.heappush(self._heap, deadline)
        return found
