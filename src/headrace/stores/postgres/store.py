"""The PostgreSQL store: all its verbs, on connections of its own or inside the caller's transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Self

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
    diagnose,
    graph,
    insert,
    log,
    opening,
    queues,
    read,
    records,
    update,
    wait,
)
from headrace.stores.postgres.claim import Claimer, held
from headrace.stores.postgres.commit import commit as commit_changes
from headrace.stores.postgres.connection import Pool
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.leases import annotate, extend, lapsed, outlived
from headrace.stores.postgres.session import CallersSession, PoolSession, Session
from headrace.stores.postgres.sql import SCHEMA_DEFAULT, Sql

FOLD_SECONDS = 10.0
"""Whoever counts brings the tallies up to date this often, at most."""


class Verbs:
    """All verbs but those about connections. `hints` hears of each write that went through."""

    capabilities = Capabilities(name="postgresql", durable=True, shared=True, loads_in_bulk=True)

    def __init__(self, session: Session, sql: Sql, lanes: Lanes, hints: wait.Hinting) -> None:
        self._session = session
        self._sql = sql
        self._lanes = lanes
        self._claimer = Claimer(session, lanes)
        self._hints = hints
        self._fold_at = 0.0

    async def now(self) -> datetime:
        ((moment,),) = await self._session.read("now")
        assert isinstance(moment, datetime)
        return moment

    async def diagnose(self) -> Sequence[Finding]:
        return await diagnose.diagnose(self._session, self._sql.schema)

    # --- writing ---------------------------------------------------------------------------------

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        hint = self._hints.with_write()
        answer = await insert.insert(self._session, self._lanes, insertion, hint)
        if isinstance(answer, Inserted):
            self._hints.wrote(told=hint)
        return answer

    async def claim(self, request: ClaimRequest) -> Sequence[Job]:
        taken = await self._claimer.claim(request)
        if taken:
            self._hints.wrote()
        return taken

    async def heads(self, request: ClaimRequest) -> Sequence[Head]:
        return await self._claimer.heads(request)

    async def claim_shares(
        self, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
    ) -> Sequence[Job] | None:
        taken = await self._claimer.claim_shares(request, shares, gates)
        if taken:
            self._hints.wrote()
        return taken

    async def next_due(self, request: ClaimRequest) -> datetime | None:
        return await self._claimer.next_due(request)

    async def commit(self, commit: Commit) -> Committed:
        committed = await commit_changes(self._session, self._lanes, commit)
        if any(committed.applied):
            self._hints.wrote()
        return committed

    async def extend(
        self, leases: Mapping[Fence, float | None], now: datetime
    ) -> Sequence[Extended]:
        return await extend(self._session, leases, now)

    async def annotate(self, fence: Fence, note: Note, now: datetime) -> bool:
        return await annotate(self._session, fence, note, now)

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> Sequence[bool]:
        return await update.rewrite(self._session, rewrites)

    async def update(self, changes: Sequence[Change]) -> Sequence[bool]:
        answers = await update.update(self._session, self._lanes, changes)
        if any(answers):
            self._hints.wrote()
        return answers

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        return await update.delete(self._session, jobs)

    # --- reading jobs ----------------------------------------------------------------------------

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        return await read.get(self._session, self._lanes, ids)

    async def find(self, query: Query) -> Sequence[Job]:
        return await read.find(self._session, self._lanes, query)

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await lapsed(self._session, self._lanes, now, limit, tenant)

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await outlived(self._session, self._lanes, now, limit, tenant)

    async def keyed(self, scopes: Sequence[KeyScope], now: datetime) -> Mapping[KeyScope, str]:
        return await read.keyed(self._session, scopes, now)

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[Tally]:
        found = await read.count(
            self._session, self._lanes, now, tenant=tenant, queues=queues, tags=tags
        )
        if time.monotonic() >= self._fold_at and not self._session.is_callers:
            self._fold_at = time.monotonic() + FOLD_SECONDS
            await read.fold_tallies(self._session)
        return found

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[Held]:
        return await held(self._session, now, queues)

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> Backlog:
        return await read.backlog(self._session, tenant, queue)

    # --- dependencies ----------------------------------------------------------------------------

    async def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Sequence[Edge]:
        return await graph.edges(self._session, parent_id, child_id)

    async def joins(self, child_ids: Sequence[str]) -> Mapping[str, Join]:
        return await graph.joins(self._session, child_ids)

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        return await graph.spawned(self._session, self._lanes, parent_id)

    async def unseen(self, limit: int) -> Sequence[Edge]:
        return await graph.unseen(self._session, limit)

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


class PostgresStore(Verbs):
    """`postgresql://` - for teams and many hosts. What it acknowledged survives the server's crash.

    Bound to the event loop it was opened on. Connections are opened as they are needed and replaced
    by themselves when the server restarts.
    """

    def __init__(self, pool: Pool, sql: Sql, where: str) -> None:
        session = PoolSession(pool, sql, where)
        lanes = Lanes(session)
        hints = wait.Hints(pool, session, wait.channel(sql.schema))
        super().__init__(session, sql, lanes, hints)
        self._pool = pool
        self._listening = hints

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        migrate: bool = False,
        create: bool = True,
        schema: str = SCHEMA_DEFAULT,
        pool_size: int = opening.POOL_SIZE_DEFAULT,
    ) -> Self:
        """Connect to the database behind the url, in the given schema of it (`?schema=` wins).

        A database without it gets it if `create` allows; an older schema raises SchemaTooOld unless
        `migrate` is set; a newer one raises SchemaTooNew.
        """
        to = opening.parse(url, schema=schema, pool_size=pool_size)
        sql = Sql(to.schema)
        pool = await opening.open_pool(to, sql, migrate=migrate, create=create)
        return cls(pool, sql, to.where)

    async def close(self) -> None:
        await self._listening.close()
        await self._pool.close()

    async def schema_version(self) -> int:
        """The version of the schema that the database has now."""
        ((version, *_),) = await self._session.read("schema_version")
        return int(version)

    async def wait(self, after: str, timeout_seconds: float) -> None:
        """As the protocol says: here at once, elsewhere within milliseconds or, a hint lost, POLL_SECONDS."""
        await wait.wait(self._session, self._listening, after, timeout_seconds)

    async def lanes_of(self, jobs: Sequence[Job]) -> list[int]:
        """The lane of each job, added if it is new: for loading in bulk."""
        return await self._lanes.of(jobs)

    def on(self, connection: object) -> TransactionStore:
        """This store inside the transaction of `connection`: what is inserted commits or vanishes with it.

        Takes connections of asyncpg, psycopg, SQLAlchemy and Django, with async methods and without. A job
        that others inserted there depend on cannot end before the transaction.
        """
        return TransactionStore(self, connection, self._sql, self._lanes)


class TransactionStore(Verbs):
    """The store, seen from within the caller's transaction. Lives as long as that.

    Nobody is told of what was written here before the transaction commits, nor then: workers find it
    when they next look.
    """

    def __init__(self, store: PostgresStore, connection: object, sql: Sql, lanes: Lanes) -> None:
        super().__init__(CallersSession(connection, sql), sql, lanes, wait.NoHints())
        self._store = store

    async def close(self) -> None:
        """Nothing: the connection and the store are their owners' to close."""

    async def wait(self, after: str, timeout_seconds: float) -> None:
        await self._store.wait(after, timeout_seconds)
