"""What can be asked: jobs, counts, reasons, health, events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from headrace import validation
from headrace.errors import JobNotFound
from headrace.input_checks import guarded
from headrace.manager import (
    attempts,
    diagnosis,
    explanation,
    overview,
    presence,
    queries,
    watching,
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


@guarded
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

    def find(
        self,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        states: Iterable[State | str] | None = None,
        tags: Tags = (),
        assignee: str | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> queries.Found:
        """The jobs that match every filter, in order of submission.

        `await` gives one page of them, of up to `limit` jobs (None: 100) from the cursor on;
        `async for job in` goes through all there are, or as many as `limit` says.
        """
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
        )
        if limit is not None:
            validation.check_limit(limit, "limit")
        return queries.Found(
            lambda start, count: queries.find(self._context, replace(query, limit=count), start),
            limit=limit,
            cursor=cursor,
        )

    def watch(
        self,
        job_id: str,
        *,
        look_seconds: float = watching.LOOK_SECONDS,
        timeout: float | None = None,
    ) -> AsyncIterator[Job]:
        """The job as it is, and again whenever its state, attempt or progress has changed, until it ends.

        What changes twice between two looks is seen once. After `timeout` seconds it stops, whatever
        the job does.
        """
        validation.check_seconds(look_seconds, "look_seconds")
        if timeout is not None:
            validation.check_seconds(timeout, "timeout", zero=True)
        return watching.watch(
            self._context,
            validation.check_id(job_id),
            look_seconds=look_seconds,
            timeout_seconds=timeout,
        )

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
        """Workers that were heard of since then: what they ask for, and how many slots were taken."""
        seen = await presence.workers(self.store, validation.check_time(since, "since"))
        return tuple(worker for worker in seen if self.tenant in (None, worker.tenant))

    async def diagnose(self, *, runs: Callable[[str], bool] | None = None) -> tuple[Finding, ...]:
        """The health of the store, and whether its jobs are looked after.

        `runs` says of a type whether there is a task for it: then schedules without one are named.
        """
        return await diagnosis.diagnose(self._context, runs)

    async def events(
        self, *, after: str = "", job_id: str | None = None, limit: int = 1000
    ) -> tuple[Event, ...]:
        """Up to `limit` events after the cursor (that of the last event seen), in log order."""
        validation.check_limit(limit, "limit")
        validation.check_message(after, "the cursor")
        query = EventQuery(after=after, tenant=self.tenant, job_id=job_id, limit=limit)
        return tuple(await self.store.events(query))

    async def failed_attempts(
        self, job_id: str, *, limit: int = attempts.FAILED_ATTEMPTS
    ) -> tuple[attempts.FailedAttempt, ...]:
        """The last attempts that failed, oldest first, with tracebacks of the last three that had one."""
        validation.check_limit(limit, "limit")
        return await attempts.failed_attempts(self._context, job_id, limit)

    async def tail(self) -> str:
        """The cursor of the log's end: what is read after it is new."""
        return await self.store.tail()

    def follow(
        self, *, after: str = "", job_id: str | None = None, idle_seconds: float | None = None
    ) -> AsyncIterator[Event]:
        """Events from the cursor on, then live, until none came for `idle_seconds` (None: for ever)."""
        return queries.follow(self._context, after=after, job_id=job_id, idle_seconds=idle_seconds)
