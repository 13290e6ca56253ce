"""The verbs of the in-memory store. Each runs under one lock without awaiting: atomic by construction."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from headrace import lifecycle
from headrace.errors import InvalidCursor, StoreClosed
from headrace.graph import Join
from headrace.model import CLAIMABLE, LEASED, TERMINAL, Change, Edge, Event, Job, State
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
    KeyHold,
    KeyScope,
    Note,
    Pause,
    Query,
    Record,
    Rewrite,
    Share,
    Tally,
    WorkerSeen,
)
from headrace.stores.memory.edges import Edges
from headrace.stores.memory.lanes import Lanes
from headrace.stores.memory.records import Records


class Deadline(NamedTuple):
    """When something of a job's is over: its lease, or its lifetime."""

    at: datetime
    seq: int
    job_id: str


class MemoryStore:
    """`memory:` - for tests and the simulator; what it holds dies with it."""

    capabilities = Capabilities(name="memory", durable=False, shared=False)

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._jobs: dict[str, Job] = {}  # in order of seq: rows are replaced in place, never moved
        self._lanes = Lanes(self._jobs)
        self._edges = Edges()
        self._records = Records()
        self._by_state: dict[State, dict[str, None]] = {state: {} for state in State}
        self._by_tag: dict[str, dict[str, None]] = {}
        self._leases: list[Deadline] = []
        self._lifetimes: list[Deadline] = []
        self._spawned: dict[str, dict[str, None]] = {}
        self._keys: dict[KeyScope, KeyHold] = {}
        self._events: list[Event] = []
        self._events_of: dict[str, list[Event]] = {}
        self._pauses: dict[tuple[str, str | None], Pause] = {}
        self._workers: dict[str, WorkerSeen] = {}
        self._seq = 0
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def close(self) -> None:
        self._closed = True
        self._wake()

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
                self._seq += 1
                row = replace(job, seq=self._seq)
                self._enter(row)
                for tag in row.tags:
                    self._by_tag.setdefault(tag, {})[row.id] = None
                if row.parent_id is not None:
                    self._spawned.setdefault(row.parent_id, {})[row.id] = None
                if row.expires_at is not None:
                    heapq.heappush(self._lifetimes, Deadline(row.expires_at, row.seq, row.id))
                self._log(event)
                stored.append(row)
            self._edges.add(insertion.edges)
            for hold in insertion.keys:
                self._keys[hold.scope] = hold
            self._wake()
            return Inserted(stored)

    async def claim(self, request: ClaimRequest) -> Sequence[Job]:
        with self._open():
            gated = set(self._records.names(GATE))
            return self._claimed(
                self._lanes.take(request, self._all_pauses(), gated, self._leasing(request))
            )

    async def heads(self, request: ClaimRequest) -> Sequence[Head]:
        with self._open():
            return self._lanes.heads(request, self._all_pauses())

    async def claim_shares(
        self, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
    ) -> Sequence[Job] | None:
        with self._open():
            if not all(self._records.is_current(gate) for gate in gates):
                return None
            for gate in gates:
                self._records.put(gate)
            return self._claimed(
                self._lanes.take_shares(request, self._all_pauses(), shares, self._leasing(request))
            )

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
            self._edges.see(commit.seen)
            if any(applied):
                self._wake()
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
                    self._jobs[job.id] = replace(job, lease_until=until)
                    self._note_lease(self._jobs[job.id])
                    extended.append(Extended(job.id, job.state, until))
            return extended

    async def annotate(self, fence: Fence, note: Note, now: datetime) -> bool:
        with self._open():
            if not self._holds(fence, now):
                return False
            job = self._jobs[fence.job_id]
            said = {
                name: value
                for name in ("progress", "progress_note", "checkpoint_json", "log_json")
                if (value := getattr(note, name)) is not None
            }
            self._jobs[job.id] = replace(job, **said)
            return True

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> Sequence[bool]:
        with self._open():
            answers = []
            for rewrite in rewrites:
                job = self._jobs.get(rewrite.job_id)
                current = job is not None and job.version == rewrite.version and not job.is_leased
                if job is not None and current:
                    self._jobs[job.id] = _rewritten(job, rewrite)
                answers.append(current)
            return answers

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        with self._open():
            present = [self._jobs[job_id] for job_id in jobs if job_id in self._jobs]
            if any(job.version != jobs[job.id] for job in present):
                return False
            for job in present:
                self._leave(job)
                self._lanes.forget(job)
                del self._jobs[job.id]
                for tag in job.tags:
                    del self._by_tag[tag][job.id]
                if job.parent_id is not None:
                    del self._spawned[job.parent_id][job.id]
                self._release_key(job, even_if_kept=True)
                self._edges.forget_child(job.id)
            return True

    # --- reading jobs ----------------------------------------------------------------------------

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        with self._open():
            return {job_id: self._jobs[job_id] for job_id in ids if job_id in self._jobs}

    async def find(self, query: Query) -> Sequence[Job]:
        with self._open():
            found = [job for job in self._candidates(query) if _matches(job, query)]
            found.sort(key=attrgetter("seq"), reverse=query.newest_first)
            return found[: query.limit]

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        with self._open():
            return self._overdue(
                self._leases, now, limit, tenant, lambda job, until: job.lease_until == until
            )

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        with self._open():
            return self._overdue(
                self._lifetimes, now, limit, tenant, lambda job, _: job.state not in TERMINAL
            )

    async def keyed(self, scopes: Sequence[KeyScope], now: datetime) -> Mapping[KeyScope, str]:
        with self._open():
            return {scope: hold.job_id for scope in scopes if (hold := self._held(scope, now))}

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[Tally]:
        with self._open():
            sums: dict[tuple[str, str, State], list[int]] = {}
            if tags:
                query = Query(tenant=tenant, queues=queues, tags=tags)
                for job in self._candidates(query):
                    if _matches(job, query):
                        late = job.state in CLAIMABLE and job.run_at > now
                        _add(sums, (job.tenant, job.queue, job.state), 1, int(late), job.failures)
            else:
                for key, lane in self._lanes.items():
                    if tenant not in (None, key.tenant) or (
                        queues is not None and key.queue not in queues
                    ):
                        continue
                    for state, jobs in lane.states.items():
                        late_jobs = (
                            self._lanes.delayed(lane, state, now) if state in CLAIMABLE else 0
                        )
                        _add(
                            sums,
                            (key.tenant, key.queue, state),
                            jobs,
                            late_jobs,
                            lane.failures[state],
                        )
            return [
                Tally(tenant=t, queue=q, state=s, jobs=jobs, delayed=delayed, failures=failures)
                for (t, q, s), (jobs, delayed, failures) in sorted(sums.items())
                if jobs
            ]

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[Held]:
        with self._open():
            leased = (self._jobs[job_id] for state in LEASED for job_id in self._by_state[state])
            counts = Counter(
                (job.tenant, job.queue, job.limit_key)
                for job in leased
                if job.queue in queues and (job.lease_until is None or job.lease_until > now)
            )
            return [
                Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=jobs)
                for (tenant, queue, limit_key), jobs in counts.items()
            ]

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> Backlog:
        with self._open():
            sizes = [
                len(job.payload_json)
                for state in (State.BLOCKED, *CLAIMABLE)
                for job in map(self._jobs.__getitem__, self._by_state[state])
                if tenant in (None, job.tenant) and queue in (None, job.queue)
            ]
            return Backlog(len(sizes), sum(sizes))

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
            children = self._spawned.get(parent_id, {})
            return sorted((self._jobs[job_id] for job_id in children), key=attrgetter("seq"))

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
            start = self._position(query.after)
            log: Iterable[Event]
            if query.job_id is not None:
                log = (
                    event for event in self._events_of.get(query.job_id, ()) if event.seq > start
                )
            else:
                log = (self._events[index] for index in range(start, len(self._events)))
            found: list[Event] = []
            for event in log:
                if len(found) >= query.limit:
                    break
                if query.tenant in (None, event.tenant):
                    found.append(event)
            return found

    async def tail(self) -> str:
        with self._open():
            return str(len(self._events)) if self._events else ""

    async def wait(self, after: str, timeout_seconds: float) -> None:
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        with self._open():
            if self._position(after) < len(self._events):
                return
            self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_seconds):
                await waiter[1].wait()
        except TimeoutError:
            return
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

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
            worker=request.worker, nonce=request.nonce, lease_seconds=request.lease_seconds
        )

        def lease(job: Job) -> Job:
            change = lifecycle.apply(job, command, request.now)
            self._write(change)
            return change.after

        return lease

    def _claimed(self, taken: list[Job]) -> list[Job]:
        if taken:
            self._wake()
        return taken

    def _overdue(
        self,
        heap: list[Deadline],
        now: datetime,
        limit: int,
        tenant: str | None,
        holds: Callable[[Job, datetime], bool],
    ) -> list[Job]:
        """Jobs whose deadline is not after `now`, the earliest first. Reading takes nothing away.

        A deadline that no longer holds (moved by a heartbeat, its job ended, its id used again) is
        dropped when it comes up; one that was noted twice is kept once.
        """
        found: list[Job] = []
        kept: dict[str, Deadline] = {}
        while heap and heap[0].at <= now and len(found) < limit:
            deadline = heapq.heappop(heap)
            job = self._jobs.get(deadline.job_id)
            if job is None or job.seq != deadline.seq or not holds(job, deadline.at):
                continue
            if kept.setdefault(job.id, deadline) is deadline and tenant in (None, job.tenant):
                found.append(job)
        for deadline in kept.values():
            heapq.heappush(heap, deadline)
        return found

    def _clash(self, insertion: Insertion) -> Clash | None:
        """The first kind of clash, if any, in the order fence, parents, ids, keys."""
        if insertion.fence is not None and not self._holds(insertion.fence, insertion.now):
            return Clash(fence=True)
        moved = [
            parent_id
            for parent_id, outcome in insertion.parents.items()
            if (parent := self._jobs.get(parent_id)) is None or _outcome(parent) is not outcome
        ]
        if moved:
            return Clash(parents=moved)
        ids = [job.id for job in insertion.jobs if job.id in self._jobs]
        if ids:
            return Clash(ids=ids)
        held = [hold.scope for hold in insertion.keys if self._held(hold.scope, insertion.now)]
        return Clash(keys=held) if held else None

    def _write(self, change: Change) -> list[Edge]:
        """One change with all that goes with it; the edges it settled."""
        stored = self._jobs[change.before.id]
        self._leave(stored)
        self._enter(_keep_newer(change.after, stored))
        self._log(change.event)
        if change.after.state not in TERMINAL:
            return []
        self._release_key(change.after)
        return self._edges.settle(change.after.id, change.after.state)

    def _enter(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._by_state[job.state][job.id] = None
        self._lanes.enter(job)
        self._note_lease(job)

    def _note_lease(self, job: Job) -> None:
        if job.lease_until is not None:
            heapq.heappush(self._leases, Deadline(job.lease_until, job.seq, job.id))

    def _leave(self, job: Job) -> None:
        del self._by_state[job.state][job.id]
        self._lanes.leave(job)

    def _is_current(self, read: Job, *, lease_too: bool) -> bool:
        job = self._jobs.get(read.id)
        return (
            job is not None
            and job.version == read.version
            and not (lease_too and job.lease_until != read.lease_until)
        )

    def _holds(self, fence: Fence, now: datetime) -> bool:
        job = self._jobs.get(fence.job_id)
        return (
            job is not None
            and job.token is not None
            and job.token == fence.token
            and (job.lease_until is None or job.lease_until > now)
        )

    def _held(self, scope: KeyScope, now: datetime) -> KeyHold | None:
        hold = self._keys.get(scope)
        return hold if hold and (hold.expires_at is None or hold.expires_at > now) else None

    def _release_key(self, job: Job, *, even_if_kept: bool = False) -> None:
        if job.key is None:
            return
        scope = KeyScope(job.tenant, job.queue, job.type, job.key)
        hold = self._keys.get(scope)
        if hold and hold.job_id == job.id and (even_if_kept or hold.released_when_terminal):
            del self._keys[scope]

    def _candidates(self, query: Query) -> Iterable[Job]:
        """The smallest set at hand that holds every match."""
        sets: list[Collection[str]] = []
        if query.ids is not None:
            return [
                self._jobs[job_id] for job_id in dict.fromkeys(query.ids) if job_id in self._jobs
            ]
        if query.tags:
            sets.append(min((self._by_tag.get(tag, {}) for tag in query.tags), key=len))
        if query.states is not None:
            sets.append([job_id for state in set(query.states) for job_id in self._by_state[state]])
        if not sets:
            return self._jobs.values()
        return [self._jobs[job_id] for job_id in min(sets, key=len)]

    def _log(self, event: Event) -> None:
        seq = len(self._events) + 1
        logged = replace(event, seq=seq, cursor=str(seq))
        self._events.append(logged)
        self._events_of.setdefault(event.job_id, []).append(logged)

    def _position(self, cursor: str) -> int:
        if cursor == "":
            return 0
        if not (cursor.isascii() and cursor.isdigit()):
            raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
        return int(cursor)

    def _wake(self) -> None:
        with self._lock:
            waiters, self._waiters = self._waiters, []
        for loop, event in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)


def _outcome(job: Job) -> State | None:
    return job.state if job.state in TERMINAL else None


def _keep_newer(after: Job, stored: Job) -> Job:
    """What heartbeats, notes and rewrites wrote since the change's job was read stays."""
    return replace(
        after,
        payload_json=stored.payload_json,
        progress=stored.progress,
        progress_note=stored.progress_note,
        checkpoint_json=stored.checkpoint_json,
        log_json=stored.log_json,
        lease_until=stored.lease_until
        if stored.is_leased and after.is_leased
        else after.lease_until,
    )


def _rewritten(job: Job, rewrite: Rewrite) -> Job:
    """The job with what is given. A failure's message is replaced only where there is a failure."""
    given = {
        name: value
        for name in ("payload_json", "result_json", "checkpoint_json", "log_json")
        if (value := getattr(rewrite, name)) is not None
    }
    if rewrite.failure_message is not None and job.failure is not None:
        message = rewrite.failure_message
        return replace(job, failure=replace(job.failure, message=message), **given)
    return replace(job, **given)


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


def _add(
    sums: dict[tuple[str, str, State], list[int]], key: tuple[str, str, State], *amounts: int
) -> None:
    row = sums.setdefault(key, [0, 0, 0])
    for index, amount in enumerate(amounts):
        row[index] += amount
