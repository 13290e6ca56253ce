"""What `headrace top` shows at one moment, and the few reads that it takes to know it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from headrace.cli.exits import one_line
from headrace.cli.stats import QueueRecord, by_queue
from headrace.cli.top_activity import FAILED, Activity, What
from headrace.error_groups import collapsed
from headrace.manager import JobManager, presence
from headrace.model import LEASED, Category, Event, Job, State
from headrace.stores.base import Query, WorkerSeen

EVENTS_PAGE = 1000
EVENTS_MAX = 10_000
"""Per frame. A log that grows faster is not read in full: what is shown is then the least there was."""
LEASED_MAX = 1000
LEASED_SECONDS = 5.0
"""How often the leases are counted by worker: it reads whole jobs, and workers report no more often."""
SEEN_SECONDS = 60.0
STALE_SECONDS = 15.0
"""A worker writes its presence down every 5 seconds."""
FAILURES_MAX = 20
ERRORS_MAX = 100
"""Groups of errors that are remembered."""

_ErrorKey = tuple[str, str, Category | None, str | None, str | None]


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs per second; `failed` counts attempts."""

    submitted: float
    started: float
    completed: float
    failed: float


class QueueFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One queue of one tenant."""

    tenant: str
    queue: str
    paused: bool
    limited: bool
    ready: int
    delayed: int
    running: int
    """Leased, those that are asked to stop included."""
    blocked: int
    oldest_ready_seconds: float | None
    completed_per_second: float | None
    failed: int
    dead: int
    """Dead letters that are stored."""
    drain_seconds: float | None
    """When nothing will be ready any more, if it goes on like this. Null: it does not get less."""


class WorkerFrame(msgspec.Struct, frozen=True, kw_only=True):
    worker: str
    tenant: str | None
    seen_at: datetime | None
    """When it was last heard of; null: not for a minute, but it holds jobs."""
    jobs: int
    busy: int | None
    """How many handlers it ran then. Null, as `slots`: it did not say."""
    slots: int | None
    """How many it runs at once."""
    queues: tuple[str, ...] | None
    """Null: every queue."""
    tags: tuple[str, ...]


class FailureFrame(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that failed, or a job that ended badly."""

    at: datetime
    tenant: str
    queue: str
    type: str
    job_id: str
    state: State
    category: Category | None
    code: str | None
    message: str | None


class ErrorFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Failures that differ in nothing but variable parts of their message, since this was started."""

    failures: int
    queue: str
    type: str
    category: Category | None
    code: str | None
    message: str | None
    """As it is where all read the same; else with numbers, times, ids and quoted text collapsed."""
    latest: FailureFrame


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One look. What `--json` prints."""

    at: datetime
    seconds: float
    """What the rates are taken over; 0: there are none yet."""
    failed_seconds: float
    """What the failures of a queue are counted over."""
    at_least: bool
    """More happened than was read: rates and failures are lower bounds."""
    rates: Rates | None
    queues: tuple[QueueFrame, ...]
    workers: tuple[WorkerFrame, ...]
    busy: int | None = None
    """How many slots are taken of all workers heard of just now. Null, as `slots`: none of them says."""
    slots: int | None = None
    jobs_at_least: bool
    """More jobs are leased than were counted by worker."""
    failures: tuple[FailureFrame, ...]
    """The latest, newest first."""
    errors: tuple[ErrorFrame, ...]
    """The same and those before them, by what went wrong: that of the latest first."""


class Watch:
    """Looks at a store again and again. `begin` first."""

    def __init__(self, jobs: JobManager) -> None:
        self._jobs = jobs
        self._failures: deque[FailureFrame] = deque(maxlen=FAILURES_MAX)
        self._errors: dict[_ErrorKey, ErrorFrame] = {}
        self._leased: Counter[str] = Counter()
        self._leased_at_least = False
        self._leased_at: datetime | None = None

    async def begin(self) -> None:
        """Note where the log ends, and which jobs failed before."""
        self._cursor = await self._jobs.tail()
        self._activity = Activity(self._jobs.clock.now())
        bad = (State.FAILED, State.DEAD)
        page = await self._jobs.find(states=bad, newest_first=True, limit=FAILURES_MAX)
        ended = [_of_job(job) for job in page.jobs if job.finalized_at is not None]
        for one in sorted(ended, key=lambda one: one.at):
            self._note(one)

    async def frame(self) -> Frame:
        """What there is now, and what happened since the frame before."""
        events, is_all = await self._news()
        overview = await self._jobs.overview()
        activity = self._activity
        activity.add(overview.at, events, is_all=is_all)
        self._note_failures(events)
        pauses = await self._jobs.pauses()
        limited = await self._jobs.limits()
        await self._count_leased(overview.at, events)
        seen = await self._jobs.workers(overview.at - timedelta(seconds=SEEN_SECONDS))
        just_now = overview.at - timedelta(seconds=STALE_SECONDS)
        slots = presence.slots(one for one in seen if one.seen_at >= just_now)
        return Frame(
            at=overview.at,
            seconds=activity.seconds,
            failed_seconds=activity.failed_seconds,
            at_least=not activity.is_all,
            rates=self._rates(),
            queues=tuple(
                self._queue(row, overview.oldest_ready, limited)
                for row in by_queue(overview.tallies, pauses)
            ),
            workers=_workers(seen, self._leased),
            busy=None if slots is None else slots.busy,
            slots=None if slots is None else slots.held,
            jobs_at_least=self._leased_at_least,
            failures=tuple(reversed(self._failures)),
            errors=tuple(reversed(self._errors.values())),
        )

    async def _news(self) -> tuple[list[Event], bool]:
        """The events since the last look, and whether those are all."""
        end = await self._jobs.tail()
        events: list[Event] = []
        while len(events) < EVENTS_MAX:
            page = await self._jobs.events(after=self._cursor, limit=EVENTS_PAGE)
            events += page
            if len(page) < EVENTS_PAGE:
                # Up to `end` all was looked at, also what is of other tenants.
                self._cursor = page[-1].cursor if page else end or self._cursor
                return events, True
            self._cursor = page[-1].cursor
        self._cursor = await self._jobs.tail()
        return events, False

    def _note_failures(self, events: Sequence[Event]) -> None:
        known = {(one.job_id, one.at) for one in self._failures}
        for event in events:
            if event.kind in FAILED and (event.job_id, event.at) not in known:
                self._note(_of_event(event))

    def _note(self, failure: FailureFrame) -> None:
        self._failures.append(failure)
        key = _error_key(failure)
        before = self._errors.pop(key, None)  # to be put last
        self._errors[key] = ErrorFrame(
            failures=1 if before is None else before.failures + 1,
            queue=failure.queue,
            type=failure.type,
            category=failure.category,
            code=failure.code,
            message=failure.message
            if before is None or before.message == failure.message
            else key[-1],
            latest=failure,
        )
        if len(self._errors) > ERRORS_MAX:
            del self._errors[next(iter(self._errors))]

    async def _count_leased(self, now: datetime, events: Sequence[Event]) -> None:
        """How many jobs each worker holds: counted now and then, and in between kept up by the events."""
        if self._leased_at is None or now - self._leased_at >= timedelta(seconds=LEASED_SECONDS):
            self._leased_at = self._jobs.clock.now()
            query = Query(tenant=self._jobs.tenant, states=tuple(LEASED), limit=LEASED_MAX)
            jobs = await self._jobs.store.find(query)
            self._leased = Counter(job.assignee for job in jobs if job.assignee is not None)
            self._leased_at_least = len(jobs) >= LEASED_MAX
            return
        for event in events:
            # What came before the count is in it, though it was read from the log only now.
            if event.worker is not None and event.at >= self._leased_at:
                self._leased[event.worker] += (event.after in LEASED) - (event.before in LEASED)

    def _rates(self) -> Rates | None:
        per_second = self._activity.per_second
        submitted = per_second(What.SUBMITTED)
        started = per_second(What.STARTED)
        completed = per_second(What.COMPLETED)
        failed = per_second(What.FAILED)
        if submitted is None or started is None or completed is None or failed is None:
            return None
        return Rates(submitted=submitted, started=started, completed=completed, failed=failed)

    def _queue(
        self,
        row: QueueRecord,
        oldest: Mapping[tuple[str, str], float],
        limited: Mapping[str, object],
    ) -> QueueFrame:
        place = (row.tenant, row.queue)
        return QueueFrame(
            tenant=row.tenant,
            queue=row.queue,
            paused=row.paused,
            limited=row.queue in limited,
            ready=row.ready,
            delayed=row.delayed,
            running=sum(row.states[state] for state in LEASED),
            blocked=row.states[State.BLOCKED],
            oldest_ready_seconds=oldest.get(place),
            completed_per_second=self._activity.per_second(What.COMPLETED, place),
            failed=self._activity.failed(place),
            dead=row.states[State.DEAD],
            drain_seconds=self._drain_seconds(row.ready, place),
        )

    def _drain_seconds(self, ready: int, place: tuple[str, str]) -> float | None:
        """By how much more is started than comes in."""
        started = self._activity.per_second(What.STARTED, place)
        submitted = self._activity.per_second(What.SUBMITTED, place)
        if not ready:
            return 0.0
        if started is None or submitted is None or started <= submitted:
            return None
        return ready / (started - submitted)


def _workers(seen: Sequence[WorkerSeen], leased: Mapping[str, int]) -> tuple[WorkerFrame, ...]:
    """Who was heard of lately, and who holds jobs: what claims by itself says nothing while it is busy."""
    asked = {one.worker: one for one in seen}
    return tuple(
        WorkerFrame(
            worker=name,
            tenant=one.tenant if one else None,
            seen_at=one.seen_at if one else None,
            jobs=max(0, leased.get(name, 0)),
            busy=one.busy if one else None,
            slots=one.slots if one else None,
            queues=None if one is None or one.queues is None else tuple(one.queues),
            tags=tuple(one.tags) if one else (),
        )
        for name in sorted({*asked, *(name for name, jobs in leased.items() if jobs > 0)})
        for one in (asked.get(name),)
    )


def _error_key(failure: FailureFrame) -> _ErrorKey:
    message = None if failure.message is None else collapsed(failure.message)
    return failure.queue, failure.type, failure.category, failure.code, message


def _of_event(event: Event) -> FailureFrame:
    return FailureFrame(
        at=event.at,
        tenant=event.tenant,
        queue=event.queue,
        type=event.type,
        job_id=event.job_id,
        state=event.after,
        category=event.category,
        code=event.code,
        message=None if event.message is None else one_line(event.message),
    )


def _of_job(job: Job) -> FailureFrame:
    assert job.finalized_at is not None
    failure = job.failure
    return FailureFrame(
        at=job.finalized_at,
        tenant=job.tenant,
        queue=job.queue,
        type=job.type,
        job_id=job.id,
        state=job.state,
        category=None if failure is None else failure.category,
        code=None if failure is None else failure.code,
        message=None if failure is None else one_line(failure.message),
    )
