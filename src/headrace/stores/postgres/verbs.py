"""The verbs, wherever their statements run. Each is one statement in the usual case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from headrace.graph import Join
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
from headrace.stores.postgres import (
    changes,
    dependencies,
    diagnosis,
    log,
    queues,
    reading,
    records,
    updates,
)
from headrace.stores.postgres.claims import Claimer
from headrace.stores.postgres.insertion import insert
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.sql import Sql


class Verbs:
    """All verbs but those about connections. `wrote` is called after each write that went through."""

    capabilities = Capabilities(name="postgresql", durable=True, shared=True)

    def __init__(self, session: Session, sql: Sql, lanes: Lanes, wrote: Callable[[], None]) -> None:
        self._session = session
        self._sql = sql
        self._lanes = lanes
        self._claimer = Claimer(session, lanes)
        self._wrote = wrote

    async def now(self) -> datetime:
        ((moment,),) = await self._session.read("now")
        assert isinstance(moment, datetime)
        return moment

    async def diagnose(self) -> Sequence[Finding]:
        return await diagnosis.diagnose(self._session, self._sql.schema)

    # --- writing ---------------------------------------------------------------------------------

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        answer = await insert(self._session, self._lanes, insertion)
        if isinstance(answer, Inserted):
            self._wrote()
        return answer

    async def claim(self, request: ClaimRequest) -> Sequence[Job]:
        taken = await self._claimer.claim(request)
        if taken:
            self._wrote()
        return taken

    async def heads(self, request: ClaimRequest) -> Sequence[Head]:
        return await self._claimer.heads(request)

    async def claim_shares(
        self, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
    ) -> Sequence[Job] | None:
        taken = await self._claimer.claim_shares(request, shares, gates)
        if taken:
            self._wrote()
        return taken

    async def next_due(self, request: ClaimRequest) -> datetime | None:
        return await self._claimer.next_due(request)

    async def commit(self, commit: Commit) -> Committed:
        committed = await changes.commit(self._session, self._lanes, commit)
        if any(committed.applied):
            self._wrote()
        return committed

    async def extend(
        self, leases: Mapping[Fence, float | None], now: datetime
    ) -> Sequence[Extended]:
        return await changes.extend(self._session, leases, now)

    async def annotate(self, fence: Fence, note: Note, now: datetime) -> bool:
        return await changes.annotate(self._session, fence, note, now)

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> Sequence[bool]:
        return await changes.rewrite(self._session, rewrites)

    async def update(self, changes: Sequence[Change]) -> Sequence[bool]:
        answers = await updates.update(self._session, self._lanes, changes)
        if any(answers):
            self._wrote()
        return answers

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        return await changes.delete(self._session, jobs)

    # --- reading jobs ----------------------------------------------------------------------------

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        return await reading.get(self._session, self._lanes, ids)

    async def find(self, query: Query) -> Sequence[Job]:
        return await reading.find(self._session, self._lanes, query)

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await reading.lapsed(self._session, self._lanes, now, limit, tenant)

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await reading.outlived(self._session, self._lanes, now, limit, tenant)

    async def keyed(self, scopes: Sequence[KeyScope], now: datetime) -> Mapping[KeyScope, str]:
        return await reading.keyed(self._session, scopes, now)

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[Tally]:
        return await reading.count(
            self._session, self._lanes, now, tenant=tenant, queues=queues, tags=tags
        )

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[Held]:
        return await reading.held(self._session, now, queues)

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> Backlog:
        return await reading.backlog(self._session, tenant, queue)

    # --- dependencies ----------------------------------------------------------------------------

    async def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Sequence[Edge]:
        return await dependencies.edges(self._session, parent_id, child_id)

    async def joins(self, child_ids: Sequence[str]) -> Mapping[str, Join]:
        return await dependencies.joins(self._session, child_ids)

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        return await reading.spawned(self._session, self._lanes, parent_id)

    async def unseen(self, limit: int) -> Sequence[Edge]:
        return await dependencies.unseen(self._session, limit)

    # --- queues and workers ----------------------------------------------------------------------

    async def pause(self, pause: Pause) -> None:
        await queues.pause(self._session, pause)

    async def resume(self, queue: str, tenant: str | None) -> bool:
        return await queues.resume(self._session, queue, tenant)

    async def pauses(self) -> Sequence[Pause]:
        return await queues.pauses(self._session)

    async def announce(self, worker: WorkerSeen) -> None:
        await queues.announce(self._session, worker)

    async def workers(self, since: datetime) -> Sequence[WorkerSeen]:
        return await queues.workers(self._session, since)

    # --- records ---------------------------------------------------------------------------------

    async def records(self, kind: str, names: Sequence[str] | None = None) -> Sequence[Record]:
        return await records.find(self._session, kind, names)

    async def put_record(self, record: Record) -> bool:
        return await records.put(self._session, record)

    async def delete_record(self, record: Record) -> bool:
        return await records.delete(self._session, record)

    # --- events ----------------------------------------------------------------------------------

    async def events(self, query: EventQuery) -> Sequence[Event]:
        return await log.events(self._session, self._lanes, query)

    async def tail(self) -> str:
        return await log.tail(self._session)

    async def trim(self, upto: Sequence[str], before: datetime, limit: int) -> int:
        return await log.trim(self._session, upto, before, limit)
