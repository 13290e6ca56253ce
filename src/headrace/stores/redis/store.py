"""The verbs of the Redis store, each in a module of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Self

from headrace.clock import EPOCH
from headrace.graph import Join
from headrace.model import Change, Edge, Event, Job
from headrace.stores import base
from headrace.stores.redis import (
    claim,
    diagnose,
    graph,
    insert,
    log,
    opening,
    queues,
    read,
    records,
    schema,
    update,
)
from headrace.stores.redis.commit import commit as commit_changes
from headrace.stores.redis.connection import Server
from headrace.stores.redis.leases import annotate, due, extend
from headrace.stores.redis.wait import Watch


class RedisStore:
    """`redis://host:port/0`: Redis 7 or newer, or Valkey.

    Each verb that writes is one Lua script, so it is atomic; what an acknowledged write survives is
    the server's setting (`durability`). A verb whose connection breaks raises StoreUnavailable, which
    says whether anything was written, and the store connects again by itself.
    """

    capabilities = base.Capabilities(name="redis", durable=True, shared=True)

    def __init__(self, server: Server) -> None:
        self._server = server
        self._watch = Watch(server)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        migrate: bool = False,
        create: bool = True,
        prefix: str = "headrace",
        relaxed_durability: bool = False,
    ) -> Self:
        """The store behind the url; `?prefix=` and `?durability=relaxed` may also stand in the url.

        Logs a warning if the server may lose acknowledged writes, unless relaxed durability is asked
        for. `migrate` brings an older schema up to date, in one step; processes of the older version
        must be stopped first, and are refused their writes from then on. Raises SchemaTooNew,
        SchemaTooOld (unless `migrate`) or StoreUnavailable.
        """
        chosen = opening.parse(url, prefix=prefix, relaxed_durability=relaxed_durability)
        return cls(await opening.open_server(chosen, migrate=migrate, create=create))

    async def close(self) -> None:
        if not self._server.is_closed:
            await self._server.close()
            await self._watch.close()

    async def now(self) -> datetime:
        seconds, microseconds = await self._server.read("TIME")
        return EPOCH + timedelta(seconds=int(seconds), microseconds=int(microseconds))

    async def schema_version(self) -> int:
        """The version of the schema that the store has now."""
        return await schema.version_of(self._server)

    async def durability(self) -> diagnose.Durability:
        """What an acknowledged write survives, as the server is set now."""
        return await diagnose.durability(self._server)

    async def diagnose(self) -> Sequence[base.Finding]:
        return await diagnose.diagnose(self._server)

    # --- writing ---------------------------------------------------------------------------------

    async def insert(self, insertion: base.Insertion) -> base.Inserted | base.Clash:
        return await insert.insert(self._server, insertion)

    async def claim(self, request: base.ClaimRequest) -> Sequence[Job]:
        return await claim.claim(self._server, request)

    async def heads(self, request: base.ClaimRequest) -> Sequence[base.Head]:
        return await claim.heads(self._server, request)

    async def claim_shares(
        self, request: base.ClaimRequest, shares: Sequence[base.Share], gates: Sequence[base.Record]
    ) -> Sequence[Job] | None:
        return await claim.claim_shares(self._server, request, shares, gates)

    async def next_due(self, request: base.ClaimRequest) -> datetime | None:
        return await claim.next_due(self._server, request)

    async def commit(self, commit: base.Commit) -> base.Committed:
        return await commit_changes(self._server, commit)

    async def extend(
        self, leases: Mapping[base.Fence, float | None], now: datetime
    ) -> Sequence[base.Extended]:
        return await extend(self._server, leases, now)

    async def annotate(self, fence: base.Fence, note: base.Note, now: datetime) -> bool:
        return await annotate(self._server, fence, note, now)

    async def rewrite(self, rewrites: Sequence[base.Rewrite]) -> Sequence[bool]:
        return await update.rewrite(self._server, rewrites)

    async def update(self, changes: Sequence[Change]) -> Sequence[bool]:
        return await update.update(self._server, changes)

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        return await update.delete(self._server, jobs)

    # --- reading jobs ----------------------------------------------------------------------------

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        return await read.get(self._server, ids)

    async def find(self, query: base.Query) -> Sequence[Job]:
        return await read.find(self._server, query)

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await due(self._server, "leases", now, limit, tenant)

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await due(self._server, "expiry", now, limit, tenant)

    async def keyed(
        self, scopes: Sequence[base.KeyScope], now: datetime
    ) -> Mapping[base.KeyScope, str]:
        return await read.keyed(self._server, scopes, now)

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[base.Tally]:
        return await read.count(self._server, now, tenant=tenant, queues=queues, tags=tags)

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[base.Held]:
        return await claim.held(self._server, now, queues)

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> base.Backlog:
        return await read.backlog(self._server, tenant, queue)

    # --- dependencies ----------------------------------------------------------------------------

    async def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Sequence[Edge]:
        return await graph.edges(self._server, parent_id, child_id)

    async def joins(self, child_ids: Sequence[str]) -> Mapping[str, Join]:
        return await graph.joins(self._server, child_ids)

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        return await graph.spawned(self._server, parent_id)

    async def unseen(self, limit: int) -> Sequence[Edge]:
        return await graph.unseen(self._server, limit)

    # --- queues and workers ----------------------------------------------------------------------

    async def pause(self, pause: base.Pause) -> None:
        await queues.pause(self._server, pause)

    async def resume(self, queue: str, tenant: str | None) -> bool:
        return await queues.resume(self._server, queue, tenant)

    async def pauses(self) -> Sequence[base.Pause]:
        return await queues.pauses(self._server)

    async def announce(self, worker: base.WorkerSeen) -> None:
        await queues.announce(self._server, worker)

    async def workers(self, since: datetime) -> Sequence[base.WorkerSeen]:
        return await queues.workers(self._server, since)

    # --- records ---------------------------------------------------------------------------------

    async def records(self, kind: str, names: Sequence[str] | None = None) -> Sequence[base.Record]:
        return await records.find(self._server, kind, names)

    async def put_record(self, record: base.Record) -> bool:
        return await records.put(self._server, record)

    async def delete_record(self, record: base.Record) -> bool:
        return await records.delete(self._server, record)

    # --- events ----------------------------------------------------------------------------------

    async def events(self, query: base.EventQuery) -> Sequence[Event]:
        return await log.events(self._server, query)

    async def tail(self) -> str:
        return await log.tail(self._server)

    async def trim(self, upto: Sequence[str], before: datetime, limit: int) -> int:
        return await log.trim(self._server, upto, before, limit)

    async def wait(self, after: str, timeout_seconds: float) -> None:
        self._server.check_open()
        await self._watch.wait(after, timeout_seconds)
