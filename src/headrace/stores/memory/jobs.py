"""The rows, and every way to find them without looking at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from headrace.model import TERMINAL, Job, State
from headrace.stores.base import Query
from headrace.stores.memory.lanes import Lanes
from headrace.stores.memory.leases import Deadlines


class Jobs:
    def __init__(self) -> None:
        self._rows: dict[str, Job] = {}  # in order of seq: rows are replaced in place, never moved
        self._by_state: dict[State, dict[str, None]] = {state: {} for state in State}
        self._by_tag: dict[str, dict[str, None]] = {}
        self._by_parent: dict[str, dict[str, None]] = {}
        self._seq = 0
        self.lanes = Lanes(self._rows)
        self.leases = Deadlines(self._rows, lambda job, until: job.lease_until == until)
        self.lifetimes = Deadlines(self._rows, lambda job, _: job.state not in TERMINAL)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._rows

    def __getitem__(self, job_id: str) -> Job:
        return self._rows[job_id]

    def get(self, job_id: str) -> Job | None:
        return self._rows.get(job_id)

    def add(self, job: Job) -> Job:
        """A new row; as stored, with its seq."""
        self._seq += 1
        row = replace(job, seq=self._seq)
        self._enter(row)
        for tag in row.tags:
            self._by_tag.setdefault(tag, {})[row.id] = None
        if row.parent_id is not None:
            self._by_parent.setdefault(row.parent_id, {})[row.id] = None
        if row.expires_at is not None:
            self.lifetimes.note(row, row.expires_at)
        return row

    def move(self, job: Job) -> None:
        """The row in another state."""
        self._leave(self._rows[job.id])
        self._enter(job)

    def update(self, job: Job) -> None:
        """The row with other tags or in another lane, in the same state."""
        before = self._rows[job.id]
        for tag in set(before.tags) - set(job.tags):
            del self._by_tag[tag][job.id]
        for tag in set(job.tags) - set(before.tags):
            self._by_tag.setdefault(tag, {})[job.id] = None
        self.lanes.leave(before)
        self._rows[job.id] = job
        self.lanes.enter(job)
        self.lanes.forget(before)

    def touch(self, job: Job) -> None:
        """The row in the same state, with other contents or another end of its lease."""
        moved = job.lease_until != self._rows[job.id].lease_until
        self._rows[job.id] = job
        if moved:
            self._note_lease(job)

    def remove(self, job: Job) -> None:
        self._leave(job)
        self.lanes.forget(job)
        del self._rows[job.id]
        for tag in job.tags:
            del self._by_tag[tag][job.id]
        if job.parent_id is not None:
            del self._by_parent[job.parent_id][job.id]

    def in_states(self, states: Iterable[State]) -> Iterator[Job]:
        return (self._rows[job_id] for state in states for job_id in self._by_state[state])

    def spawned(self, parent_id: str) -> list[Job]:
        children = self._by_parent.get(parent_id, {})
        return sorted((self._rows[job_id] for job_id in children), key=attrgetter("seq"))

    def candidates(self, query: Query) -> Iterable[Job]:
        """The smallest set at hand that holds every match."""
        sets: list[Collection[str]] = []
        if query.ids is not None:
            return [
                self._rows[job_id] for job_id in dict.fromkeys(query.ids) if job_id in self._rows
            ]
        if query.tags:
            sets.append(min((self._by_tag.get(tag, {}) for tag in query.tags), key=len))
        if query.states is not None:
            sets.append([job_id for state in set(query.states) for job_id in self._by_state[state]])
        if not sets:
            return self._rows.values()
        return [self._rows[job_id] for job_id in min(sets, key=len)]

    def _enter(self, job: Job) -> None:
        self._rows[job.id] = job
        self._by_state[job.state][job.id] = None
        self.lanes.enter(job)
        self._note_lease(job)

    def _leave(self, job: Job) -> None:
        del self._by_state[job.state][job.id]
        self.lanes.leave(job)

    def _note_lease(self, job: Job) -> None:
        if job.lease_until is not None:
            self.leases.note(job, job.lease_until)
