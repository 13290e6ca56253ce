"""The store as the manager sees it: contents are sealed on the way in and opened on the way out.

Only the verbs that carry contents stand here; every other one is the store's own. (A note is sealed where it
is made: it names no tenant, and a sealed content is bound to one.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from headrace.manager.sealing import Sealing
from headrace.model import Job
from headrace.stores.base import (
    ClaimRequest,
    Clash,
    Commit,
    Committed,
    Inserted,
    Insertion,
    JobStore,
    Query,
    Record,
    Share,
)


class SealedStore:
    """A `JobStore` over another. Whatever reads jobs through it, or changes them, need not know of keys."""

    def __init__(self, behind: JobStore, sealing: Sealing) -> None:
        self._behind = behind
        self._sealing = sealing

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._behind, verb)

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        if self._sealing.keys is None:
            return await self._behind.insert(insertion)
        sealed = [self._sealing.draft(job) for job in insertion.jobs]
        answer = await self._behind.insert(replace(insertion, jobs=sealed))
        if isinstance(answer, Clash):
            return answer
        rows = zip(insertion.jobs, answer.jobs, strict=True)
        return Inserted([self._sealing.drafted(given, row) for given, row in rows])

    def commit(self, commit: Commit) -> Awaitable[Committed]:
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
