"""The verbs of the in-memory store. Each runs under one lock without awaiting: atomic by construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from headrace.errors import StoreClosed
from headrace.graph import Join
from headrace.model import Change, Edge, Event, Job
from headrace.stores import base
from headrace.stores.memory import claim, insert, read, update, wait
from headrace.stores.memory.commit import commit as commit_changes
from headrace.stores.memory.leases import annotate, extend
from headrace.stores.memory.tables import Tables


class MemoryStore:
    """`memory:` - for tests and the simulator; what it holds dies with it."""

    capabilities = base.Capabilities(name="memory", durable=False, shared=False)

    def __init__(self) -> None:
        self._tables = Tables()
        self._closed = False

    async def close(self) -> None:
        with self._tables as tables:
            self._closed = True
            tables.log.wake()

    async def now(self) -> datetime:
        self._open()
        return datetime.now(UTC)

    async def diagnose(self) -> Sequence[base.Finding]:
        self._open()
        advice = "memory: is for tests; use a file or a server"
        return [base.Finding(base.Health.WARNING, "durability", "none", advice)]

    # --- writing ---------------------------------------------------------------------------------

    async def insert(self, insertion: base.Insertion) -> base.Inserted | base.Clash:
        with self._open() as tables:
            return insert.insert(tables, insertion)

    async def claim(self, request: base.ClaimRequest) -> Sequence[Job]:
        with self._open() as tables:
            return claim.claim(tables, request)

    async def heads(self, request: base.ClaimRequest) -> Sequence[base.Head]:
        with self._open() as tables:
            return tables.jobs.lanes.heads(request, tables.queues.pauses())

    async def claim_shares(
        self,
        request: base.ClaimRequest,
        shares: Sequence[base.Share],
        gates: Sequence[base.Record],
    ) -> Sequence[Job] | None:
        with self._open() as tables:
            return claim.claim_shares(tables, request, shares, gates)

    async def next_due(self, request: base.ClaimRequest) -> datetime | None:
        with self._open() as tables:
            return tables.jobs.lanes.next_due(request, tables.queues.pauses())

    async def commit(self, commit: base.Commit) -> base.Committed:
        with self._open() as tables:
            return commit_changes(tables, commit)

    async def extend(
        self, leases: Mapping[base.Fence, float | None], now: datetime
    ) -> Sequence[base.Extended]:
        with self._open() as tables:
            return extend(tables, leases, now)

    async def annotate(self, fence: base.Fence, note: base.Note, now: datetime) -> bool:
        with self._open() as tables:
            return annotate(tables, fence, note, now)

    async def rewrite(self, rewrites: Sequence[base.Rewrite]) -> Sequence[bool]:
        with self._open() as tables:
            return update.rewrite(tables, rewrites)

    async def update(self, changes: Sequence[Change]) -> Sequence[bool]:
        with self._open() as tables:
            return update.update(tables, changes)

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        with self._open() as tables:
            return update.delete(tables, jobs)

    # --- reading jobs ----------------------------------------------------------------------------

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        with self._open() as tables:
            return {job_id: tables.jobs[job_id] for job_id in ids if job_id in tables.jobs}

    async def find(self, query: base.Query) -> Sequence[Job]:
        with self._open() as tables:
            return read.find(tables.jobs, query)

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        with self._open() as tables:
            return tables.jobs.leases.over(now, limit, tenant)

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        with self._open() as tables:
            return tables.jobs.lifetimes.over(now, limit, tenant)

    async def keyed(
        self, scopes: Sequence[base.KeyScope], now: datetime
    ) -> Mapping[base.KeyScope, str]:
        with self._open() as tables:
            return {scope: holder for scope in scopes if (holder := tables.keys.holder(scope, now))}

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[base.Tally]:
        query = base.Query(tenant=tenant, queues=queues, tags=tags)
        with self._open() as tables:
            return read.tallies(tables.jobs, query, now)

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[base.Held]:
        with self._open() as tables:
            return claim.held(tables, now, queues)

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> base.Backlog:
        with self._open() as tables:
            return read.backlog(tables.jobs, tenant, queue)

    # --- dependencies ----------------------------------------------------------------------------

    async def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Sequence[Edge]:
        with self._open() as tables:
            return tables.edges.between(parent_id, child_id)

    async def joins(self, child_ids: Sequence[str]) -> Mapping[str, Join]:
        with self._open() as tables:
            return {child_id: tables.edges.join(child_id) for child_id in child_ids}

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        with self._open() as tables:
            return tables.jobs.spawned(parent_id)

    async def unseen(self, limit: int) -> Sequence[Edge]:
        with self._open() as tables:
            return tables.edges.unseen(limit)

    # --- queues and workers ----------------------------------------------------------------------

    async def pause(self, pause: base.Pause) -> None:
        with self._open() as tables:
            tables.queues.pause(pause)

    async def resume(self, queue: str, tenant: str | None) -> bool:
        with self._open() as tables:
            return tables.queues.resume(queue, tenant)

    async def pauses(self) -> Sequence[base.Pause]:
        with self._open() as tables:
            return tables.queues.pauses()

    async def announce(self, worker: base.WorkerSeen) -> None:
        with self._open() as tables:
            tables.queues.announce(worker)

    async def workers(self, since: datetime) -> Sequence[base.WorkerSeen]:
        with self._open() as tables:
            return tables.queues.workers(since)

    # --- records ---------------------------------------------------------------------------------

    async def records(self, kind: str, names: Sequence[str] | None = None) -> Sequence[base.Record]:
        with self._open() as tables:
            return tables.records.find(kind, names)

    async def put_record(self, record: base.Record) -> bool:
        with self._open() as tables:
            current = tables.records.is_current(record)
            if current:
                tables.records.put(record)
            return current

    async def delete_record(self, record: base.Record) -> bool:
        with self._open() as tables:
            return tables.records.delete(record)

    # --- events ----------------------------------------------------------------------------------

    async def events(self, query: base.EventQuery) -> Sequence[Event]:
        with self._open() as tables:
            return tables.log.read(query)

    async def tail(self) -> str:
        with self._open() as tables:
            return tables.log.tail()

    async def trim(self, upto: Sequence[str], before: datetime, limit: int) -> int:
        with self._open() as tables:
            return tables.log.trim(upto, before, limit)

    async def wait(self, after: str, timeout_seconds: float) -> None:
        await wait.wait(self._open(), after, timeout_seconds)

    # --- inside ----------------------------------------------------------------------------------

    def _open(self) -> Tables:
        if self._closed:
            raise StoreClosed("the store is closed; nothing was read or written")
        return self._tables
