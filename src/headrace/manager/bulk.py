"""Cancelling, deleting and redriving whatever matches, step by step.

Each step stands by itself and tells how far it is. What was dealt with does not match any more (or is known
to be redriven), so that the same call again goes on where one was stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from headrace import codec, lifecycle
from headrace.envelope import is_sealed
from headrace.error_groups import collapsed
from headrace.errors import HeadraceError, InvalidTransition, JobNotFound, Refusal
from headrace.manager import retention, updates
from headrace.manager.changes import Order, change_each
from headrace.manager.context import Context
from headrace.manager.matching import Criteria, Matching, check
from headrace.manager.sealing import hides_message
from headrace.model import TERMINAL, Category, Failure, Job, State
from headrace.policy import CancelMode
from headrace.redaction import Redacted
from headrace.stores.base import Query

STEP_JOBS = 500
CANCELLABLE = frozenset(State) - TERMINAL - {State.CANCELLING}
CANCELLED = frozenset({State.CANCELLED, State.CANCELLING, State.ABANDONED})
CHANGED = "changed meanwhile"
REDRIVEN = "redriven before"
ENCRYPTED = "(encrypted)"


class ErrorGroup(Redacted, frozen=True, kw_only=True):
    """Jobs of one queue, type and state whose last errors differ in nothing but variable parts."""

    jobs: int
    queue: str
    type: str
    state: State
    category: Category | None
    code: str | None
    message: str | None
    """With numbers, times, ids and quoted text collapsed."""
    example: str
    """The id of one of them."""


class Bulk(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs that matched or (dry run) would."""

    dry_run: bool
    done: int = 0
    left: Mapping[str, int] = {}
    """How many were left as they were, by the reason."""
    groups: tuple[ErrorGroup, ...] = ()
    """Those that were done, the largest first."""
    freed: Mapping[str, int] = {}
    """The capacity that it freed, by worker."""
    at_least: bool = False
    """Of a dry run that was to look at so many jobs only: there may be more."""

    @property
    def matched(self) -> int:
        return self.done + sum(self.left.values())


Tell = Callable[[Bulk], None]
"""Is told after each step how far it is."""


class Step(msgspec.Struct, frozen=True):
    """What became of some of the jobs."""

    done: Sequence[Job]
    left: Mapping[str, int] = {}
    freed: Mapping[str, int] = {}


class Deed(Protocol):
    """What is to be done to jobs that match."""

    @property
    def criteria(self) -> Criteria: ...

    async def sort(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], Mapping[str, int]]:
        """Those that it can be done to now, and why not to the others."""
        ...

    async def do(self, jobs: Sequence[Job]) -> Step:
        """To some that were sorted out for it. Each by itself."""
        ...

    async def done_before(self, ids: Sequence[str]) -> set[str]:
        """Those of jobs that it was to be done to which show that it was."""
        ...


class Cancel:
    """Waiting jobs and, unless the mode leaves them, running ones."""

    def __init__(
        self, context: Context, where: Matching, mode: CancelMode | None, reason: str | None
    ) -> None:
        self.criteria = check(where, CANCELLABLE, "cancelled")
        self._context = context
        self._mode = mode
        self._failure = Failure(reason or "cancelled", Category.CANCELLED)

    async def sort(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], Mapping[str, int]]:
        willing = [job for job in jobs if self._obeys(job)]
        return willing, {"running": len(jobs) - len(willing)}

    async def do(self, jobs: Sequence[Job]) -> Step:
        orders = [Order(job.id, self._command, job) for job in jobs]
        settled = await change_each(self._context, orders)
        done = [
            job
            for job, answer in zip(jobs, settled.outcomes, strict=True)
            if not isinstance(answer, HeadraceError)
        ]
        return Step(done, {CHANGED: len(jobs) - len(done)}, settled.freed)

    async def done_before(self, ids: Sequence[str]) -> set[str]:
        return {
            job.id for job in (await self._context.read(ids)).values() if job.state in CANCELLED
        }

    def _command(self, job: Job) -> lifecycle.Cancel:
        if not self.criteria.means(job):
            raise InvalidTransition(
                f"job {job.id} is not one of those that are meant any more", job_id=job.id
            )
        mode = self._mode or self._context.policy(job.queue).cancel
        return lifecycle.Cancel(mode=mode, failure=self._failure)

    def _obeys(self, job: Job) -> bool:
        try:
            lifecycle.apply(job, self._command(job), self._context.now())
        except Refusal:
            return False
        return True


class Delete:
    """Ended jobs; their events stay."""

    def __init__(self, context: Context, where: Matching) -> None:
        self.criteria = check(where, TERMINAL, "deleted")
        self._context = context

    async def sort(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], Mapping[str, int]]:
        return jobs, {}

    async def do(self, jobs: Sequence[Job]) -> Step:
        store = self._context.store
        if await store.delete({job.id: job.version for job in jobs}):
            return Step(jobs)
        gone = [job for job in jobs if await store.delete({job.id: job.version})]
        return Step(gone, {CHANGED: len(jobs) - len(gone)})

    async def done_before(self, ids: Sequence[str]) -> set[str]:
        return set(ids) - (await self._context.read(ids)).keys()


class Redrive:
    """Failed, dead and cancelled jobs that were not redriven before.

    The job that was made of one stands for it, and matches by itself if it ended badly, too.
    """

    def __init__(
        self, context: Context, where: Matching, *, tag: str | None = None, patch: Any = UNSET
    ) -> None:
        self.criteria = check(where, retention.REDRIVABLE, "redriven")
        self._context = context
        self._tag = tag
        self._patch = patch

    async def sort(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], Mapping[str, int]]:
        readable = [job for job in jobs if not is_sealed(job.payload_json)]
        heirs = await retention.heirs(self._context, readable)
        fresh = [job for job in readable if job.id not in heirs]
        return fresh, {
            "encrypted": len(jobs) - len(readable),
            REDRIVEN: len(readable) - len(fresh),
        }

    async def do(self, jobs: Sequence[Job]) -> Step:
        submitted = await retention.run_again(
            self._context,
            jobs,
            tags=() if self._tag is None else (self._tag,),
            payload_of=None if self._patch is UNSET else self._patched,
        )
        done = [job for job, new in zip(jobs, submitted.created, strict=True) if new]
        return Step(done, {REDRIVEN: len(jobs) - len(done)})

    async def done_before(self, ids: Sequence[str]) -> set[str]:
        jobs = await self._context.read(ids)
        heirs = await retention.heirs(self._context, list(jobs.values()))
        return {job_id for job_id, heir in heirs.items() if self._tag in heir.tags}

    def _patched(self, job: Job) -> bytes:
        payload = merged(job.payload, self._patch)
        limit = self._context.policy(job.queue).payload_bytes_max
        return codec.encode(payload, what="payload", limit=limit)


class Prioritise:
    """Jobs that have not ended get another priority."""

    def __init__(self, context: Context, where: Matching, priority: int) -> None:
        self.criteria = check(where, frozenset(State) - TERMINAL, "given another priority")
        self._context = context
        self._wanted = updates.Wanted(priority=priority)
        self._priority = priority

    async def sort(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], Mapping[str, int]]:
        others = [job for job in jobs if job.priority != self._priority]
        return others, {"had it already": len(jobs) - len(others)}

    async def do(self, jobs: Sequence[Job]) -> Step:
        done = []
        left: Counter[str] = Counter()
        for job in jobs:
            try:
                changed = await updates.update(self._context, job.id, self._wanted)
            except (Refusal, JobNotFound):
                left[CHANGED] += 1
                continue
            if changed.job.priority == self._priority:
                done.append(job)
            else:
                left["needed by a more urgent one"] += 1
        return Step(done, left)

    async def done_before(self, ids: Sequence[str]) -> set[str]:
        jobs = (await self._context.read(ids)).values()
        return {job.id for job in jobs if job.priority == self._priority}


async def go_through(
    context: Context,
    deed: Deed,
    *,
    dry_run: bool,
    tell: Tell | None = None,
    jobs_max: int | None = None,
) -> Bulk:
    """Do it to all that match, or say what it would be done to: of so many jobs that were looked at."""
    criteria = deed.criteria
    counted = Counted()
    async for page in steps(context, criteria):
        readable = [job for job in page if not criteria.is_withheld(job)]
        counted.leave({"encrypted": len(page) - len(readable)})
        if readable:
            willing, left = await deed.sort(readable)
            counted.leave(left)
            counted.add(Step(willing) if dry_run or not willing else await deed.do(willing))
        told = counted.told(dry_run=dry_run)
        if tell is not None:
            tell(told)
        if jobs_max is not None and told.matched >= jobs_max:
            return replace(told, at_least=True)
    return counted.told(dry_run=dry_run)


class Counted:
    """What became of all jobs so far."""

    def __init__(self) -> None:
        self._groups: dict[ErrorGroup, tuple[int, str]] = {}
        self._left: Counter[str] = Counter()
        self._freed: Counter[str] = Counter()
        self._done = 0

    def leave(self, left: Mapping[str, int]) -> None:
        self._left.update(left)

    def add(self, step: Step) -> None:
        self._done += len(step.done)
        self._left.update(step.left)
        self._freed.update(step.freed)
        for job in step.done:
            group = group_of(job)
            before, example = self._groups.get(group, (0, job.id))
            self._groups[group] = before + 1, example

    def told(self, *, dry_run: bool) -> Bulk:
        largest = sorted(self._groups.items(), key=lambda one: -one[1][0])
        return Bulk(
            dry_run=dry_run,
            done=self._done,
            left={reason: count for reason, count in self._left.items() if count},
            groups=tuple(replace(one, jobs=jobs, example=job) for one, (jobs, job) in largest),
            freed=dict(self._freed),
        )


async def newest_seq(context: Context) -> int:
    """What is submitted from now on is not meant: nor what a redrive makes."""
    newest = await context.store.find(Query(tenant=context.tenant, newest_first=True, limit=1))
    return newest[0].seq if newest else 0


async def steps(context: Context, criteria: Criteria) -> AsyncIterator[list[Job]]:
    """Those that match, up to the newest that there is now."""
    newest = await newest_seq(context)
    after: int | None = None
    while newest:
        page = await next_page(context, criteria, after, newest)
        if page.jobs:
            yield page.jobs
        if page.after is None:
            return
        after = page.after


class MatchedPage(NamedTuple):
    jobs: list[Job]
    after: int | None
    """Where to go on. None: that was all."""


async def next_page(
    context: Context, criteria: Criteria, after: int | None, newest: int
) -> MatchedPage:
    """The next jobs that match, out of so many that the store finds."""
    page = await context.store.find(
        replace(criteria.query, tenant=context.tenant, after_seq=after, limit=STEP_JOBS)
    )
    jobs = [job for job in page if job.seq <= newest and criteria.takes(job)]
    is_last = len(page) < STEP_JOBS or page[-1].seq >= newest
    return MatchedPage(jobs, None if is_last else page[-1].seq)


def merged(value: Any, patch: Any) -> Any:
    """The value with what the patch says of it: objects are merged, null takes a field away (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    whole = dict(value) if isinstance(value, Mapping) else {}
    for name, part in patch.items():
        if part is None:
            whole.pop(name, None)
        else:
            whole[name] = merged(whole.get(name), part)
    return whole


def group_of(job: Job) -> ErrorGroup:
    """The group that the job belongs to, without its size."""
    failure = job.failure
    message = None
    if failure is not None:
        message = ENCRYPTED if hides_message(job) else collapsed(failure.message)
    return ErrorGroup(
        jobs=0,
        queue=job.queue,
        type=job.type,
        state=job.state,
        category=None if failure is None else failure.category,
        code=None if failure is None else failure.code,
        message=message,
        example="",
    )
