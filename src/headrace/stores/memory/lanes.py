"""Waiting jobs in claim order, without scans.

A lane is all jobs of one tenant, queue, type, priority and limit key. Each keeps a heap of its waiting
jobs by (run_at, seq), and one more per tag. Heaps are never searched for a job that leaves: an entry is
checked against the job when it comes up, and dropped if the job has moved on.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from headrace.model import CLAIMABLE, Job, Priority, State
from headrace.stores.base import ClaimRequest, Head, Pause, Share
from headrace.stores.columns import LaneKey

LOOKED_AT_MAX = 10_000
"""So many due jobs of a lane are gone through in search of one that is not."""


class Entry(NamedTuple):
    run_at: datetime
    seq: int
    job_id: str
    lane: LaneKey
    """A job may move to another: its entry here is dead then."""


class Lane:
    """One lane: its waiting jobs in order and how many jobs it has in each state."""

    def __init__(self) -> None:
        self.heap: list[Entry] = []
        self.by_tag: dict[str, list[Entry]] = {}
        self.states: Counter[State] = Counter()
        self.failures: Counter[State] = Counter()

    def push(self, job: Job) -> None:
        entry = Entry(job.run_at, job.seq, job.id, _key(job))
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
        self._waiting: dict[int, dict[str, dict[LaneKey, Lane]]] = {
            priority: {} for priority in Priority
        }
        """By priority and queue, the lanes that may have waiting jobs: a claim looks at no others."""

    def items(self) -> Iterator[tuple[LaneKey, Lane]]:
        return iter(self._lanes.items())

    def enter(self, job: Job) -> None:
        """Count a job in, and line it up if it waits."""
        lane = self._lanes.get(key := _key(job)) or self._lanes.setdefault(key, Lane())
        lane.states[job.state] += 1
        lane.failures[job.state] += job.failures
        if job.state in CLAIMABLE:
            lane.push(job)
            self._waiting[job.priority].setdefault(job.queue, {})[key] = lane

    def leave(self, job: Job) -> None:
        """Count a job out; its heap entries die by themselves."""
        lane = self._lanes[_key(job)]
        lane.states[job.state] -= 1
        lane.failures[job.state] -= job.failures

    def forget(self, job: Job) -> None:
        """Let go of the lane of a job that was deleted, if it was the last."""
        lane = self._lanes[key := _key(job)]
        if not lane.states.total():
            del self._lanes[key]
            self._waiting[job.priority].get(job.queue, {}).pop(key, None)

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
        self,
        request: ClaimRequest,
        pauses: Sequence[Pause],
        gated: Collection[str],
        lease: Callable[[Job], Job],
    ) -> list[Job]:
        """Lease up to `limit` matching due jobs, by priority, then run_at, then seq."""
        taken: list[Job] = []
        for priority in Priority:
            lanes = [lane for _, lane in self._open(priority, request, pauses, gated)]
            self._merge(lanes, request, request.limit, lease, taken)
            if len(taken) >= request.limit:
                break
        return taken

    def take_shares(
        self,
        request: ClaimRequest,
        pauses: Sequence[Pause],
        shares: Sequence[Share],
        lease: Callable[[Job], Job],
    ) -> list[Job]:
        """Lease from one lane after the other, up to its share."""
        taken: list[Job] = []
        for share in shares:
            key = LaneKey(share.tenant, share.queue, share.type, share.priority, share.limit_key)
            lane = self._lanes.get(key)
            if lane is not None and _matches(key, request, pauses):
                limit = min(len(taken) + share.jobs, request.limit)
                self._merge([lane], request, limit, lease, taken)
        return taken

    def heads(self, request: ClaimRequest, pauses: Sequence[Pause]) -> list[Head]:
        """The lanes with matching due jobs."""
        found = []
        for priority in Priority:
            for key, lane in self._open(priority, request, pauses, ()):
                due = list(itertools.islice(self._due(lane, request), request.limit))
                if due:
                    found.append(Head(**key._asdict(), run_at=due[0].run_at, jobs=len(due)))
        return found

    def next_due(self, request: ClaimRequest, pauses: Sequence[Pause]) -> datetime | None:
        """The first run_at after `now` of the lanes that match."""
        found = (
            moment
            for priority in Priority
            for _, lane in self._open(priority, request, pauses, ())
            if (moment := self._next_due(lane.heap, request.horizon)) is not None
        )
        return min(found, default=None)

    def _next_due(self, heap: list[Entry], now: datetime) -> datetime | None:
        """Down from the root through what is due: below what is not, all is later still."""
        first: datetime | None = None
        ahead = deque([0])
        for _ in range(LOOKED_AT_MAX):
            if not ahead:
                return first
            index = ahead.popleft()
            entry = heap[index]
            is_ahead = entry.run_at > now
            if is_ahead and (first is not None and first <= entry.run_at):
                continue
            if is_ahead and self._is_live(entry):
                first = entry.run_at
            else:
                ahead.extend(child for child in (2 * index + 1, 2 * index + 2) if child < len(heap))
        return None

    def _open(
        self,
        priority: int,
        request: ClaimRequest,
        pauses: Sequence[Pause],
        gated: Collection[str],
    ) -> list[tuple[LaneKey, Lane]]:
        """The lanes of a priority that match and have waiting jobs; drained ones are let go of."""
        found = []
        for queue, lanes in self._waiting[priority].items():
            if queue in gated or (request.queues is not None and queue not in request.queues):
                continue
            for key, lane in list(lanes.items()):
                if self._first(lane.heap) is None:
                    del lanes[key]
                elif _matches(key, request, pauses):
                    found.append((key, lane))
        return found

    def _due(self, lane: Lane, request: ClaimRequest) -> Iterator[Entry]:
        """The matching due entries in order, each once, without taking any away.

        A heap is a tree whose every parent comes before its children: it can be read in order from
        the root down, as far as wanted.
        """
        heap = lane.driver(request.tags)
        ahead = [(heap[0], 0)] if heap else []
        last = None
        while ahead and ahead[0][0].run_at <= request.horizon:
            entry, index = heapq.heappop(ahead)
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(heap):
                    heapq.heappush(ahead, (heap[child], child))
            if entry != last and self._is_live(entry) and self._has_tags(entry, request):
                yield entry
            last = entry

    def _merge(
        self,
        lanes: list[Lane],
        request: ClaimRequest,
        limit: int,
        lease: Callable[[Job], Job],
        taken: list[Job],
    ) -> None:
        """Merge lanes of one priority: always the lane whose first job is the oldest.

        Until `taken` has as many as the limit.
        """
        heaps = [heap for lane in lanes if (heap := lane.driver(request.tags))]
        passed_over: list[tuple[list[Entry], Entry]] = []
        heads = [(entry, index) for index, heap in enumerate(heaps) if (entry := self._first(heap))]
        heapq.heapify(heads)
        while heads and len(taken) < limit and heads[0][0].run_at <= request.horizon:
            entry, index = heapq.heappop(heads)
            heap = heaps[index]
            heapq.heappop(heap)
            if self._has_tags(entry, request):
                taken.append(lease(self._jobs[entry.job_id]))
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

    def _has_tags(self, entry: Entry, request: ClaimRequest) -> bool:
        return set(request.tags) <= set(self._jobs[entry.job_id].tags)

    def _is_live(self, entry: Entry) -> bool:
        job = self._jobs.get(entry.job_id)
        return (
            job is not None
            and job.state in CLAIMABLE
            and job.run_at == entry.run_at
            and job.seq == entry.seq
            and _key(job) == entry.lane
        )


def _key(job: Job) -> LaneKey:
    return LaneKey(job.tenant, job.queue, job.type, job.priority, job.limit_key)


def _matches(key: LaneKey, request: ClaimRequest, pauses: Sequence[Pause]) -> bool:
    return (
        (request.tenant is None or key.tenant == request.tenant)
        and (request.queues is None or key.queue in request.queues)
        and (request.types is None or key.type in request.types)
        and not any(
            pause.queue == key.queue and pause.tenant in (None, key.tenant) for pause in pauses
        )
    )
