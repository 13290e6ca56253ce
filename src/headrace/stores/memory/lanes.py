"""Waiting jobs in claim order, without scans.

A lane is all jobs of one tenant, queue, type and priority. Each keeps a heap of its waiting jobs by
(run_at, seq), and one more per tag. Heaps are never searched for a job that leaves: an entry is checked
against the job when it comes up, and dropped if the job has moved on.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from headrace.model import CLAIMABLE, Job, Priority, State
from headrace.stores.base import ClaimRequest, Pause


class LaneKey(NamedTuple):
    tenant: str
    queue: str
    type: str
    priority: int


class Entry(NamedTuple):
    run_at: datetime
    seq: int
    job_id: str


class Lane:
    """One lane: its waiting jobs in order and how many jobs it has in each state."""

    def __init__(self) -> None:
        self.heap: list[Entry] = []
        self.by_tag: dict[str, list[Entry]] = {}
        self.states: Counter[State] = Counter()
        self.failures: Counter[State] = Counter()

    def push(self, job: Job) -> None:
        entry = Entry(job.run_at, job.seq, job.id)
        heapq.heappush(self.heap, entry)
        for tag in job.tags:
            heapq.heappush(self.by_tag.setdefault(tag, []), entry)

    def driver(self, tags: Sequence[str]) -> list[Entry]:
        """The shortest heap that holds every match."""
        return min((self.by_tag.get(tag, []) for tag in tags), key=len) if tags else self.heap


class Lanes:
    """All lanes of a store."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._jobs = jobs
        self._lanes: dict[LaneKey, Lane] = {}

    def items(self) -> Iterator[tuple[LaneKey, Lane]]:
        return iter(self._lanes.items())

    def enter(self, job: Job) -> None:
        """Count a job in, and line it up if it waits."""
        lane = self._lanes.get(key := _key(job)) or self._lanes.setdefault(key, Lane())
        lane.states[job.state] += 1
        lane.failures[job.state] += job.failures
        if job.state in CLAIMABLE:
            lane.push(job)

    def leave(self, job: Job) -> None:
        """Count a job out; its heap entries die by themselves."""
        lane = self._lanes[_key(job)]
        lane.states[job.state] -= 1
        lane.failures[job.state] -= job.failures

    def delayed(self, lane: Lane, state: State, now: datetime) -> int:
        return len(
            {
                entry.job_id
                for entry in lane.heap
                if entry.run_at > now
                and self._is_live(entry)
                and self._jobs[entry.job_id].state is state
            }
        )

    def take(
        self, request: ClaimRequest, pauses: Sequence[Pause], lease: Callable[[Job], Job]
    ) -> list[Job]:
        """Lease up to `limit` matching due jobs, by priority, then run_at, then seq."""
        taken: list[Job] = []
        for priority in Priority:
            lanes = [
                lane
                for key, lane in self._lanes.items()
                if key.priority == priority and _matches(key, request, pauses)
            ]
            self._merge(lanes, request, lease, taken)
            if len(taken) >= request.limit:
                break
        return taken

    def _merge(
        self,
        lanes: list[Lane],
        request: ClaimRequest,
        lease: Callable[[Job], Job],
        taken: list[Job],
    ) -> None:
        """Merge lanes of one priority: always the lane whose first job is the oldest."""
        heaps = [heap for lane in lanes if (heap := lane.driver(request.tags))]
        passed_over: list[tuple[list[Entry], Entry]] = []
        heads = [(entry, index) for index, heap in enumerate(heaps) if (entry := self._first(heap))]
        heapq.heapify(heads)
        while heads and len(taken) < request.limit and heads[0][0].run_at <= request.now:
            entry, index = heapq.heappop(heads)
            heap = heaps[index]
            heapq.heappop(heap)
            job = self._jobs[entry.job_id]
            if set(request.tags) <= set(job.tags):
                taken.append(lease(job))
            else:
                passed_over.append((heap, entry))
            if head := self._first(heap):
                heapq.heappush(heads, (head, index))
        for heap, entry in passed_over:
            heapq.heappush(heap, entry)

    def _first(self, heap: list[Entry]) -> Entry | None:
        while heap and not self._is_live(heap[0]):
            heapq.heappop(heap)
        return heap[0] if heap else None

    def _is_live(self, entry: Entry) -> bool:
        job = self._jobs.get(entry.job_id)
        return (
            job is not None
            and job.state in CLAIMABLE
            and job.run_at == entry.run_at
            and job.seq == entry.seq
        )


def _key(job: Job) -> LaneKey:
    return LaneKey(job.tenant, job.queue, job.type, job.priority)


def _matches(key: LaneKey, request: ClaimRequest, pauses: Sequence[Pause]) -> bool:
    return (
        (request.tenant is None or key.tenant == request.tenant)
        and (request.queues is None or key.queue in request.queues)
        and (request.types is None or key.type in request.types)
        and not any(
            pause.queue == key.queue and pause.tenant in (None, key.tenant) for pause in pauses
        )
    )
