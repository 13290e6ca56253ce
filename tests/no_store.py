"""A store that keeps nothing and says yes to all: what remains is the cost of Headrace's own Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from headrace.model import Job
from headrace.stores.base import ClaimRequest, Clash, Commit, Committed, Inserted, Insertion
from headrace.stores.memory import MemoryStore


class NoStore(MemoryStore):
    """Claims are served from `stock`; the rest goes on as in an empty memory store."""

    def __init__(self) -> None:
        super().__init__()
        self.stock: list[Job] = []
        self.changed = 0

    async def now(self) -> datetime:
        return datetime.now(UTC)

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        return Inserted(insertion.jobs)

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        return {}

    async def claim(self, request: ClaimRequest) -> Sequence[Job]:
        claimed = self.stock[: request.limit]
        del self.stock[: request.limit]
        return claimed

    async def commit(self, commit: Commit) -> Committed:
        self.changed += len(commit.changes)
        return Committed([True] * len(commit.changes))
