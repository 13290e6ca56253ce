"""JobManager: every command and query of Headrace, over any store.

Each verb checks what it is given and hands over to the module that knows the matter.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from headrace import lifecycle, validation
from headrace import schedules as schedule_rules
from headrace.clock import Clock
from headrace.completion import HookCall
from headrace.crypto import KeyRing
from headrace.duration import Seconds
from headrace.errors import HeadraceError, InvalidInput, JobNotFound, TemporaryError
from headrace.history import Attempt
from headrace.input_checks import checked, guarding
from headrace.lifecycle import Command
from headrace.limits import QueueLimits, Rate
from headrace.manager import (
    access,
    attempts,
    audit,
    batches,
    bulk,
    bulk_acts,
    cancellation,
    clock_recovery,
    deadlines,
    diagnosis,
    explanation,
    holders,
    hooks,
    job_graph,
    leases,
    overview,
    presence,
    queries,
    queue_explanation,
    readers,
    recovery,
    refusals,
    retention,
    rollups,
    rotation,
    schedules,
    search,
    settlement,
    submission,
    trimming,
    updates,
    upkeep,
    watching,
)
from headrace.manager.access import NewToken
from headrace.manager.attempts import ATTEMPTS, FAILED_ATTEMPTS, FailedAttempt
from headrace.manager.audit import AuditRow
from headrace.manager.batches import Batch, BatchProgress
from headrace.manager.bulk import Bulk, Tell
from headrace.manager.bulk_acts import Act, BulkAct, BulkRound
from headrace.manager.cancellation import Cancelled
from headrace.manager.changes import Changed, Order, Settled, change_each, change_one
from headrace.manager.context import Context
from headrace.manager.explanation import Explanation
from headrace.manager.group_commit import GroupCommit
from headrace.manager.holders import Holders
from headrace.manager.job_graph import JobGraph
from headrace.manager.leases import Claimed, Heartbeats, held_leases
from headrace.manager.limits import find_limits, remove_limits, set_limits
from headrace.manager.matching import Matching
from headrace.manager.overview import Overview
from headrace.manager.placement import Draft
from headrace.manager.queries import Found, Stats
from headrace.manager.queue_explanation import QueueExplanation
from headrace.manager.readers import Lag, Reader
from headrace.manager.refusals import Refused, RefusedWrites
from headrace.manager.rollups import GROUPS, ErrorGroups, History
from headrace.manager.rotation import Reencrypted
from headrace.manager.schedules import Fired, Upcoming
from headrace.manager.search import LOOK_JOBS, LOOK_JOBS_MAX, ROWS, SearchPage
from headrace.manager.selection import Selection, selection
from headrace.manager.settlement import Outcome
from headrace.manager.submission import Submitted
from headrace.manager.trimming import Trimmed
from headrace.manager.upkeep import LIMIT, Maintained
from headrace.model import DEFAULT_TENANT, TERMINAL, Category, Event, Failure, Job, Lease, State
from headrace.policy import CancelMode, Policies
from headrace.schedules import GRACE_SECONDS_DEFAULT, Misfire, Schedule, When
from headrace.spec import JobSpec
from headrace.stores.base import (
    FIND_LIMIT_MAX,
    Capabilities,
    EventQuery,
    Fence,
    Finding,
    JobStore,
    JoinsTransactions,
    Pause,
    Query,
    WorkerProcess,
    WorkerSeen,
)
from headrace.tokens import Scope, Token

Tags = Iterable[str] | Mapping[str, Any]

_TARGET_CHARS_MAX = 1_000_000
"""Of what an act names; the audit keeps its beginning."""
MEANT_MAX = 5
"""So many ids or tags are named in the audit."""


@guarding(leaving=("outcomes",))
class JobManager:
    """One manager per store and process; safe to share between tasks.

    A manager bound to a tenant (`scoped`) reads and changes nothing of any other: a foreign id
    answers exactly as an unknown one. Every call that changes jobs returns them as they are after,
    with the capacity it freed; a call that raises has changed nothing.
    """

    @functools.partial(checked, leaving=("store",))
    def __init__(
        self,
        store: JobStore,
        *,
        clock: Clock,
        policies: Policies | None = None,
        tenant: str | None = None,
        dice: random.Random | None = None,
        keys: KeyRing | None = None,
    ) -> None:
        self._context = Context(
            store,
            clock,
            policies or Policies(),
            None if tenant is None else validation.check_name(tenant, "tenant"),
            dice or random.Random(),  # noqa: S311 - jitter, not secrets
            keys=keys,
        )
        self._claims = leases.Claims(self._context)
        self._group_commit: GroupCommit | None = GroupCommit(self._context)
        self._clock_recovery = clock_recovery.ClockRecovery(self._context)
        self._scoped: dict[str, JobManager] = {}

    # --- The manager itself: Whom it acts for, by which rules, and over which store.

    @property
    def store(self) -> JobStore:
        """The store as it is: what is encrypted there is not decrypted here."""
        return self._context.bare_store

    @property
    def tenant(self) -> str | None:
        """Whom it acts for. None: every tenant, as an operator."""
        return self._context.tenant

    @property
    def clock(self) -> Clock:
        """What all its times come from: the store's clock, unless it was given another."""
        return self._context.clock

    @property
    def policies(self) -> Policies:
        """The rules of each queue."""
        return self._context.policies

    @property
    def keys(self) -> KeyRing | None:
        """What new contents are encrypted with. None: nothing is."""
        return self._context.sealing.keys

    @property
    def capabilities(self) -> Capabilities:
        """What the store can do that others cannot."""
        return self.store.capabilities

    def scoped(self, tenant: str) -> JobManager:
        """The same store seen by one tenant. A manager that is bound to one reaches no other."""
        validation.check_name(tenant, "tenant")
        if self.tenant not in (None, tenant):
            raise InvalidInput(
                f"this manager is bound to tenant {self.tenant!r}; it reaches no other"
            )
        scoped = self._scoped.get(tenant)
        if scoped is None:
            scoped = self._scoped[tenant] = self._sibling(self.store, tenant)
        return scoped

    def on(self, connection: object) -> JobManager:
        """The same manager inside the transaction of `connection`, for submitting.

        What it submits commits or vanishes with everything else in that transaction. Which connections
        can be given is the store's to say; one that cannot do this at all raises InvalidInput.
        """
        if not isinstance(self.store, JoinsTransactions):
            raise InvalidInput(
                f"jobs of a {self.capabilities.name} store cannot be submitted in a transaction of yours"
            )
        return self._sibling(self.store.on(connection), self.tenant, grouped=False)

    def _sibling(self, store: JobStore, tenant: str | None, *, grouped: bool = True) -> JobManager:
        """The same clock, policies, dice and keys on another view of the store."""
        sibling = JobManager(
            store,
            clock=self.clock,
            policies=self.policies,
            tenant=tenant,
            dice=self._context.dice,
            keys=self.keys,
        )
        sibling._context.cache = self._context.cache  # what one has read, the other need not
        sibling._context.actor = self._context.actor
        if not grouped:
            sibling._group_commit = None  # it commits nothing: that is its caller's to do
        return sibling

    def acting_as(self, actor: str) -> JobManager:
        """The same manager in somebody's name: what is changed by hand through it is in the audit so.

        Also what programs change all the time and is not in the audit otherwise: cancelling, redriving,
        deleting, updating.
        """
        validation.check_name(actor, "actor")
        sibling = self._sibling(self.store, self.tenant)
        sibling._context.actor = actor  # noqa: SLF001 - one of our own
        return sibling

    async def audit(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        actor: str | None = None,
        act: str | None = None,
        target: str | None = None,
        limit: int = audit.ROWS,
    ) -> tuple[AuditRow, ...]:
        """Who has changed what by hand, the newest first, of the last ninety days.

        A row is written before its act: none is without one. Where the act was refused, the row says so.
        """
        return await audit.find(
            self._context,
            validation.check_time(since, "since"),
            None if until is None else validation.check_time(until, "until"),
            actor=actor,
            act=act,
            target=target,
            limit=validation.check_limit(limit, "limit"),
        )

    def _noted(
        self, act: str, target: str, *, before: Any = None, after: Any = None
    ) -> AbstractAsyncContextManager[None]:
        validation.check_text(target, "what is acted on", _TARGET_CHARS_MAX)
        return audit.noted(self._context, act, target, before=before, after=after)

    def _noted_of_people(
        self, act: str, target: str, *, after: Any = None
    ) -> AbstractAsyncContextManager[None]:
        """Only where somebody acts: programs do it all the time."""
        if self._context.actor is None:
            return contextlib.nullcontext()
        return audit.noted(self._context, act, target, after=after)

    async def close(self) -> None:
        """Give the store's connections back. `async with manager:` does it at the end."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # --- Submitting: How jobs come in.

    async def submit(self, spec: JobSpec) -> Submitted:
        """Store one job; with an idempotency key that is held, give the job that holds it."""
        if self._group_commit is None:
            return await submission.submit(self._context, [spec])
        return await self._group_commit.submit(spec)

    async def submit_many(self, specs: Sequence[JobSpec]) -> Submitted:
        """Store all or none, in order. Jobs of a batch may depend on each other by id."""
        given = list(specs)
        if len(given) == 1 and self._group_commit is not None:
            return await self._group_commit.submit(given[0])
        return await submission.submit(self._context, given)

    def draft(self, spec: JobSpec, now: datetime | None = None) -> Draft:
        """The job that submitting this would store, if nothing that is stored stood in its way.

        Raises what submitting would raise before the store is asked.
        """
        moment = self._context.now() if now is None else validation.check_time(now, "now")
        return submission.draft_one(self._context, spec, moment)

    async def spawn(self, job_id: str, token: str, specs: Sequence[JobSpec]) -> Submitted:
        """Submit from inside a running job: only while its lease holds, all or none."""
        job = await self._context.read_one(validation.check_id(job_id))
        async with deadlines.enforced(self._context, job_id):
            try:
                lifecycle.check_lease(job, token, self._context.now())
            except HeadraceError as error:
                await refusals.note(self._context, [Refused(job_id, "spawn", error)])
                raise
            own = [msgspec.structs.replace(one, tenant=one.tenant or job.tenant) for one in specs]
            return await submission.submit(self._context, own, spawner=Fence(job_id, token))

    async def submit_batch(
        self,
        specs: Sequence[JobSpec],
        callback: JobSpec | None = None,
        *,
        batch_id: str | None = None,
    ) -> Batch:
        """Store a set of jobs under one id, and a `callback` that runs once all of them have ended.

        All or none up to 10,000 jobs. More are stored piece by piece, the callback last, and need a
        `batch_id`; with one, repeating the call finds what is stored and adds the rest.
        """
        return await batches.submit_batch(self._context, list(specs), callback, batch_id)

    async def batch(self, batch_id: str) -> BatchProgress:
        """How far the jobs of a batch are, or BatchNotFound."""
        return await batches.progress(self._context, batch_id)

    def watch_batch(
        self, batch_id: str, *, timeout: float | None = None
    ) -> AsyncIterator[BatchProgress]:
        """How far the jobs of a batch are, again and again as that changes, until all have ended.

        After `timeout` seconds it stops, whatever they do.
        """
        if timeout is not None:
            validation.check_seconds(timeout, "timeout", zero=True)
        return batches.watch(self._context, validation.check_id(batch_id), timeout_seconds=timeout)

    async def wait_batch(self, batch_id: str, *, timeout: float | None = None) -> BatchProgress:
        """Wait for every job of a batch to end; how they did. TimeoutError: they go on.

        Of a batch that is still being submitted it may see the end of the part that is there.
        """
        last: BatchProgress | None = None
        async for seen in self.watch_batch(batch_id, timeout=timeout):
            last = seen
        assert last is not None, "a batch is seen once at least"
        if last.done:
            return last
        raise TimeoutError(
            f"batch {batch_id} is not done within {timeout} s: {last.ended} of {last.total} jobs have "
            "ended, and the others go on"
        )

    # --- Reading: Everything that changes nothing.

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
    ) -> Found:
        """The jobs that match every filter, in order of submission.

        `await` gives one page of them, of up to `limit` jobs (None: 100) from the cursor on;
        `async for job in` goes through all there are, or as many as `limit` says.
        """
        query = _query(
            queues=queues,
            types=types,
            states=states,
            tags=tags,
            assignee=assignee,
            created_from=created_from,
            created_before=created_before,
            newest_first=newest_first,
        )
        if limit is not None:
            validation.check_limit(limit, "limit")
        return Found(
            lambda start, count: queries.find(
                self._context, msgspec.structs.replace(query, limit=count), start
            ),
            limit=limit,
            cursor=cursor,
        )

    async def search(
        self,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        states: Iterable[State | str] | None = None,
        tags: Tags = (),
        assignee: str | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        ended_from: datetime | None = None,
        ended_before: datetime | None = None,
        due_from: datetime | None = None,
        due_before: datetime | None = None,
        priorities: Iterable[int] | None = None,
        categories: Iterable[Category | str] | None = None,
        codes: Iterable[str] | None = None,
        error_group: str | None = None,
        key: str | None = None,
        correlation_id: str | None = None,
        id_prefix: str | None = None,
        text: str | None = None,
        newest_first: bool = True,
        limit: int = ROWS,
        cursor: str | None = None,
        look_max: int = LOOK_JOBS,
    ) -> SearchPage:
        """Jobs that match every filter, without their contents: the newest first, unless told otherwise.

        Looks at `look_max` jobs at most, out of those that queues, types, states, tags, assignee and times
        of creation leave, and says how far it came: the cursor goes on from there, also where nothing was
        found. `text` is looked for in payloads, in whatever case; those that are encrypted are counted.
        """

        def time(value: datetime | None, name: str) -> datetime | None:
            return None if value is None else validation.check_time(value, name)

        wanted = search.Wanted(
            ended_from=time(ended_from, "ended_from"),
            ended_before=time(ended_before, "ended_before"),
            due_from=time(due_from, "due_from"),
            due_before=time(due_before, "due_before"),
            priorities=None
            if priorities is None
            else tuple(map(validation.check_priority, priorities)),
            categories=None
            if categories is None
            else tuple(validation.check_word(one, Category) for one in categories),
            codes=validation.check_names(codes, "code"),
            error_group=error_group,
            key=key,
            correlation_id=correlation_id,
            id_prefix=id_prefix,
            text=None if text is None else text.casefold(),
        )
        return await search.search(
            self._context,
            _query(
                queues=queues,
                types=types,
                states=states,
                tags=tags,
                assignee=assignee,
                created_from=created_from,
                created_before=created_before,
                newest_first=newest_first,
            ),
            wanted,
            limit=validation.check_limit(limit, "limit", maximum=FIND_LIMIT_MAX),
            cursor=cursor,
            look_max=validation.check_limit(look_max, "look_max", maximum=LOOK_JOBS_MAX),
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

    async def stats(self, *, queues: Iterable[str] | None = None, tags: Tags = ()) -> Stats:
        """How many jobs match every filter, by state, tenant and queue."""
        return await queries.stats(
            self._context,
            queues=validation.check_names(queues, "queue"),
            tags=validation.check_tags(tags),
        )

    async def overview(self) -> Overview:
        """The depth of every queue, and the age of what waits longest in it."""
        return await overview.overview(self._context)

    async def explain(self, job_id: str) -> Explanation:
        """Why the job is not running, or that it is."""
        return await explanation.explain(self._context, job_id)

    async def explain_queue(self, queue: str) -> QueueExplanation:
        """What waits in the queue, and everything that keeps it from starting."""
        return await queue_explanation.explain_queue(
            self._context, validation.check_name(queue, "queue")
        )

    async def holders(self, queue: str, *, limit: int = holders.HOLDERS) -> Holders:
        """Who holds the slots of the queue: `limit` leased jobs at most, and how many each worker has."""
        return await holders.find_holders(
            self._context, validation.check_name(queue, "queue"), limit
        )

    async def graph(
        self, job_id: str, *, depth: int = job_graph.DEPTH, nodes_max: int = job_graph.NODES
    ) -> JobGraph:
        """The jobs around this one, up to `depth` links away and `nodes_max` in all, the nearest first.

        Dependencies, what handlers have spawned, and redrives. Costs a few small reads per job shown.
        """
        return await job_graph.graph(
            self._context, validation.check_id(job_id), depth=depth, nodes_max=nodes_max
        )

    async def workers(self, since: datetime) -> tuple[WorkerSeen, ...]:
        """Workers that were heard of since then: what they ask for, and how many slots were taken."""
        seen = await presence.workers(self.store, validation.check_time(since, "since"))
        return tuple(worker for worker in seen if self.tenant in (None, worker.tenant))

    async def diagnose(
        self, *, runs: Callable[[str], bool] | None = None, quick: bool = False
    ) -> tuple[Finding, ...]:
        """The health of the store, and whether its jobs are looked after.

        `runs` says of a type whether there is a task for it: then schedules without one are named. `quick`
        leaves out what the store says of itself, which may take as long as reading all of it.
        """
        return await diagnosis.diagnose(self._context, runs, quick=quick)

    async def events(
        self, *, after: str = "", job_id: str | None = None, limit: int = 1000
    ) -> tuple[Event, ...]:
        """Up to `limit` events after the cursor (that of the last event seen), in log order."""
        validation.check_limit(limit, "limit")
        validation.check_message(after, "the cursor")
        query = EventQuery(after=after, tenant=self.tenant, job_id=job_id, limit=limit)
        return tuple(await self.store.events(query))

    async def attempts(self, job_id: str, *, limit: int = ATTEMPTS) -> tuple[Attempt, ...]:
        """The last claims of the job, oldest first: who ran it, for how long, and how each ended.

        Read from what the log still holds of it; tracebacks of the last three that had one.
        """
        validation.check_limit(limit, "limit")
        return await attempts.attempts(self._context, validation.check_id(job_id), limit)

    async def refused_writes(
        self, since: datetime, *, job_id: str | None = None, limit: int = 100
    ) -> RefusedWrites:
        """What workers wanted to write of jobs that they did not hold any more, the last first.

        Of the last seven days; twenty of a job and 2,000 in all are noted each day, and all are counted.
        """
        return await refusals.find(
            self._context,
            validation.check_time(since, "since"),
            None if job_id is None else validation.check_id(job_id),
            validation.check_limit(limit, "limit"),
        )

    async def failed_attempts(
        self, job_id: str, *, limit: int = FAILED_ATTEMPTS
    ) -> tuple[FailedAttempt, ...]:
        """The last attempts that failed, oldest first, with tracebacks of the last three that had one."""
        validation.check_limit(limit, "limit")
        return await attempts.failed_attempts(self._context, job_id, limit)

    async def history(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        queues: Iterable[str] | None = None,
        minutes: bool | None = None,
    ) -> History:
        """What happened in that time, by minute or hour, tenant and queue: rates, ends, waits and runs.

        Maintenance counts it from the log: minutes are kept for two days, hours for thirty. `minutes` asks
        for these or for hours; None gives minutes for six hours or less. `until` None is now.
        """
        return await rollups.history(
            self._context,
            validation.check_time(since, "since"),
            None if until is None else validation.check_time(until, "until"),
            queues=validation.check_names(queues, "queue"),
            minutes=minutes,
        )

    async def error_groups(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        limit: int = GROUPS,
    ) -> ErrorGroups:
        """The errors of that time, exact to five minutes, those that mean the same together.

        A group is a type of job, a category, a code and a message with its variable parts collapsed; those of
        encrypted jobs have no message. Counted from the log as `history` is.
        """
        return await rollups.error_groups(
            self._context,
            validation.check_time(since, "since"),
            None if until is None else validation.check_time(until, "until"),
            queues=validation.check_names(queues, "queue"),
            types=validation.check_names(types, "type"),
            limit=validation.check_limit(limit, "limit"),
        )

    async def cursor_at(self, at: datetime) -> str:
        """The cursor after which the log tells of that time: before the first event that is not older.

        Quick for what maintenance has counted; the log is read from its beginning for what was before.
        """
        return await rollups.cursor_at(self._context, validation.check_time(at, "at"))

    async def tail(self) -> str:
        """The cursor of the log's end: what is read after it is new."""
        return await self.store.tail()

    def follow(
        self, *, after: str = "", job_id: str | None = None, idle_seconds: float | None = None
    ) -> AsyncIterator[Event]:
        """Events from the cursor on, then live, until none came for `idle_seconds` (None: for ever)."""
        return queries.follow(self._context, after=after, job_id=job_id, idle_seconds=idle_seconds)

    # --- Working: What a worker does with jobs.

    async def hook_call(self, job: Job) -> HookCall | None:
        """What the handler of a hook or of a batch's callback is told; None for any other job.

        For whoever runs handlers: a job that is not `wanted` is to be completed without one.
        """
        return await hooks.hook_call(self._context, job)

    async def claim(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Tags = (),
        limit: int = 1,
        tenant: str | None = None,
        lease_seconds: Seconds | None = None,
        due_by: datetime | None = None,
    ) -> tuple[Job, ...]:
        """Lease up to `limit` due jobs that match every filter, most urgent and oldest first.

        With `due_by` a job counts as due up to that time instead of the present, and may be claimed ahead
        of its time: for who keeps run_at as an order, not as a wait.
        """
        claimed = await self.claim_ahead(
            worker,
            queues=queues,
            types=types,
            tags=tags,
            limit=limit,
            tenant=tenant,
            lease_seconds=lease_seconds,
            due_by=due_by,
            look_ahead=False,
        )
        return claimed.jobs

    async def claim_ahead(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Tags = (),
        limit: int = 1,
        tenant: str | None = None,
        lease_seconds: Seconds | None = None,
        due_by: datetime | None = None,
        look_ahead: bool = True,
        slots: int | None = None,
        busy: int | None = None,
    ) -> Claimed:
        """Claim as `claim` does, and say when it is worth while to ask again.

        When a limit has its next token comes with every answer. When the next job becomes due is asked
        for with `look_ahead`, and only if there were fewer jobs than `limit`: one more look at the store.
        `slots` and `busy` are what `announce` is told.
        """
        if tenant is not None and tenant != self.tenant:
            if self.tenant is not None:
                return Claimed(())  # another tenant's jobs do not exist here
            return await self.scoped(tenant).claim_ahead(
                worker,
                queues=queues,
                types=types,
                tags=tags,
                limit=limit,
                lease_seconds=lease_seconds,
                due_by=due_by,
                look_ahead=look_ahead,
                slots=slots,
                busy=busy,
            )
        return await self._claims.claim(
            worker,
            queues=queues,
            types=types,
            tags=tags,
            limit=limit,
            lease_seconds=lease_seconds,
            due_by=due_by,
            look_ahead=look_ahead,
            slots=slots,
            busy=busy,
        )

    async def announce(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Tags = (),
        slots: int | None = None,
        busy: int | None = None,
        process: WorkerProcess | None = None,
    ) -> None:
        """Say that the worker is there, and for which jobs, though it does not claim: its slots are taken.

        A claim says so itself. Written down every five seconds at most, however often it is said; `workers`
        tells it. `slots`: how many handlers the worker runs at once; `busy`: how many it runs now;
        `process`: where it runs. Claims that come after go on telling that.
        """
        await self._claims.announce(
            worker, queues=queues, types=types, tags=tags, slots=slots, busy=busy, process=process
        )

    async def settle(self, outcomes: Sequence[Outcome]) -> Settled:
        """Record the ends of many attempts in one step; each stands or is refused alone."""
        return await self._settled(outcomes)

    async def _settled(self, outcomes: Sequence[Outcome]) -> Settled:
        settled = await deadlines.settle(self._context, outcomes)
        # What was given as another kind of sequence has been gone through, and may not be a second time.
        if type(outcomes) in (list, tuple) and any(
            isinstance(answer, HeadraceError) for answer in settled.outcomes
        ):
            await refusals.note_outcomes(self._context, outcomes, settled.outcomes)
        return settled

    async def complete(self, job_id: str, token: str | None, result: Any = None) -> Changed:
        """The attempt succeeded."""
        return await self._settle(settlement.Completed(job_id=job_id, token=token, result=result))

    async def fail(
        self,
        job_id: str,
        token: str | None,
        error: BaseException | str,
        *,
        category: Category | None = None,
        code: str | None = None,
        retry_after: Seconds | None = None,
        retry_at: datetime | None = None,
    ) -> Changed:
        """The attempt failed. A typed error (TemporaryError, PermanentError) brings its own category."""
        if retry_after is None and isinstance(error, TemporaryError):
            retry_after = error.retry_after
        failure = settlement.failure_of(error, category=category, code=code)
        return await self._settle(
            settlement.Failed(
                job_id=job_id,
                token=token,
                failure=failure,
                retry_after=retry_after,
                retry_at=retry_at,
            )
        )

    async def snooze(
        self,
        job_id: str,
        token: str | None,
        *,
        until: datetime | None = None,
        seconds: Seconds | None = None,
    ) -> Changed:
        """Run it again later, at no cost to its budget."""
        when = settlement.later(self._context.now(), until=until, seconds=seconds)
        return await self._settle(settlement.Snoozed(job_id=job_id, token=token, until=when))

    async def release(self, job_id: str, token: str | None) -> Changed:
        """Give it back unfinished, at no cost to its budget; it goes to the front of its line."""
        return await self._settle(settlement.Released(job_id=job_id, token=token))

    async def stop(self, job_id: str, token: str | None, message: str = "stopped") -> Changed:
        """The worker ended it on request: cancelled."""
        validation.check_message(message, "the message")
        return await self._settle(settlement.Stopped(job_id=job_id, token=token, message=message))

    async def acknowledge_cancel(
        self, job_id: str, token: str | None, *, was_executing: bool
    ) -> Changed:
        """The worker's answer to a cancellation: cancelled, or (it did not have the job) abandoned."""
        return await self._settle(
            settlement.CancelAcknowledged(job_id=job_id, token=token, was_executing=was_executing)
        )

    async def _settle(self, outcome: Outcome) -> Changed:
        settled = await self._settled([outcome])
        (answer,) = settled.outcomes
        if isinstance(answer, HeadraceError):
            raise answer
        return Changed((answer,), settled.freed)

    async def heartbeat(self, held: Sequence[Lease]) -> Heartbeats:
        """Extend many leases in one step. A lease that does not hold is explained, not raised."""
        beaten = await leases.heartbeat(self._context, held)
        if beaten.refused:
            await refusals.note(
                self._context,
                [Refused(job_id, "heartbeat", error) for job_id, error in beaten.refused.items()],
            )
        return beaten

    async def held(self, leases: Sequence[Lease]) -> Mapping[str, State]:
        """Those of the leases that hold, by job; cancelling: the worker is to stop. Extends none."""
        return await held_leases(self._context, leases)

    async def progress(
        self, job_id: str, token: str, fraction: float, note: str | None = None
    ) -> None:
        """How far the attempt is, 0 to 1. Fenced; no event."""
        await self._annotate("progress", job_id, token, progress=fraction, note=note)

    async def checkpoint(self, job_id: str, token: str, value: Any) -> None:
        """What the next attempt should know. Fenced; no event; survives the attempt."""
        await self._annotate("checkpoint", job_id, token, checkpoint=value)

    async def keep_log(self, job_id: str, token: str, lines: Sequence[Any]) -> None:
        """The job's log lines, in place of those before. Fenced; no event; survives the attempt."""
        await self._annotate("keep_log", job_id, token, log=list(lines))

    async def _annotate(self, verb: str, job_id: str, token: str, **said: Any) -> None:
        fence = Fence(validation.check_id(job_id), token)
        try:
            await leases.annotate(self._context, fence, **said)
        except HeadraceError as error:
            await refusals.note(self._context, [Refused(job_id, verb, error)])
            raise

    # --- Steering: Cancelling, recovering, deleting, pausing, limiting.

    async def cancel(
        self,
        ids: Iterable[str] = (),
        *,
        tags: Tags = (),
        mode: CancelMode | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> Cancelled:
        """Cancel jobs named by id or tagged with all of `tags` (the union), in one step."""
        chosen = selection(ids, tags)
        mode = None if mode is None else validation.check_word(mode, CancelMode)
        reason = None if reason is None else validation.check_message(reason, "the reason")
        async with self._noted_of_people(
            "cancel", _meant(chosen), after={"reason": reason, "mode": mode}
        ):
            return await cancellation.cancel(
                self._context, chosen, mode=mode, reason=reason, dry_run=dry_run
            )

    async def update(
        self,
        job_id: str,
        *,
        priority: int | UnsetType = UNSET,
        tags: Tags | UnsetType = UNSET,
        add_tags: Tags = (),
        remove_tags: Tags = (),
        correlation_id: str | UnsetType | None = UNSET,
        callback_url: str | UnsetType | None = UNSET,
    ) -> Changed:
        """Change what is said of a job that has not ended, with an event. What is left out stays.

        `tags` are all the job has from now on; `add_tags` and `remove_tags` change some. None takes a
        correlation id or callback url away. A job stays at least as urgent as those it depends on, and
        when it is made more urgent, so is all that waits for it. Whoever runs the job goes on.
        """
        asked = updates.wanted(
            priority=priority,
            tags=tags,
            add_tags=add_tags,
            remove_tags=remove_tags,
            correlation_id=correlation_id,
            callback_url=callback_url,
        )
        job_id = validation.check_id(job_id)
        async with self._noted_of_people("update", job_id, after=updates.told(asked)):
            return await updates.update(self._context, job_id, asked)

    async def abandon(self, job_id: str, message: str = "abandoned") -> Changed:
        """Give up on ever knowing how it ended."""
        message = validation.check_message(message, "the message")
        command = lifecycle.Abandon(failure=Failure(message, Category.CANCELLED))
        return await self.change(job_id, lambda _: command)

    async def reschedule(self, job_id: str, run_at: datetime | None = None) -> Changed:
        """Let a job that waits for its time be due at another time (None: now), at no cost to its budget.

        InvalidTransition unless it is pending or retrying; it is pending then. The place in line is by
        the new time.
        """
        when = None if run_at is None else validation.check_time(run_at, "run_at")
        return await self.change(
            job_id, lambda _: lifecycle.Reschedule(run_at=when or self._context.now())
        )

    async def change(self, job_id: str, decide: Callable[[Job], Command]) -> Changed:
        """Carry out a lifecycle command that has no verb of its own here, chosen with the job at hand.

        Nothing checks the token for the caller: a fenced command carries it.
        """
        return await change_one(self._context, Order(validation.check_id(job_id), decide))

    async def change_many(self, orders: Sequence[Order]) -> Settled:
        """The same for many jobs in one step; each stands or is refused alone."""
        return await change_each(self._context, orders)

    async def expire_worker(self, worker: str) -> Changed:
        """The worker is gone: what it holds is lost (claimable again) or abandoned, in one step."""
        worker = validation.check_name(worker, "worker")
        async with self._noted("expire_worker", worker):
            return await recovery.expire_worker(self._context, worker)

    async def reset_running(self) -> Changed:
        """Every worker is gone: as expire_worker, for all of them."""
        async with self._noted("reset_running", "*"):
            return await recovery.reset_running(self._context)

    async def delete(self, ids: Iterable[str] = (), *, tags: Tags = ()) -> tuple[Job, ...]:
        """Delete ended jobs: all that were meant or, when one has not ended, none."""
        chosen = selection(ids, tags)
        async with self._noted_of_people("delete", _meant(chosen)):
            return await retention.delete(self._context, chosen)

    async def redrive(
        self, ids: Iterable[str] = (), *, tags: Tags = (), payload: Any = UNSET
    ) -> Submitted:
        """Run failed, dead or cancelled jobs again, as new jobs linked by previous_id.

        With `payload` they get this one; of jobs that were redriven before and live, nothing is changed.
        """
        chosen = selection(ids, tags)
        async with self._noted_of_people("redrive", _meant(chosen)):
            return await retention.redrive(self._context, chosen, payload)

    async def redriven_as(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """The job that each of these was redriven as last, by the id of the old one: those there are."""
        jobs = await self._context.read(validation.check_ids(job_ids))
        return await retention.latest_heirs(self._context, list(jobs.values()))

    async def cancel_matching(
        self,
        where: Matching,
        *,
        mode: CancelMode | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        tell: Tell | None = None,
    ) -> Bulk:
        """Cancel whatever matches and has not ended, in steps, each job by itself; counts by error.

        `tell` is called after each step. Stopped half way, the same call again does the rest.
        """
        deed = bulk.Cancel(
            self._context,
            where,
            None if mode is None else validation.check_word(mode, CancelMode),
            None if reason is None else validation.check_message(reason, "the reason"),
        )
        return await self._go_through("cancel_matching", where, deed, dry_run=dry_run, tell=tell)

    async def delete_matching(
        self, where: Matching, *, dry_run: bool = False, tell: Tell | None = None
    ) -> Bulk:
        """Delete the ended jobs that match, in steps; counts by error. Their events stay.

        `tell` is called after each step. Stopped half way, the same call again does the rest.
        """
        deed = bulk.Delete(self._context, where)
        return await self._go_through("delete_matching", where, deed, dry_run=dry_run, tell=tell)

    async def redrive_matching(
        self, where: Matching, *, dry_run: bool = False, tell: Tell | None = None
    ) -> Bulk:
        """Run the failed, dead and cancelled jobs that match again, in steps; counts by error.

        Each once: one that was redriven before is left, as the job that was made of it stands for it for
        as long as that is stored. `tell` is called after each step. Stopped half way, the same call again
        does the rest.
        """
        deed = bulk.Redrive(self._context, where)
        return await self._go_through("redrive_matching", where, deed, dry_run=dry_run, tell=tell)

    async def _go_through(
        self, act: str, where: Matching, deed: bulk.Deed, *, dry_run: bool, tell: Tell | None
    ) -> Bulk:
        noted = (
            contextlib.nullcontext()
            if dry_run
            else self._noted_of_people(act, "*", after=bulk_acts.stored(where))
        )
        async with noted:
            return await bulk.go_through(self._context, deed, dry_run=dry_run, tell=tell)

    async def plan_bulk(
        self, act: Act | str, where: Matching, *, priority: int | None = None
    ) -> Bulk:
        """What a bulk act would do now: how many jobs, grouped by error, and why not to the others.

        Nothing is changed. It counts up to 100,000 jobs, and then says `at_least`.
        """
        return await bulk_acts.plan(
            self._context,
            validation.check_word(act, Act),
            where,
            None if priority is None else validation.check_priority(priority),
        )

    async def start_bulk(
        self,
        act: Act | str,
        where: Matching,
        *,
        rate: Rate | None = None,
        mode: CancelMode | None = None,
        reason: str | None = None,
        priority: int | None = None,
        patch: Any = UNSET,
        expected: int | None = None,
    ) -> BulkAct:
        """Cancel, redrive, delete or reprioritise all jobs that match, however many and whoever dies.

        It is stored, and carried on by the maintenance of any worker, chunk by chunk: `bulk_act` says how far
        it is. Jobs that are submitted later are not meant. Each job is counted once, and redriven once.
        `rate` is how fast it goes at most; `patch` changes the payload of each job that a redrive makes, as a
        JSON merge patch; `mode` and `reason` are for cancelling.
        """
        word = validation.check_word(act, Act)
        said = {"where": bulk_acts.stored(where), "rate": rate, "mode": mode, "priority": priority}
        async with self._noted("start_bulk", word.value, after=said):
            return await bulk_acts.start(
                self._context,
                word,
                where,
                rate=rate,
                mode=None if mode is None else validation.check_word(mode, CancelMode),
                reason=None if reason is None else validation.check_message(reason, "the reason"),
                priority=None if priority is None else validation.check_priority(priority),
                patch=patch,
                expected=None
                if expected is None
                else validation.check_limit(expected, "expected", minimum=0),
            )

    async def bulk_acts(self) -> tuple[BulkAct, ...]:
        """Those that go on and those that have ended in the last thirty days, the newest first."""
        return await bulk_acts.find_all(self._context)

    async def bulk_act(self, act_id: str) -> BulkAct:
        """How far it is, or BulkActNotFound."""
        return await bulk_acts.find(self._context, validation.check_id(act_id))

    async def cancel_bulk(self, act_id: str) -> BulkAct:
        """Stop it. What is done stays done and is counted; one that has ended stays as it is."""
        act_id = validation.check_id(act_id)
        async with self._noted("cancel_bulk", act_id):
            return await bulk_acts.cancel(self._context, act_id)

    async def reencrypt(
        self, *, limit: int | None = None, cursor: str | None = None, seal_plain: bool = False
    ) -> Reencrypted:
        """Bring what is encrypted under the ring's primary key. Looks at up to `limit` jobs (None: all).

        `cursor` goes on where a call with a limit ended. `seal_plain` encrypts, too, what was stored in the
        clear. Can be stopped and repeated at any time: what is done is passed over.
        """
        return await rotation.reencrypt(
            self._context,
            limit=None if limit is None else validation.check_limit(limit, "limit"),
            cursor=cursor,
            seal_plain=seal_plain,
        )

    async def pause(self, queue: str) -> None:
        """Nobody claims from the queue until it is resumed; what runs goes on."""
        queue = validation.check_name(queue, "queue")
        async with self._noted("pause", queue):
            await self.store.pause(Pause(queue, self.tenant, self._context.now()))

    async def resume(self, queue: str) -> bool:
        """True if it was paused."""
        queue = validation.check_name(queue, "queue")
        async with self._noted("resume", queue):
            return await self.store.resume(queue, self.tenant)

    async def pauses(self) -> tuple[Pause, ...]:
        """The queues that are paused, for this tenant or for all."""
        return tuple(
            pause for pause in await self.store.pauses() if self._context.concerns(pause.tenant)
        )

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        """The queue has exactly these limits from now on, for all its tenants.

        What is leased goes on, and counts. Workers may take a second to find the queue again.
        """
        queue = validation.check_name(queue, "queue")
        before = (await self.limits(queue)).get(queue)
        async with self._noted("set_limits", queue, before=before, after=limits):
            await set_limits(self._context, queue, limits)

    async def limits(self, queue: str | None = None) -> Mapping[str, QueueLimits]:
        """The limits of every queue that has some, or of this one, by name."""
        name = None if queue is None else validation.check_name(queue, "queue")
        return await find_limits(self._context, name)

    async def remove_limits(self, queue: str) -> bool:
        """True if the queue had limits."""
        queue = validation.check_name(queue, "queue")
        before = (await self.limits(queue)).get(queue)
        async with self._noted("remove_limits", queue, before=before):
            return await remove_limits(self._context, queue)

    # --- Schedules: When jobs are to be submitted, over and over.

    async def schedule(
        self,
        name: str,
        when: When,
        job: JobSpec,
        *,
        misfire: Misfire = Misfire.ONCE,
        grace_seconds: float = GRACE_SECONDS_DEFAULT,
        replace: bool = False,
    ) -> Schedule:
        """Submit `job` at every tick from now on; the schedule as it is stored.

        Names are unique within a tenant. The same schedule again changes nothing; another one under the
        name is refused with DuplicateSchedule or, with `replace`, put in its place.
        """
        wanted = schedule_rules.declare(
            name,
            when,
            job,
            tenant=self.tenant or DEFAULT_TENANT,
            now=self._context.now(),
            misfire=misfire,
            grace_seconds=grace_seconds,
        )
        before = await schedules.peek(self._context, wanted)
        if before is not None and schedule_rules.is_same(before, wanted):
            return await schedules.add(self._context, wanted, replace=replace)
        async with self._noted(
            "schedule", wanted.name, before=schedules.told(before), after=schedules.told(wanted)
        ):
            return await schedules.add(self._context, wanted, replace=replace)

    async def schedules(self) -> tuple[Schedule, ...]:
        """All there are, in order of tenant and name."""
        return await schedules.find_all(self._context)

    async def upcoming(self, count: int = 10, *, name: str | None = None) -> tuple[Upcoming, ...]:
        """The next ticks, the soonest first: of all schedules that go on, or of this one, paused or not."""
        return await schedules.upcoming(
            self._context,
            validation.check_limit(count, "count", maximum=schedules.UPCOMING_MAX),
            None if name is None else validation.check_name(name, "name of the schedule"),
        )

    async def run_schedule(self, name: str) -> Job:
        """Submit what the schedule submits, now and beside its ticks; each call makes one job."""
        name = validation.check_name(name, "name of the schedule")
        async with self._noted("run_schedule", name):
            return await schedules.run_now(self._context, name)

    async def pause_schedule(self, name: str) -> Schedule:
        """Fire no tick until it is resumed. A manager that is bound to no tenant means the default one's."""
        name = validation.check_name(name, "name of the schedule")
        async with self._noted("pause_schedule", name):
            return await schedules.change(
                self._context, name, lambda one: msgspec.structs.replace(one, paused=True)
            )

    async def resume_schedule(self, name: str) -> Schedule:
        """Go on. What was missed is passed over if its rule is to skip, and else made up for by its rule."""
        name = validation.check_name(name, "name of the schedule")
        async with self._noted("resume_schedule", name):
            return await schedules.change(
                self._context, name, lambda one: schedule_rules.resumed(one, self._context.now())
            )

    async def unschedule(self, name: str) -> bool:
        """True if there was one. The jobs it has submitted stay."""
        name = validation.check_name(name, "name of the schedule")
        async with self._noted("unschedule", name):
            return await schedules.remove(self._context, name)

    async def fire_schedules(self, limit: int = LIMIT) -> Fired:
        """One round: submit a job for each tick that is due. Any number of hosts make one job of a tick."""
        return await schedules.fire(self._context, validation.check_limit(limit, "limit"))

    # --- The log: How long events stay. Only for managers bound to no tenant: the log is everybody's.

    async def reader_reached(self, name: str, cursor: str, *, label: str | None = None) -> Reader:
        """Remember that this reader durably holds every event up to and with the cursor.

        From the first time on, nothing is trimmed that it does not hold: a reader says "" before it reads
        anything, and again where it is whenever it has made that durable. It may go back. `label` tells
        people what it is; None leaves it as it was. Raises InvalidCursor, and LogTrimmed where the log
        has lost what comes after the cursor.
        """
        return await readers.reached(self._context, name, cursor, label)

    async def readers(self) -> tuple[Reader, ...]:
        """All there are, in order of name."""
        return await readers.find_all(self._context)

    async def reader_lag(self, reader: Reader) -> Lag:
        """How far it is behind the end of the log."""
        return await readers.lag_of(self._context, reader)

    async def forget_reader(self, name: str) -> bool:
        """Let the log be trimmed whatever this reader holds. True if there was one."""
        name = validation.check_name(name, "reader")
        async with self._noted("forget_reader", name):
            return await readers.forget(self._context, name)

    async def trim_events(
        self,
        keep_seconds: float | None = None,
        *,
        without_readers: bool = False,
        limit: int = LIMIT,
        dry_run: bool = False,
    ) -> Trimmed:
        """Delete events older than this (default: the policies'), once every reader holds them.

        The oldest first, up to the first event that is younger or that a reader does not hold: what stays
        has no gap. Where there is no reader at all, it raises NoReaders and deletes nothing, unless
        `without_readers`. Jobs are not touched. A dry run reads whatever would go.
        """
        validation.check_limit(limit, "limit")
        if keep_seconds is None:
            return await trimming.trim_by_policy(self._context, limit=limit, dry_run=dry_run)
        return await trimming.trim(
            self._context,
            validation.check_seconds(keep_seconds, "keep_seconds", zero=True),
            without_readers=without_readers,
            limit=limit,
            dry_run=dry_run,
        )

    # --- Tokens: What whoever comes over the network shows, and what it may do with it.

    async def create_token(
        self,
        label: str,
        scopes: Iterable[Scope | str],
        *,
        tenant: str | None = None,
        expires_at: datetime | None = None,
    ) -> NewToken:
        """A new token with its secret, which is told this once: only a hash of it is stored.

        Without a tenant it acts for the manager's or, of a manager that is bound to none, for all.
        """
        async with self._noted(
            "create_token",
            label,
            after={
                "scopes": sorted(str(one) for one in scopes),
                "tenant": tenant,
                "expires_at": expires_at,
            },
        ):
            return await access.create(
                self._context, label, scopes, tenant=tenant, expires_at=expires_at
            )

    async def list_tokens(self) -> tuple[Token, ...]:
        """All there are, the oldest first; also those that were revoked or have expired."""
        return await access.find_all(self._context)

    async def revoke_token(self, token_id: str) -> bool:
        """Nobody gets in with it from now on. True if it was good until now."""
        async with self._noted("revoke_token", token_id):
            return await access.revoke(self._context, token_id)

    async def token_of(self, secret: str) -> Token | None:
        """The token with this secret if it is good now, else None. One read, and one write an hour."""
        return await access.by_secret(self._context, secret)

    # --- Upkeep: Leases, lifetimes, dependencies, schedules and retention. Safe from many hosts at once.

    async def reap(self, limit: int = LIMIT) -> Changed:
        """Take back leases that have lapsed."""
        return await recovery.reap(self._context, validation.check_limit(limit, "limit"))

    async def end_lifetimes(self, limit: int = LIMIT) -> Changed:
        """Jobs past their lifetime are dead."""
        return await recovery.end_lifetimes(self._context, validation.check_limit(limit, "limit"))

    async def sweep(self, limit: int = LIMIT) -> int:
        """Finish releases that a crash left half done; how many jobs changed."""
        return await recovery.sweep(self._context, validation.check_limit(limit, "limit"))

    async def run_bulk_acts(self, act_id: str | None = None) -> BulkRound:
        """Carry on each bulk act by some chunks, or this one. Any number of hosts may."""
        return await bulk_acts.run(
            self._context, None if act_id is None else validation.check_id(act_id)
        )

    async def roll_up(self, limit: int = rollups.EVENTS_MAX) -> int:
        """Count the next events of the log into the minutes and hours of recent history; how many.

        Each is counted once, whoever does it. Does nothing for one tenant: the log is everybody's.
        """
        return await rollups.roll(self._context, validation.check_limit(limit, "limit"))

    async def restamp(self) -> int:
        """After the store's clock was set back: bring back what it stamped ahead; how many jobs.

        Due times, next tries and leases. What a caller asked for stays.
        """
        return await self._clock_recovery.run()

    async def maintain(self) -> Maintained:
        """One round of everything that keeps the store healthy. Safe from many hosts at once."""
        return await upkeep.run(self)

    async def cleanup(
        self,
        keep_seconds: Mapping[State, float | None] | None = None,
        *,
        limit: int = LIMIT,
    ) -> Mapping[State, int]:
        """Delete ended jobs that are older than their state's keep time (default: the policies')."""
        validation.check_limit(limit, "limit")
        keep = None
        if keep_seconds is not None:
            keep = {
                _ended(state): None
                if seconds is None
                else validation.check_seconds(seconds, "keep_seconds", zero=True)
                for state, seconds in keep_seconds.items()
            }
        return await retention.cleanup(self._context, keep=keep, limit=limit)


def _query(
    *,
    queues: Iterable[str] | None,
    types: Iterable[str] | None,
    states: Iterable[State | str] | None,
    tags: Tags,
    assignee: str | None,
    created_from: datetime | None,
    created_before: datetime | None,
    newest_first: bool,
) -> Query:
    """Checked: what the store itself filters by."""
    return Query(
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


def _meant(chosen: Selection) -> str:
    """For the audit: the jobs and tags, or how many there are."""
    named = [*chosen.ids, *(f"tag {tag}" for tag in chosen.tags)]
    shown = ", ".join(named[:MEANT_MAX])
    return f"{shown} and {len(named) - MEANT_MAX} more" if len(named) > MEANT_MAX else shown


def _ended(state: State) -> State:
    word = validation.check_word(state, State)
    if word not in TERMINAL:
        raise InvalidInput(f"jobs that are {word} have not ended; nothing was deleted")
    return word
