"""Cancelling, deleting and redriving whatever matches, step by step.

Each step stands by itself and tells how far it is. What was dealt with does not match any more (or is known
to be redriven), so that the same call again goes on where one was stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from headrace import lifecycle
from headrace.envelope import is_sealed
from headrace.error_groups import collapsed
from headrace.errors import HeadraceError, InvalidTransition, Refusal
from headrace.manager import retention
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

    @property
    def matched(self) -> int:
        return self.done + sum(self.left.values())


Tell = Callable[[Bulk], None]
"""Is told after each step how far it is."""


class _Step(msgspec.Struct, frozen=True):
    """What became of some of the jobs."""

    done: Sequence[Job]
    left: Mapping[str, int] = {}
    freed: Mapping[str, int] = {}


Act = Callable[[Sequence[Job]], Awaitable[_Step]]


async def cancel(
    context: Context,
    where: Matching,
    *,
    mode: CancelMode | None,
    reason: str | None,
    dry_run: bool,
    tell: Tell | None,
) -> Bulk:
    """Waiting jobs and, unless the mode leaves them, running ones; each by itself."""
    criteria = check(where, CANCELLABLE, "cancelled")
    failure = Failure(reason or "cancelled", Category.CANCELLED)

    def command(job: Job) -> lifecycle.Cancel:
        if not criteria.means(job):
            raise InvalidTransition(
                f"job {job.id} is not one of those that are meant any more", job_id=job.id
            )
        return lifecycle.Cancel(mode=mode or context.policy(job.queue).cancel, failure=failure)

    def obeys(job: Job) -> bool:
        try:
            lifecycle.apply(job, command(job), context.now())
        except Refusal:
            return False
        return True

    async def act(jobs: Sequence[Job]) -> _Step:
        willing = [job for job in jobs if obeys(job)]
        left = {"running": len(jobs) - len(willing)}
        if dry_run:
            return _Step(willing, left)
        settled = await change_each(context, [Order(job.id, command, job) for job in willing])
        done = [
            job
            for job, answer in zip(willing, settled.outcomes, strict=True)
            if not isinstance(answer, HeadraceError)
        ]
        return _Step(done, left | {"changed meanwhile": len(willing) - len(done)}, settled.freed)

    return await _go_through(context, criteria, act, dry_run=dry_run, tell=tell)


async def delete(context: Context, where: Matching, *, dry_run: bool, tell: Tell | None) -> Bulk:
    """Ended jobs; their events stay."""
    criteria = check(where, TERMINAL, "deleted")

    async def act(jobs: Sequence[Job]) -> _Step:
        if dry_run or await context.store.delete({job.id: job.version for job in jobs}):
            return _Step(jobs)
        gone = [job for job in jobs if await context.store.delete({job.id: job.version})]
        return _Step(gone, {"changed meanwhile": len(jobs) - len(gone)})

    return await _go_through(context, criteria, act, dry_run=dry_run, tell=tell)


async def redrive(context: Context, where: Matching, *, dry_run: bool, tell: Tell | None) -> Bulk:
    """Failed, dead and cancelled jobs that were not redriven before.

    The job that was made of one stands for it, and matches by itself if it ended badly, too.
    """
    criteria = check(where, retention.REDRIVABLE, "redriven")

    async def act(jobs: Sequence[Job]) -> _Step:
        readable = [job for job in jobs if not is_sealed(job.payload_json)]
        heirs = await retention.heirs(context, readable)
        fresh = [job for job in readable if job.id not in heirs]
        left = {
            "encrypted": len(jobs) - len(readable),
            "redriven before": len(readable) - len(fresh),
        }
        if dry_run or not fresh:
            return _Step(fresh, left)
        submitted = await retention.run_again(context, fresh)
        done = [job for job, new in zip(fresh, submitted.created, strict=True) if new]
        left["redriven before"] += len(fresh) - len(done)
        return _Step(done, left)

    return await _go_through(context, criteria, act, dry_run=dry_run, tell=tell)


async def _go_through(
    context: Context, criteria: Criteria, act: Act, *, dry_run: bool, tell: Tell | None
) -> Bulk:
    groups: dict[ErrorGroup, tuple[int, str]] = {}
    left: Counter[str] = Counter()
    freed: Counter[str] = Counter()
    done = 0

    def told() -> Bulk:
        largest = sorted(groups.items(), key=lambda one: -one[1][0])
        return Bulk(
            dry_run=dry_run,
            done=done,
            left={reason: count for reason, count in left.items() if count},
            groups=tuple(replace(one, jobs=jobs, example=job) for one, (jobs, job) in largest),
            freed=dict(freed),
        )

    async for jobs in _steps(context, criteria):
        readable = [job for job in jobs if not criteria.is_withheld(job)]
        left["encrypted"] += len(jobs) - len(readable)
        step = await act(readable) if readable else _Step(())
        done += len(step.done)
        left.update(step.left)
        freed.update(step.freed)
        for job in step.done:
            group = group_of(job)
            before, example = groups.get(group, (0, job.id))
            groups[group] = before + 1, example
        if tell is not None:
            tell(told())
    return told()


async def _steps(context: Context, criteria: Criteria) -> AsyncIterator[list[Job]]:
    """Those that match, up to the newest that there is now: what a redrive makes is not for it."""
    newest = await context.store.find(Query(tenant=context.tenant, newest_first=True, limit=1))
    after = None
    while newest:
        page = await context.store.find(
            replace(criteria.query, tenant=context.tenant, after_seq=after, limit=STEP_JOBS)
        )
        jobs = [job for job in page if job.seq <= newest[0].seq and criteria.takes(job)]
        if jobs:
            yield jobs
        if len(page) < STEP_JOBS or page[-1].seq >= newest[0].seq:
            return
        after = page[-1].seq


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
