"""Lanes: all jobs of one tenant, queue, type, priority and limit key.

Added and never changed, so safe to remember.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.model import Job
from headrace.stores.postgres.drivers import Row
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import transposed


class LaneKey(NamedTuple):
    tenant: str
    queue: str
    type: str
    priority: int
    limit_key: str | None


class Lanes:
    """The lanes this process knows.

    They are added on the store's own connections, never inside a caller's transaction: whoever
    wanted the same new lane would have to wait for its end.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: dict[LaneKey, int] = {}
        self._keys: dict[int, LaneKey] = {}

    def key(self, lane: int) -> LaneKey:
        """The key of a lane that `know` has seen."""
        return self._keys[lane]

    async def of(self, jobs: Iterable[Job]) -> list[int]:
        """The lane of each job, added if it is new."""
        keys = [lane_key(job) for job in jobs]
        if None in await self.known(keys):
            missing = {key for key in keys if key not in self._ids}
            await self._session.write("lanes_add", *transposed(missing, len(LaneKey._fields)))
            await self.known(missing)
        return [self._ids[key] for key in keys]

    async def known(self, keys: Iterable[LaneKey]) -> list[int | None]:
        """The lanes with these keys; None: there is none."""
        wanted = list(keys)
        missing = {key for key in wanted if key not in self._ids}
        if missing:
            columns = transposed(missing, len(LaneKey._fields))
            self._remember(await self._session.read("lanes_named", *columns))
        return [self._ids.get(key) for key in wanted]

    async def know(self, lanes: Iterable[int]) -> None:
        """Make `key` work for these."""
        missing = {lane for lane in lanes if lane not in self._keys}
        if missing:
            self._remember(await self._session.read("lanes_numbered", list(missing)))

    async def matching(
        self,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
    ) -> list[int] | None:
        """The lanes within these filters; None when nothing is filtered."""
        if tenant is None and queues is None and types is None:
            return None
        rows = await self._session.read(
            "lanes_matching", tenant, _list_or_none(queues), _list_or_none(types)
        )
        return [lane for (lane,) in rows]

    def _remember(self, rows: Sequence[Row]) -> None:
        for lane, *key in rows:
            named = LaneKey._make(key)
            self._ids[named] = lane
            self._keys[lane] = named


def lane_key(job: Job) -> LaneKey:
    return LaneKey(job.tenant, job.queue, job.type, int(job.priority), job.limit_key)


def _list_or_none(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)
