"""Reading the graph of the store for a check, and remembering what was read.

What a check has relied on goes into the insertion as its kin: the store compares it at the moment of the
write, so that of two submissions at once that concern each other the later one is computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from headrace.manager.context import Context
from headrace.model import DependencyKind, Edge, Job
from headrace.stores.base import Kin


class GraphReads:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._kin: dict[str, Kin] = {}

    @property
    def kin(self) -> Mapping[str, Kin]:
        """All that was read and relied on."""
        return self._kin

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        """What a job has spawned so far. What it spawns from now on makes the insertion clash."""
        jobs = await self._context.store.spawned(parent_id)
        self._note(parent_id, spawned=[job.id for job in jobs])
        return jobs

    async def joins(self, parent_id: str) -> Sequence[str]:
        """Who waits for a job by FAN_IN. Another that comes to do so makes the insertion clash."""
        edges = await self._context.store.edges(parent_id=parent_id)
        joins = [edge for edge in edges if edge.kind is DependencyKind.FAN_IN]
        self._note(parent_id, joins=[edge.child_id for edge in joins])
        return [edge.child_id for edge in joins if edge.outcome is None]

    async def ancestors(self, ids: set[str]) -> set[str]:
        """These jobs and all they wait for, however far up.

        A job that waits for another by then makes the insertion clash. One that waits for nothing any more
        cannot come to wait again.
        """
        seen: set[str] = set()
        unread = set(ids)
        while unread:
            seen |= unread
            above: set[str] = set()
            for job_id in unread:
                edges = await self._context.store.edges(child_id=job_id)
                waits_for = {edge.parent_id for edge in edges if edge.outcome is None}
                if waits_for:
                    self.bound(job_id, len(edges))
                above |= waits_for
            unread = above - seen
        return seen

    async def parents(self, child_id: str) -> Sequence[Edge]:
        """The edges into a job, as they are now: nothing is relied on."""
        return await self._context.store.edges(child_id=child_id)

    def bound(self, child_id: str, parents_max: int) -> None:
        """More edges than this into the job make the insertion clash."""
        self._note(child_id, parents_max=parents_max)

    def stands(self, job: Job) -> None:
        """While a job has not ended its depth and priority may change: then the insertion clashes."""
        if not job.is_terminal:
            self._note(job.id, version=job.version)

    def _note(self, job_id: str, **read: object) -> None:
        self._kin[job_id] = replace(self._kin.get(job_id, Kin()), **read)
