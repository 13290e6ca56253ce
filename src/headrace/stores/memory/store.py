"""The verbs of the in-memory store. Each runs under one lock without awaiting: atomic by construction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter

from msgspec.structs import replace

from headrace import lifecycle
from headrace.errors import StoreClosed
from headrace.graph import Join
from headrace.model import TERMINAL, Change, Edge, Event, Job, State
from headrace.stores.base import (
    GATE,
    Backlog,
    Capabilities,
    ClaimRequest,
    Clash,
    Commit,
    Committed,
    EventQuery,
    Extended,
    Fence,
    Finding,
    Head,
    Health,
    Held,
    Inserted,
    Insertion,
    KeyScope,
    Kin,
    Note,
    Pause,
    Query,
    Record,
    Rewrite,
    Share,
    Tally,
    WorkerSeen,
)
from headrace.stores.memory import counts, rows
from headrace.stores.memory.edges import Edges
from headrace.stores.memory.jobs import Jobs
from headrace.stores.memory.keys import Keys
from headrace.stores.memory.log import Log
from headrace.stores.memory.records import Records


class MemoryStore:
    """`memory:` - for tests and the simulator; what it holds dies with it."""

    capabilities = Capabilities(name="memory", durable=False, shared=False)

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._jobs = Jobs()
        self._edges = Edges()
        self._keys = Keys()
        self._log = Log()
        self._records = Records()
        self._pauses: dict[tuple[str, str | None], Pause] = {}
        self._workers: dict[str, WorkerSeen] = {}

    async def close(self) -> None:
        with self._lock:
            self._closed = True
            self._log.wake()

    async def now(self) -> datetime:
        self._check_open()
        return datetime.now(UTC)

    async def diagnose(self) -> Sequence[Finding]:
        self._check_open()
        return [
            Finding(
                Health.WARNING, "durability", "none", "memory: is for tests; use a file or a server"
            )
        ]

    # --- writing ---------------------------------------------------------------------------------

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        with self._open():
            clash = self._clash(insertion)
            if clash is not None:
                return clash
            stored = []
            for job, event in zip(insertion.jobs, insertion.events, strict=True):
                stored.append(self._jobs.add(job))
                self._log.append(event)
            self._edges.add(insertion.edges)
            self._keys.hold(insertion.keys)
            self._log.wake()
            return Inserted(stored)

    async def claim(self, request: ClaimRequest) -> Sequence[Job]:
        with self._open():
            gated = set(self._records.names(GATE))
            return self._claimed(
                self._jobs.lanes.take(request, self._all_pauses(), gated, self._leasing(request))
            )

    async def heads(self, request: ClaimRequest) -> Sequence[Head]:
        with self._open():
            return self._jobs.lanes.heads(request, self._all_pauses())

    async def claim_shares(
        self, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
    ) -> Sequence[Job] | None:
        with self._open():
            if not all(self._records.is_current(gate) for gate in gates):
                return None
            for gate in gates:
                self._records.put(gate)
            return self._claimed(
                self._jobs.lanes.take_shares(
                    request, self._all_pauses(), shares, self._leasing(request)
                )
            )

    async def next_due(self, request: ClaimRequest) -> datetime | None:
        with self._open():
            return self._jobs.lanes.next_due(request, self._all_pauses())

    async def commit(self, commit: Commit) -> Committed:
        with self._open():
            applied = [
                self._is_current(change.before, lease_too=commit.leases_as_read)
                for change in commit.changes
            ]
            if commit.together and not all(applied):
                return Committed([False] * len(applied))
            touched: list[Edge] = []
            for change, current in zip(commit.changes, applied, strict=True):
                if current:
                    touched += self._write(change)
            self._edges.see(commit.seen_given(applied))
            if any(applied):
                self._log.wake()
            return Committed(applied, touched)

    async def extend(
        self, leases: Mapping[Fence, float | None], now: datetime
    ) -> Sequence[Extended]:
        with self._open():
            extended = []
            for fence, seconds in leases.items():
                if self._holds(fence, now):
                    job = self._jobs[fence.job_id]
                    until = None if seconds is None else now + timedelta(seconds=seconds)
                    self._jobs.touch(replace(job, lease_until=until))
                    extended.append(Extended(job.id, job.state, until))
            return extended

    async def annotate(self, fence: Fence, note: Note, now: datetime) -> bool:
        with self._open():
            if not self._holds(fence, now):
                return False
            self._jobs.touch(rows.annotated(self._jobs[fence.job_id], note))
            return True

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> Sequence[bool]:
        with self._open():
            answers = []
            for rewrite in rewrites:
                job = self._jobs.get(rewrite.job_id)
                current = job is not None and job.version == rewrite.version and not job.is_leased
                if job is not None and current:
                    self._jobs.touch(rows.rewritten(job, rewrite))
                answers.append(current)
            return answers

    async def update(self, changes: Sequence[Change]) -> Sequence[bool]:
        with self._open():
            answers = []
            for change in changes:
                current = self._is_current(change.before, lease_too=False)
                if current:
                    stored = self._jobs[change.before.id]
                    self._jobs.update(rows.updated(stored, change.after))
                    self._log.append(change.event)
                answers.append(current)
            if any(answers):
                self._log.wake()
            return answers

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        with self._open():
            present = [self._jobs[job_id] for job_id in jobs if job_id in self._jobs]
            if any(job.version != jobs[job.id] for job in present):
                return False
            for job in present:
                self._jobs.remove(job)
                self._keys.release(job, even_if_kept=True)
                self._edges.forget_child(job.id)
            return True

    # --- reading jobs ----------------------------------------------------------------------------

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        with self._open():
            return {job_id: self._jobs[job_id] for job_id in ids if job_id in self._jobs}

    async def find(self, query: Query) -> Sequence[Job]:
        with self._open():
            found = sorted(
                self._jobs.matching(query), key=attrgetter("seq"), reverse=query.newest_first
            )
            return found[: query.limit]

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        with self._open():
            return self._jobs.leases.over(now, limit, tenant)

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        with self._open():
            return self._jobs.lifetimes.over(now, limit, tenant)

    async def keyed(self, scopes: Sequence[KeyScope], now: datetime) -> Mapping[KeyScope, str]:
        with self._open():
            return {scope: holder for scope in scopes if (holder := self._keys.holder(scope, now))}

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[Tally]:
        with self._open():
            return counts.tallies(self._jobs, Query(tenant=tenant, queues=queues, tags=tags), now)

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[Held]:
        with self._open():
            return counts.held(self._jobs, now, queues)

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> Backlog:
        with self._open():
            return counts.backlog(self._jobs, tenant, queue)

    # --- dependencies ----------------------------------------------------------------------------

    async def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Sequence[Edge]:
        with self._open():
            if parent_id is not None:
                found = self._edges.from_parent(parent_id)
                return [edge for edge in found if child_id in (None, edge.child_id)]
            return [] if child_id is None else self._edges.into_child(child_id)

    async def joins(self, child_ids: Sequence[str]) -> Mapping[str, Join]:
        with self._open():
            return {child_id: self._edges.join(child_id) for child_id in child_ids}

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        with self._open():
            return self._jobs.spawned(parent_id)

    async def unseen(self, limit: int) -> Sequence[Edge]:
        with self._open():
            return self._edges.unseen(limit)

    # --- queues and workers ----------------------------------------------------------------------

    async def pause(self, pause: Pause) -> None:
        with self._open():
            self._pauses.setdefault((pause.queue, pause.tenant), pause)

    async def resume(self, queue: str, tenant: str | None) -> bool:
        with self._open():
            return self._pauses.pop((queue, tenant), None) is not None

    async def pauses(self) -> Sequence[Pause]:
        with self._open():
            return sorted(
                self._pauses.values(), key=lambda pause: (pause.queue, pause.tenant or "")
            )

    async def announce(self, worker: WorkerSeen) -> None:
        with self._open():
            self._workers[worker.worker] = worker

    async def workers(self, since: datetime) -> Sequence[WorkerSeen]:
        with self._open():
            seen = (worker for worker in self._workers.values() if worker.seen_at >= since)
            return sorted(seen, key=attrgetter("worker"))

    # --- records ---------------------------------------------------------------------------------

    async def records(self, kind: str, names: Sequence[str] | None = None) -> Sequence[Record]:
        with self._open():
            return self._records.find(kind, names)

    async def put_record(self, record: Record) -> bool:
        with self._open():
            current = self._records.is_current(record)
            if current:
                self._records.put(record)
            return current

    async def delete_record(self, record: Record) -> bool:
        with self._open():
            return self._records.delete(record)

    # --- events ----------------------------------------------------------------------------------

    async def events(self, query: EventQuery) -> Sequence[Event]:
        with self._open():
            return self._log.read(query)

    async def tail(self) -> str:
        with self._open():
            return self._log.tail()

    async def trim(self, upto: Sequence[str], before: datetime, limit: int) -> int:
        with self._open():
            return self._log.trim(upto, before, limit)

    async def wait(self, after: str, timeout_seconds: float) -> None:
        with self._open():
            if self._log.has_more(after):
                return
            grown = self._log.enlist()
        try:
            async with asyncio.timeout(timeout_seconds):
                await grown.wait()
        except TimeoutError:
            return
        finally:
            with self._lock:
                self._log.dismiss(grown)

    # --- inside ----------------------------------------------------------------------------------

    def _open(self) -> threading.RLock:
        self._check_open()
        return self._lock

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed; nothing was read or written")

    def _all_pauses(self) -> list[Pause]:
        return list(self._pauses.values())

    def _leasing(self, request: ClaimRequest) -> Callable[[Job], Job]:
        """What turns a waiting job into one that is leased as requested, event included."""
        command = lifecycle.Claim(
            worker=request.worker,
            nonce=request.nonce,
            lease_seconds=request.lease_seconds,
            due_by=request.due_by,
        )

        def lease(job: Job) -> Job:
            change = lifecycle.apply(job, command, request.now)
            self._write(change)
            return change.after

        return lease

    def _claimed(self, taken: list[Job]) -> list[Job]:
        if taken:
            self._log.wake()
        return taken

    def _clash(self, insertion: Insertion) -> Clash | None:
        """The first kind of clash, if any, in the order fence, parents, kin, ids, keys."""
        if insertion.fence is not None and not self._holds(insertion.fence, insertion.now):
            return Clash(fence=True)
        moved = [
            parent_id
            for parent_id, outcome in insertion.parents.items()
            if (parent := self._jobs.get(parent_id)) is None or _outcome(parent) is not outcome
        ]
        if moved:
            return Clash(parents=moved)
        grown = [
            job_id for job_id, kin in insertion.kin.items() if not self._is_as_read(job_id, kin)
        ]
        if grown:
            return Clash(kin=grown)
        ids = [job.id for job in insertion.jobs if job.id in self._jobs]
        if ids:
            return Clash(ids=ids)
        scopes = [hold.scope for hold in insertion.keys]
        held = [scope for scope in scopes if self._keys.holder(scope, insertion.now)]
        return Clash(keys=held) if held else None

    def _is_as_read(self, job_id: str, kin: Kin) -> bool:
        job = self._jobs.get(job_id)
        if kin.version is not None and (job is None or job.version != kin.version):
            return False
        if kin.parents_max is not None and self._edges.count_into(job_id) > kin.parents_max:
            return False
        joins = () if kin.joins is None else self._edges.joins_of(job_id)
        spawned = () if kin.spawned is None else self._jobs.spawned(job_id)
        return set(joins) <= set(kin.joins or ()) and {one.id for one in spawned} <= set(
            kin.spawned or ()
        )

    def _write(self, change: Change) -> list[Edge]:
        """One change with all that goes with it; the edges it settled."""
        stored = self._jobs[change.before.id]
        self._jobs.move(rows.keep_newer(change.after, stored))
        self._log.append(change.event)
        if change.after.state not in TERMINAL:
            return []
        self._keys.release(change.after)
        return self._edges.settle(change.after.id, change.after.state)

    def _is_current(self, read: Job, *, lease_too: bool) -> bool:
        job = self._jobs.get(read.id)
        return (
            job is not None
            and rows.is_as_read(job, read)
            and not (lease_too and job.lease_until != read.lease_until)
        )

    def _holds(self, fence: Fence, now: datetime) -> bool:
        job = self._jobs.get(fence.job_id)
        return (
            job is not None
            and job.token is not None
            and job.token == fence.token
            and lifecycle.lease_holds(job, now)
        )


def _outcome(job: Job) -> State | None:
    return job.state if job.state in TERMINAL else None
