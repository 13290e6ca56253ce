"""The manager's verbs over HTTP. The rules are the server's; reading goes through `RemoteStore`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from headrace import completion, error_text, validation
from headrace.api import (
    administration,
    jobs,
    problems,
    questions,
    queues,
    schedules,
    submissions,
    work,
)
from headrace.api.route import LEASE_HEADER, Route
from headrace.client.store import RemoteStore, job_of
from headrace.client.transport import Transport
from headrace.clock import Clock
from headrace.completion import HookCall
from headrace.duration import DELAY_SECONDS_MAX, Seconds
from headrace.errors import HeadraceError, InvalidInput
from headrace.history import Attempt
from headrace.input_checks import guarding
from headrace.limits import QueueLimits
from headrace.manager import (
    Batch,
    BatchProgress,
    CancelAcknowledged,
    Cancelled,
    Changed,
    Claimed,
    Completed,
    ErrorGroups,
    Explanation,
    Failed,
    FailedAttempt,
    Found,
    Heartbeats,
    Holders,
    JobGraph,
    JobManager,
    NewToken,
    Outcome,
    Overview,
    Page,
    QueueExplanation,
    Reason,
    Released,
    Settled,
    Snoozed,
    Stopped,
    Submitted,
    Upcoming,
    Why,
)
from headrace.manager.changes import unreadable
from headrace.manager.manager import Tags
from headrace.manager.selection import selection
from headrace.manager.submission import in_batch
from headrace.manager.upkeep import LIMIT
from headrace.model import Category, Event, Job, Lease, State
from headrace.policy import CancelMode, Policies
from headrace.schedules import (
    GRACE_SECONDS_DEFAULT,
    Misfire,
    Schedule,
    When,
    decode_job,
)
from headrace.spec import JobSpec
from headrace.stores.base import EventQuery, Extended, Pause, Tally, WorkerProcess, WorkerSeen
from headrace.tokens import Scope, Token, check_scopes

T = TypeVar("T")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@guarding(leaving=("outcomes",))
class RemoteManager(JobManager):
    """A `JobManager` of somebody else's process. What its server has no route for raises NotOverHttp."""

    def __init__(
        self,
        store: RemoteStore,
        *,
        clock: Clock,
        policies: Policies | None = None,
        tenant: str | None = None,
    ) -> None:
        # The server hides what is another tenant's; here everything that comes is to be seen.
        super().__init__(store, clock=clock, policies=policies)
        self._transport: Transport = store.transport
        self._tenant = tenant

    @property
    def tenant(self) -> str | None:
        return self._tenant

    def scoped(self, tenant: str) -> JobManager:
        """The same server, asked for one tenant: for tokens that act for every tenant, or for this one."""
        tenant = validation.check_name(tenant, "tenant")
        if self.tenant not in (None, tenant):
            raise InvalidInput(
                f"this manager is bound to tenant {self.tenant!r}; it reaches no other"
            )
        store = RemoteStore(self._transport.acting_for(tenant))
        return RemoteManager(store, clock=self.clock, policies=self.policies, tenant=tenant)

    async def _ask(self, route: Route, answer: type[T], **given: Any) -> T:
        return await self._transport.ask(route, answer, **given)

    # --- submitting

    async def submit(self, spec: JobSpec) -> Submitted:
        body = submissions.body_of(spec)
        answer = await self._ask(jobs.SUBMIT_MANY, jobs.SubmittedAnswer, body=_batch([body]))
        return _submitted(answer)

    async def submit_many(self, specs: Sequence[JobSpec]) -> Submitted:
        body = _batch(_bodies(specs))
        return _submitted(await self._ask(jobs.SUBMIT_MANY, jobs.SubmittedAnswer, body=body))

    async def spawn(self, job_id: str, token: str, specs: Sequence[JobSpec]) -> Submitted:
        body = work.SpawnBody(jobs=_bodies(specs))
        answer = await self._ask(
            work.SPAWN, jobs.SubmittedAnswer, **_held(job_id, token), body=body
        )
        return _submitted(answer)

    async def submit_batch(
        self,
        specs: Sequence[JobSpec],
        callback: JobSpec | None = None,
        *,
        batch_id: str | None = None,
    ) -> Batch:
        body = jobs.NewBatch(
            jobs=_bodies(specs),
            callback=None if callback is None else submissions.body_of(callback),
            batch_id=batch_id,
        )
        answer = await self._ask(jobs.SUBMIT_BATCH, jobs.BatchAnswer, body=body)
        return Batch(**asdict(answer))

    async def batch(self, batch_id: str) -> BatchProgress:
        batch_id = validation.check_id(batch_id)
        found = await self._ask(jobs.BATCH, jobs.ProgressAnswer, batch_id=batch_id)
        return BatchProgress(id=found.id, states={state: found.states[state] for state in State})

    # --- reading

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
        query = jobs.FindQuery(
            queue=validation.check_names(queues, "queue"),
            type=validation.check_names(types, "type"),
            state=None
            if states is None
            else tuple(validation.check_word(state, State) for state in states),
            tag=validation.check_tags(tags),
            worker=assignee,
            created_from=created_from,
            created_before=created_before,
            newest_first=newest_first,
        )
        nothing = () in (query.queue, query.type, query.state)
        if limit is not None:
            validation.check_limit(limit, "limit")

        async def read(start: str | None, count: int) -> Page:
            if nothing:  # a query cannot say that a list is there, and empty
                return Page((), None)
            asked = replace(query, cursor=start, limit=count)
            page = await self._ask(jobs.FIND, jobs.FoundAnswer, query=asked)
            return Page(tuple(job_of(one) for one in page.jobs), page.cursor)

        return Found(read, limit=limit, cursor=cursor)

    async def overview(self) -> Overview:
        found = await self._ask(queues.OVERVIEW, queues.OverviewAnswer)
        return Overview(
            at=found.at,
            tallies=tuple(Tally(**asdict(one)) for one in found.tallies),
            oldest_ready={(one.tenant, one.queue): one.seconds for one in found.oldest_ready},
        )

    async def explain(self, job_id: str) -> Explanation:
        job_id = validation.check_id(job_id)
        found = await self._ask(jobs.EXPLAIN, jobs.ExplanationAnswer, job_id=job_id)
        reasons = tuple(_reason(one) for one in found.reasons)
        return Explanation(job_of(found.job), reasons, found.place)

    async def failed_attempts(self, job_id: str, *, limit: int = 3) -> tuple[FailedAttempt, ...]:
        job_id = validation.check_id(job_id)
        query = jobs.LastQuery(limit=validation.check_limit(limit, "limit"))
        found = await self._ask(jobs.FAILURES, jobs.FailuresAnswer, query=query, job_id=job_id)
        return tuple(FailedAttempt(**asdict(one)) for one in found.attempts)

    async def attempts(self, job_id: str, *, limit: int = 20) -> tuple[Attempt, ...]:
        query = questions.AttemptsQuery(limit=validation.check_limit(limit, "limit"))
        job_id = validation.check_id(job_id)
        route, answer = questions.ATTEMPTS, questions.AttemptsAnswer
        return (await self._ask(route, answer, query=query, job_id=job_id)).attempts

    async def graph(self, job_id: str, *, depth: int = 3, nodes_max: int = 200) -> JobGraph:
        query = questions.GraphQuery(depth=depth, nodes_max=nodes_max)
        job_id = validation.check_id(job_id)
        return await self._ask(questions.GRAPH, JobGraph, query=query, job_id=job_id)

    async def explain_queue(self, queue: str) -> QueueExplanation:
        queue = validation.check_name(queue, "queue")
        route, answer = questions.EXPLAIN_QUEUE, questions.QueueExplanationAnswer
        found = await self._ask(route, answer, queue=queue)
        names = QueueExplanation.__struct_fields__
        same = {name: getattr(found, name) for name in names if name != "reasons"}
        reasons = tuple(_reason(one) for one in found.reasons)
        return QueueExplanation(**same, reasons=reasons)

    async def holders(self, queue: str, *, limit: int = 100) -> Holders:
        query = questions.HoldersQuery(limit=limit)
        queue = validation.check_name(queue, "queue")
        return await self._ask(questions.HOLDERS, Holders, query=query, queue=queue)

    async def error_groups(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        limit: int = 100,
    ) -> ErrorGroups:
        query = questions.ErrorsQuery(
            since=validation.check_time(since, "since"),
            until=None if until is None else validation.check_time(until, "until"),
            queue=validation.check_names(queues, "queue"),
            type=validation.check_names(types, "type"),
            limit=validation.check_limit(limit, "limit"),
        )
        return await self._ask(questions.ERRORS, ErrorGroups, query=query)

    async def cursor_at(self, at: datetime) -> str:
        query = questions.CursorQuery(at=validation.check_time(at, "at"))
        found = await self._ask(questions.CURSOR_AT, questions.CursorAnswer, query=query)
        return found.cursor

    # --- working

    async def hook_call(self, job: Job) -> HookCall | None:
        if job.type == completion.JOIN_TYPE:
            return HookCall(wanted=False, note="joined")
        if completion.link_of(job) is None:
            return None
        found = await self._ask(work.HOOK, work.HookAnswer, **_held(job.id, job.token))
        return HookCall(wanted=found.wanted, note=found.note, about=found.about)

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
        body = work.ClaimBody(
            worker=validation.check_name(worker, "worker"),
            queues=validation.check_names(queues, "queue"),
            types=validation.check_names(types, "type"),
            tags=validation.check_tags(tags),
            limit=limit,
            lease_seconds=None
            if lease_seconds is None
            else validation.check_seconds(lease_seconds, "lease_seconds"),
            due_by=due_by,
            tenant=tenant,
            look_ahead=look_ahead,
            slots=slots,
            busy=busy,
        )
        found = await self._ask(work.CLAIM, work.ClaimedAnswer, body=body)
        claimed = tuple(job_of(one, one.lease.token) for one in found.jobs)
        return Claimed(claimed, found.next_at)

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
        body = work.AnnounceBody(
            worker=worker,
            queues=validation.check_names(queues, "queue"),
            types=validation.check_names(types, "type"),
            tags=validation.check_tags(tags),
            slots=slots,
            busy=busy,
            process=process,
        )
        await self._transport.tell(work.ANNOUNCE, body=body)

    async def settle(self, outcomes: Sequence[Outcome]) -> Settled:
        sent: list[work.Outcome] = []
        answers: list[Job | HeadraceError | None] = []
        for outcome in outcomes:
            try:
                sent.append(_outcome(outcome))
                answers.append(None)
            except HeadraceError as error:
                answers.append(error)
            except Exception as error:  # noqa: BLE001 - a made-up outcome may do anything
                answers.append(unreadable(error))
        if not sent:
            return Settled(tuple(one for one in answers if one is not None), {})
        body = work.SettleBody(outcomes=tuple(sent))
        found = await self._ask(work.SETTLE, work.SettledAnswer, body=body)
        told = iter(found.outcomes)
        return Settled(
            tuple(_settled(next(told)) if one is None else one for one in answers), found.freed
        )

    async def _settle(self, outcome: Outcome) -> Changed:
        settled = await self.settle([outcome])
        (answer,) = settled.outcomes
        if isinstance(answer, HeadraceError):
            raise answer
        return Changed((answer,), settled.freed)

    async def heartbeat(self, held: Sequence[Lease]) -> Heartbeats:
        given = tuple(
            work.HeldLease(
                job_id=one.job_id,
                lease=one.token,
                seconds=None
                if one.seconds is None
                else validation.check_seconds(one.seconds, "the seconds of a lease"),
            )
            for one in held
        )
        body = work.HeartbeatBody(leases=given)
        found = await self._ask(work.HEARTBEAT, work.HeartbeatAnswer, body=body)
        lost = {(one.job_id, one.lease) for one in found.lost}
        return Heartbeats(
            {
                job_id: Extended(job_id, one.state, one.lease_until)
                for job_id, one in found.extended.items()
            },
            {job_id: problems.error_of(one) for job_id, one in found.refused.items()},
            tuple(lease for lease in held if (lease.job_id, lease.token) in lost),
        )

    async def held(self, leases: Sequence[Lease]) -> Mapping[str, State]:
        given = tuple(work.HeldLease(job_id=one.job_id, lease=one.token) for one in leases)
        found = await self._ask(
            work.CHECK, work.CheckedAnswer, body=work.HeartbeatBody(leases=given)
        )
        return found.held

    async def progress(
        self, job_id: str, token: str, fraction: float, note: str | None = None
    ) -> None:
        body = work.ProgressBody(fraction=fraction, note=note)
        await self._transport.tell(work.PROGRESS, **_held(job_id, token), body=body)

    async def checkpoint(self, job_id: str, token: str, value: Any) -> None:
        body = work.CheckpointBody(value=submissions.raw_of(value, "checkpoint"))
        await self._transport.tell(work.CHECKPOINT, **_held(job_id, token), body=body)

    async def keep_log(self, job_id: str, token: str, lines: Sequence[Any]) -> None:
        body = work.LogBody(lines=tuple(submissions.raw_of(line, "log") for line in lines))
        await self._transport.tell(work.LOG, **_held(job_id, token), body=body)

    # --- steering

    async def cancel(
        self,
        ids: Iterable[str] = (),
        *,
        tags: Tags = (),
        mode: CancelMode | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> Cancelled:
        chosen = selection(ids, tags)
        body = jobs.CancelManyBody(
            ids=tuple(chosen.ids),
            tags=tuple(chosen.tags),
            mode=None if mode is None else validation.check_word(mode, CancelMode),
            reason=reason,
            dry_run=dry_run,
        )
        found = await self._ask(jobs.CANCEL_MANY, jobs.CancelledAnswer, body=body)
        return Cancelled(
            jobs=_jobs(found.jobs),
            already=_jobs(found.already),
            refused=_jobs(found.refused),
            ended=_jobs(found.ended),
            not_found=found.not_found,
            freed=found.freed,
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
        body = jobs.UpdateBody(
            priority=priority if priority is UNSET else validation.check_priority(priority),
            tags=tags if isinstance(tags, UnsetType) else validation.check_tags(tags),
            add_tags=validation.check_tags(add_tags),
            remove_tags=validation.check_tags(remove_tags),
            correlation_id=correlation_id,
            callback_url=callback_url,
        )
        job_id = validation.check_id(job_id)
        return _changed(await self._ask(jobs.UPDATE, jobs.JobAnswer, body=body, job_id=job_id))

    async def reschedule(self, job_id: str, run_at: datetime | None = None) -> Changed:
        when = None if run_at is None else validation.check_time(run_at, "run_at")
        body = jobs.RescheduleBody(run_at=when)
        job_id = validation.check_id(job_id)
        return _changed(await self._ask(jobs.RESCHEDULE, jobs.JobAnswer, body=body, job_id=job_id))

    async def delete(self, ids: Iterable[str] = (), *, tags: Tags = ()) -> tuple[Job, ...]:
        body = _selection(ids, tags)
        return _jobs((await self._ask(jobs.DELETE_MANY, jobs.JobsAnswer, body=body)).jobs)

    async def redrive(
        self, ids: Iterable[str] = (), *, tags: Tags = (), payload: Any = UNSET
    ) -> Submitted:
        chosen = _selection(ids, tags)
        body = jobs.RedriveManyBody(
            ids=chosen.ids,
            tags=chosen.tags,
            payload=UNSET if payload is UNSET else submissions.raw_of(payload, "payload"),
        )
        return _submitted(await self._ask(jobs.REDRIVE_MANY, jobs.SubmittedAnswer, body=body))

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        body = queues.LimitsBody(**asdict(limits))
        queue = validation.check_name(queue, "queue")
        await self._transport.tell(queues.SET_LIMITS, body=body, queue=queue)

    async def limits(self, queue: str | None = None) -> Mapping[str, QueueLimits]:
        if queue is not None:
            name = validation.check_name(queue, "queue")
            body = await self._ask(queues.LIMITS, queues.LimitsBody, queue=name)
            limits = QueueLimits(**asdict(body))
            return {} if limits.are_none else {name: limits}
        found = await self._ask(queues.ALL_LIMITS, queues.LimitsAnswer)
        return {one: QueueLimits(**asdict(body)) for one, body in found.limits.items()}

    async def remove_limits(self, queue: str) -> bool:
        queue = validation.check_name(queue, "queue")
        found = await self._ask(queues.REMOVE_LIMITS, queues.RemovedAnswer, queue=queue)
        return found.removed

    # --- schedules

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
        body = schedules.ScheduleBody(
            when=when,
            job=submissions.body_of(job),
            misfire=misfire,
            grace_seconds=grace_seconds,
            replace=replace,
        )
        name = validation.check_name(name, "name of the schedule")
        answer = await self._ask(schedules.ADD, schedules.ScheduleAnswer, body=body, name=name)
        return _schedule(answer)

    async def schedules(self) -> tuple[Schedule, ...]:
        found = await self._ask(schedules.SCHEDULES, schedules.SchedulesAnswer)
        return tuple(_schedule(one) for one in found.schedules)

    async def upcoming(self, count: int = 10, *, name: str | None = None) -> tuple[Upcoming, ...]:
        query = questions.UpcomingQuery(
            count=validation.check_limit(count, "count"),
            name=None if name is None else validation.check_name(name, "name of the schedule"),
        )
        found = await self._ask(questions.UPCOMING, questions.UpcomingAnswer, query=query)
        return found.ticks

    async def run_schedule(self, name: str) -> Job:
        name = validation.check_name(name, "name of the schedule")
        return job_of(await self._ask(questions.RUN_SCHEDULE, jobs.JobAnswer, name=name))

    async def pause_schedule(self, name: str) -> Schedule:
        return await self._of_schedule(schedules.PAUSE, name)

    async def resume_schedule(self, name: str) -> Schedule:
        return await self._of_schedule(schedules.RESUME, name)

    async def _of_schedule(self, route: Route, name: str) -> Schedule:
        name = validation.check_name(name, "name of the schedule")
        return _schedule(await self._ask(route, schedules.ScheduleAnswer, name=name))

    async def unschedule(self, name: str) -> bool:
        name = validation.check_name(name, "name of the schedule")
        found = await self._ask(schedules.REMOVE, queues.RemovedAnswer, name=name)
        return found.removed

    # --- queues, the log, upkeep

    async def pause(self, queue: str) -> None:
        queue = validation.check_name(queue, "queue")
        await self._transport.tell(queues.PAUSE, queue=queue)

    async def resume(self, queue: str) -> bool:
        queue = validation.check_name(queue, "queue")
        found = await self._ask(queues.RESUME, queues.ResumedAnswer, queue=queue)
        return found.resumed

    async def pauses(self) -> tuple[Pause, ...]:
        found = await self._ask(queues.PAUSES, tuple[queues.PauseAnswer, ...])
        return tuple(Pause(one.queue, one.tenant, one.since) for one in found)

    async def workers(self, since: datetime) -> tuple[WorkerSeen, ...]:
        since = validation.check_time(since, "since")
        passed = (self.clock.now() - since).total_seconds()
        query = queues.WorkersQuery(seconds=min(max(passed, 0.001), DELAY_SECONDS_MAX))
        found = await self._ask(queues.WORKERS, queues.WorkersAnswer, query=query)
        return tuple(WorkerSeen(**asdict(one)) for one in found.workers)

    async def expire_worker(self, worker: str) -> Changed:
        worker = validation.check_name(worker, "worker")
        return _maintained(
            await self._ask(queues.EXPIRE_WORKER, queues.ExpiredAnswer, worker=worker)
        )

    async def events(
        self, *, after: str = "", job_id: str | None = None, limit: int = 1000
    ) -> tuple[Event, ...]:
        validation.check_limit(limit, "limit")
        query = EventQuery(after=after, job_id=job_id, limit=limit)
        return tuple(await self._context.store.events(query))

    async def tail(self) -> str:
        return await self._context.store.tail()

    async def reap(self, limit: int = LIMIT) -> Changed:
        return _maintained(await self._maintain(administration.Upkeep.REAP, limit))

    async def end_lifetimes(self, limit: int = LIMIT) -> Changed:
        return _maintained(await self._maintain(administration.Upkeep.LIFETIMES, limit))

    async def sweep(self, limit: int = LIMIT) -> int:
        step = administration.Upkeep.SWEEP
        return (await self._maintain(step, limit)).done[step]

    async def restamp(self) -> int:
        step = administration.Upkeep.RESTAMP
        return (await self._maintain(step, LIMIT)).done[step]

    async def _maintain(
        self, step: administration.Upkeep, limit: int
    ) -> administration.UpkeepAnswer:
        query = administration.UpkeepQuery(limit=validation.check_limit(limit, "limit"))
        return await self._ask(
            administration.MAINTAIN, administration.UpkeepAnswer, query=query, step=step
        )

    # --- tokens

    async def create_token(
        self,
        label: str,
        scopes: Iterable[Scope | str],
        *,
        tenant: str | None = None,
        expires_at: datetime | None = None,
    ) -> NewToken:
        body = administration.NewTokenBody(
            label=label, scopes=check_scopes(scopes), tenant=tenant, expires_at=expires_at
        )
        found = await self._ask(
            administration.CREATE_TOKEN, administration.NewTokenAnswer, body=body
        )
        return NewToken(token=_token(found), secret=found.secret)

    async def list_tokens(self) -> tuple[Token, ...]:
        found = await self._ask(administration.TOKENS, administration.TokensAnswer)
        return tuple(_token(one) for one in found.tokens)

    async def revoke_token(self, token_id: str) -> bool:
        token_id = validation.check_name(token_id, "id of the token")
        route, answer = administration.REVOKE_TOKEN, administration.RevokedAnswer
        return (await self._ask(route, answer, token_id=token_id)).revoked


def _batch(bodies: Sequence[submissions.JobBody]) -> jobs.BatchOfJobs:
    return jobs.BatchOfJobs(jobs=tuple(bodies))


def _bodies(specs: Sequence[JobSpec]) -> tuple[submissions.JobBody, ...]:
    bodies = []
    for index, spec in enumerate(specs):
        try:
            bodies.append(submissions.body_of(spec))
        except HeadraceError as error:
            raise in_batch(index, error, of=len(specs)) from error
    return tuple(bodies)


def _submitted(answer: jobs.SubmittedAnswer) -> Submitted:
    return Submitted(_jobs(answer.jobs), answer.created)


def _jobs(answers: Iterable[jobs.JobAnswer]) -> tuple[Job, ...]:
    return tuple(job_of(one) for one in answers)


def _changed(answer: jobs.JobAnswer) -> Changed:
    return Changed((job_of(answer),), {})


def _maintained(answer: queues.ExpiredAnswer | administration.UpkeepAnswer) -> Changed:
    return Changed(_jobs(answer.jobs), answer.freed)


def _reason(told: jobs.ReasonAnswer) -> Reason:
    facts = {name: _fact(value) for name, value in told.facts.items()}
    return Reason(Why(told.why), told.message, facts)


def _fact(value: Any) -> Any:
    """Times come as text: JSON has no other word for them."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return msgspec.convert(value, datetime)
    return value


def _selection(ids: Iterable[str], tags: Tags) -> jobs.SelectionBody:
    chosen = selection(ids, tags)
    return jobs.SelectionBody(ids=tuple(chosen.ids), tags=tuple(chosen.tags))


def _held(job_id: str, token: str | None) -> dict[str, Any]:
    """The job, and that it is ours."""
    return {"job_id": validation.check_id(job_id), "headers": {LEASE_HEADER: _shown(token)}}


def _shown(token: str | None) -> str:
    if not token:
        raise InvalidInput("over HTTP every worker shows its lease token; nothing was changed")
    return token


def _outcome(outcome: Outcome) -> work.Outcome:
    """As it is sent. Raises what is wrong with it."""
    job_id, lease = validation.check_id(outcome.job_id), _shown(outcome.token)
    match outcome:
        case Completed(result=result):
            raw = submissions.raw_of(result, "result")
            return work.Completed(job_id=job_id, lease=lease, result=raw)
        case Failed(failure=failure):
            after = outcome.retry_after
            if failure.category is Category.CANCELLED:
                raise InvalidInput(
                    "a failure cannot be CANCELLED: stop the job instead; nothing was changed"
                )
            return work.Failed(
                job_id=job_id,
                lease=lease,
                message=error_text.plain(failure.message),
                category=failure.category,
                code=failure.code,
                retry_after=None
                if after is None
                else validation.check_seconds(after, "retry_after", zero=True),
                retry_at=outcome.retry_at,
            )
        case Snoozed(until=until):
            return work.Snoozed(job_id=job_id, lease=lease, until=until)
        case Released():
            return work.Released(job_id=job_id, lease=lease)
        case Stopped(message=message):
            return work.Stopped(job_id=job_id, lease=lease, message=message)
        case CancelAcknowledged(was_executing=was_executing):
            return work.CancelAcknowledged(job_id=job_id, lease=lease, was_executing=was_executing)


def _settled(told: work.SettledOne) -> Job | HeadraceError:
    if told.job is not None:
        return job_of(told.job)
    return problems.error_of(told.problem or {})


def _schedule(answer: schedules.ScheduleAnswer) -> Schedule:
    names = Schedule.__struct_fields__
    given = {name: getattr(answer, name) for name in names if name != "job"}
    return Schedule(**given, job=decode_job(bytes(answer.job)))


def _token(answer: administration.TokenAnswer) -> Token:
    """Its digest stays where it is."""
    names = administration.TokenAnswer.__struct_fields__
    return Token(**{name: getattr(answer, name) for name in names}, digest="")
