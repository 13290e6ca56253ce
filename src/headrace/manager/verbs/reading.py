"""What can be asked: jobs, counts, reasons, health, events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime

from headrace import validation
from headrace.errors import JobNotFound
from headrace.manager import (
    diagnosis,
    explanation,
    overview,
    queries,
)
from headrace.manager.verbs.base import Tags, Verbs
from headrace.model import (
    Event,
    Job,
    State,
)
from headrace.stores.base import (
    EventQuery,
    Finding,
    Query,
    WorkerSeen,
)


class Reading(Verbs):
    """Everything that changes nothing."""

    async def get(self, job_id: str) -> Job:
        """The job as it is now, or JobNotFound."""
        return await self._context.read_one(validation.check_id(job_id))

    async def get_many(self, job_ids: Sequence[str]) -> tuple[Job, ...]:
        """The jobs in the order asked for, or JobNotFound for the first that is not there."""
        job_ids = list(job_ids)
        found = await self._context.read(validation.check_ids(job_ids))
        for job_id in job_ids:
            if job_id not in found:
                raise JobNotFound(job_id)
        return tuple(found[job_id] for job_id in job_ids)

    async def look_up(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Those of the jobs that are there, by id."""
        return await self._context.read(validation.check_ids(job_ids))

    async def find(
        self,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        states: Iterable[State] | None = None,
        tags: Tags = (),
        assignee: str | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        newest_first: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> queries.Page:
        """One page of the jobs that match every filter, in order of submission."""
        query = Query(
            queues=validation.check_names(queues, "queue"),
            types=validation.check_names(types, "type"),
            states=None
            if states is None
            else tuple(validation.check_word(state, State) for state in states),
            tags=validation.check_tags(tags),
            assignee=None if assignee is None else validation.check_name(assignee, "worker"),
            created_from=None
            if created_from is None
            else validation.check_time(created_from, "created_from"),
            created_before=None
            if created_before is None
            else validation.check_time(created_before, "created_before"),
            newest_first=newest_first,
            limit=limit,
        )
        return await queries.find(self._context, query, cursor)

    async def stats(self, *, queues: Iterable[str] | None = None, tags: Tags = ()) -> queries.Stats:
        """How many jobs match every filter, by state, tenant and queue."""
        return await queries.stats(
            self._context,
            queues=validation.check_names(queues, "queue"),
            tags=validation.check_tags(tags),
        )

    async def overview(self) -> overview.Overview:
        """The depth of every queue, and the age of what waits longest in it."""
        return await overview.overview(self._context)

    async def explain(self, job_id: str) -> explanation.Explanation:
        """Why the job is not running, or that it is."""
        return await explanation.explain(self._context, job_id)

    async def workers(self, since: datetime) -> tuple[WorkerSeen, ...]:
        """Workers that asked for jobs since then."""
        seen = await self.store.workers(validation.check_time(since, "since"))
        return tuple(worker for worker in seen if self.tenant in (None, worker.tenant))

    async def diagnose(self) -> tuple[Finding, ...]:
        """The health of the store, and whether its jobs are looked after."""
        return await diagnosis.diagnose(self._context)

    async def events(
        self, *, after: str = "", job_id: str | None = None, limit: int = 1000
    ) -> tuple[Event, ...]:
        """Up to `limit` events after the cursor (that of the last event seen), in log order."""
        validation.check_limit(limit, "limit")
        validation.check_message(after, "the cursor")
        query = EventQuery(after=after, tenant=self.tenant, job_id=job_id, limit=limit)
        return tuple(await self.store.events(query))

    async def tail(self) -> str:
        """The cursor of the log's end: what is read after it is new."""
        return await self.store.tail()

    def follow(
        self, *, after: str = "", job_id: str | None = None, idle_seconds: float | None = None
    ) -> AsyncIterator[Event]:
        """Events from the cursor on, then live, until none came for `idle_seconds` (None: for ever)."""
        return queries.follow(self._context, after=after, job_id=job_id, idle_seconds=idle_seconds)
