"""The store as the manager sees it: contents are sealed on the way in and opened on the way out.

Every verb of the protocol is named here, so that a new one cannot store contents in the clear because nobody
thought of it: until it is named, this is no `JobStore`. (A note is sealed where it is made: it names no
tenant, and a sealed content is bound to one. Records seal themselves where they hold contents.)
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from headrace.graph import Join
from headrace.manager.sealing import Sealing
from headrace.model import Change, Edge, Event, Job
from headrace.stores.base import (
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
    Held,
    Inserted,
    Insertion,
    JobStore,
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


class SealedStore:
    """A `JobStore` over another. Whatever reads jobs through it, or changes them, need not know of keys."""

    def __init__(self, behind: JobStore, sealing: Sealing) -> None:
        self._behind = behind
        self._sealing = sealing

    # --- verbs that carry contents -------------------------------------------------------------------

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        if self._sealing.keys is None:
            return await self._behind.insert(insertion)
        sealed = [self._sealing.draft(job) for job in insertion.jobs]
        answer = await self._behind.insert(replace(insertion, jobs=sealed))
        if isinstance(answer, Clash):
            return answer
        rows = zip(insertion.jobs, answer.jobs, strict=True)
        return Inserted([self._sealing.drafted(given, row) for given, row in rows])

    def commit(self, commit: Commit) -> Coroutine[Any, Any, Committed]:
        # Not a coroutine of its own: every attempt ends by here.
        if self._sealing.touches(commit.changes):
            commit = replace(commit, changes=self._sealing.changes(commit.changes))
        return self._behind.commit(commit)

    async def claim(self, request: ClaimRequest) -> Sequence[Job]:
        return self._sealing.opened(await self._behind.claim(request))

    async def claim_shares(
        self, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
    ) -> Sequence[Job] | None:
        claimed = await self._behind.claim_shares(request, shares, gates)
        return None if claimed is None else self._sealing.opened(claimed)

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        found = await self._behind.get(ids)
        return dict(zip(found, self._sealing.opened(found.values()), strict=True))

    async def find(self, query: Query) -> Sequence[Job]:
        return self._sealing.opened(await self._behind.find(query))

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return self._sealing.opened(await self._behind.lapsed(now, limit, tenant=tenant))

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return self._sealing.opened(await self._behind.outlived(now, limit, tenant=tenant))

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        return self._sealing.opened(await self._behind.spawned(parent_id))

    # --- verbs that carry none, or no job's -----------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        return self._behind.capabilities

    def close(self) -> Coroutine[Any, Any, None]:
        return self._behind.close()

    def now(self) -> Coroutine[Any, Any, datetime]:
        return self._behind.now()

    def diagnose(self) -> Coroutine[Any, Any, Sequence[Finding]]:
        return self._behind.diagnose()

    def heads(self, request: ClaimRequest) -> Coroutine[Any, Any, Sequence[Head]]:
        return self._behind.heads(request)

    def next_due(self, request: ClaimRequest) -> Coroutine[Any, Any, datetime | None]:
        return self._behind.next_due(request)

    def extend(
        self, leases: Mapping[Fence, float | None], now: datetime
    ) -> Coroutine[Any, Any, Sequence[Extended]]:
        return self._behind.extend(leases, now)

    def annotate(self, fence: Fence, note: Note, now: datetime) -> Coroutine[Any, Any, bool]:
        return self._behind.annotate(fence, note, now)

    def rewrite(self, rewrites: Sequence[Rewrite]) -> Coroutine[Any, Any, Sequence[bool]]:
        return self._behind.rewrite(rewrites)

    def update(self, changes: Sequence[Change]) -> Coroutine[Any, Any, Sequence[bool]]:
        return self._behind.update(changes)

    def delete(self, jobs: Mapping[str, int]) -> Coroutine[Any, Any, bool]:
        return self._behind.delete(jobs)

    def keyed(
        self, scopes: Sequence[KeyScope], now: datetime
    ) -> Coroutine[Any, Any, Mapping[KeyScope, str]]:
        return self._behind.keyed(scopes, now)

    def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Coroutine[Any, Any, Sequence[Tally]]:
        return self._behind.count(now, tenant=tenant, queues=queues, tags=tags)

    def held(self, now: datetime, queues: Sequence[str]) -> Coroutine[Any, Any, Sequence[Held]]:
        return self._behind.held(now, queues)

    def backlog(
        self, *, tenant: str | None = None, queue: str | None = None
    ) -> Coroutine[Any, Any, Backlog]:
        return self._behind.backlog(tenant=tenant, queue=queue)

    def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Coroutine[Any, Any, Sequence[Edge]]:
        return self._behind.edges(parent_id=parent_id, child_id=child_id)

    def joins(self, child_ids: Sequence[str]) -> Coroutine[Any, Any, Mapping[str, Join]]:
        return self._behind.joins(child_ids)

    def unseen(self, limit: int) -> Coroutine[Any, Any, Sequence[Edge]]:
        return self._behind.unseen(limit)

    def pause(self, pause: Pause) -> Coroutine[Any, Any, None]:
        return self._behind.pause(pause)

    def resume(self, queue: str, tenant: str | None) -> Coroutine[Any, Any, bool]:
        return self._behind.resume(queue, tenant)

    def pauses(self) -> Coroutine[Any, Any, Sequence[Pause]]:
        return self._behind.pauses()

    def announce(self, worker: WorkerSeen) -> Coroutine[Any, Any, None]:
        return self._behind.announce(worker)

    def workers(self, since: datetime) -> Coroutine[Any, Any, Sequence[WorkerSeen]]:
        return self._behind.workers(since)

    def records(
        self, kind: str, names: Sequence[str] | None = None
    ) -> Coroutine[Any, Any, Sequence[Record]]:
        return self._behind.records(kind, names)

    def put_record(self, record: Record) -> Coroutine[Any, Any, bool]:
        return self._behind.put_record(record)

    def delete_record(self, record: Record) -> Coroutine[Any, Any, bool]:
        return self._behind.delete_record(record)

    def events(self, query: EventQuery) -> Coroutine[Any, Any, Sequence[Event]]:
        return self._behind.events(query)

    def tail(self) -> Coroutine[Any, Any, str]:
        return self._behind.tail()

    def trim(self, upto: Sequence[str], before: datetime, limit: int) -> Coroutine[Any, Any, int]:
        return self._behind.trim(upto, before, limit)

    def wait(self, after: str, timeout_seconds: float) -> Coroutine[Any, Any, None]:
        return self._behind.wait(after, timeout_seconds)
