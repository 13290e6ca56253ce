"""What of a job's is over at some time, its lease or its lifetime, the earliest first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from headrace.model import Job


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
