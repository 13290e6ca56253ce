"""Batches: a set of jobs under one id, one callback when all of them have ended, and how far they are.

The callback is a job that waits. A job may wait for a thousand others, so between a larger set and its
callback stand joins: jobs without a handler, each of which gathers a thousand members.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from headrace import graph, validation
from headrace.completion import JOIN_TYPE, Role, lasting, refuse_own_ties, tagged
from headrace.errors import BatchNotFound, DuplicateJob, HeadraceError, InvalidInput
from headrace.manager.context import Context
from headrace.manager.placement import Draft, KeyRule
from headrace.manager.submission import draft_all, in_batch, store_drafts
from headrace.model import LEASED, TERMINAL, Dependency, DependencyKind, Job, State, new_id
from headrace.spec import JobSpec

PIECE_JOBS = 10_000
"""What is stored in one step. A larger batch is stored piece by piece, its callback last."""
LOOK_SECONDS = 1.0
LOOK_SHARE = 0.1
"""Counting a large batch takes a while: at most this share of the time is spent on it."""
LOOK_PAUSE_SECONDS_MAX = 60.0
MEMBERS_MAX = graph.DEPENDENCIES_MAX**2


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as it was stored."""

    id: str
    job_ids: tuple[str, ...]
    """In the order they were submitted in."""
    callback_id: str | None
    created: int
    """How many of the jobs are new; the others were there from a submission that was interrupted."""


class BatchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the jobs of a batch are. A redriven job counts as one more."""

    id: str
    states: Mapping[State, int]
    """Every state, zeros included."""

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def ended(self) -> int:
        return sum(self.states[state] for state in TERMINAL)

    @property
    def running(self) -> int:
        return sum(self.states[state] for state in LEASED)

    @property
    def waiting(self) -> int:
        return self.total - self.ended - self.running

    @property
    def completed(self) -> int:
        return self.states[State.COMPLETED]

    @property
    def fraction(self) -> float:
        """How much has ended, 0 to 1. An empty batch is done."""
        return self.ended / self.total if self.total else 1.0

    @property
    def done(self) -> bool:
        return self.ended == self.total

    @property
    def outcomes(self) -> dict[str, int]:
        """How many ended in each way."""
        return {state.value: self.states[state] for state in State if state in TERMINAL}


async def progress(context: Context, batch_id: str) -> BatchProgress:
    """Counted now; BatchNotFound when there is no job of that batch."""
    found = await count(context, validation.check_id(batch_id), context.tenant)
    if not found.total:
        raise BatchNotFound(batch_id)
    return found


async def count(context: Context, batch_id: str, tenant: str | None) -> BatchProgress:
    tallies = await context.store.count(
        context.now(), tenant=tenant, tags=(Role.MEMBER.of(batch_id),)
    )
    states = dict.fromkeys(State, 0)
    for tally in tallies:
        states[tally.state] += tally.jobs
    return BatchProgress(id=batch_id, states=states)


async def watch(
    context: Context, batch_id: str, *, timeout_seconds: float | None
) -> AsyncIterator[BatchProgress]:
    """How far it is, again and again as that changes, until it is done or the time is over."""
    end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    last: BatchProgress | None = None
    while True:
        seen = await context.store.tail()
        start = time.monotonic()
        found = await progress(context, batch_id)
        spent = time.monotonic() - start
        if found != last:
            last = found
            yield found
        if found.done:
            return
        # A busy log grows all the time, and most of it is of other jobs.
        pause = min(spent / LOOK_SHARE, LOOK_PAUSE_SECONDS_MAX)
        left = LOOK_SECONDS
        if end is not None:
            remaining = end - time.monotonic()
            if remaining <= 0:
                return
            left, pause = min(left, remaining), min(pause, remaining)
        await context.store.wait(seen, left)
        await asyncio.sleep(pause)


async def submit_batch(
    context: Context, specs: Sequence[JobSpec], callback: JobSpec | None, batch_id: str | None
) -> Batch:
    """Store the batch: in one step, or piece by piece if it is larger than one step may be.

    With a `batch_id` it may be repeated at any time, after a crash half way too: what is stored already
    is found again. Every job is checked before the first is stored.
    """
    validation.check_limit(
        len(specs), "the number of jobs in a batch", minimum=0, maximum=MEMBERS_MAX
    )
    plan = _Plan(context, specs, callback, batch_id)
    if len(specs) <= PIECE_JOBS:
        return await _store_at_once(context, plan)
    if batch_id is None:
        raise InvalidInput(
            f"a batch of more than {PIECE_JOBS} jobs is stored piece by piece: give it a batch_id, so that "
            f"it can be repeated if it is interrupted; {validation.UNCHANGED}"
        )
    return await _store_in_pieces(context, plan)


async def _store_at_once(context: Context, plan: _Plan) -> Batch:
    members = plan.members(0)
    joins = plan.joins(members, 0) if len(members) > graph.DEPENDENCIES_MAX else []
    waits = [Dependency(join.job.id) for join in joins] or [_ended(one.job.id) for one in members]
    callback = plan.callback(waits)
    stored = await store_drafts(context, [*members, *joins, *callback])
    return _batch(plan, stored.jobs[: len(members)], stored.created, stored.jobs[len(members) :])


async def _store_in_pieces(context: Context, plan: _Plan) -> Batch:
    plan.check()
    jobs: list[Job] = []
    created: list[bool] = []
    waits: list[Dependency] = []
    for start in plan.pieces:
        members = plan.members(start)
        stored = await store_drafts(context, [*members, *plan.joins(members, start)])
        jobs += stored.jobs[: len(members)]
        created += stored.created[: len(members)]
        waits += (Dependency(join.id) for join in stored.jobs[len(members) :])
    callback = await store_drafts(context, plan.callback(waits))
    return _batch(plan, jobs, created, callback.jobs)


def _batch(
    plan: _Plan, jobs: Sequence[Job], created: Sequence[bool], gates: Sequence[Job]
) -> Batch:
    return Batch(
        id=plan.id,
        job_ids=tuple(job.id for job in jobs),
        callback_id=gates[-1].id if gates else None,
        created=sum(created[: len(jobs)]),
    )


class _Plan:
    """The drafts of one batch. Keys let a repeated submission find what the first one stored."""

    def __init__(
        self,
        context: Context,
        specs: Sequence[JobSpec],
        callback: JobSpec | None,
        batch_id: str | None,
    ) -> None:
        self.id = new_id() if batch_id is None else validation.check_id(batch_id)
        self.pieces = range(0, len(specs), PIECE_JOBS)
        self._repeatable = batch_id is not None
        self._context = context
        self._specs = specs
        self._callback = None if callback is None else _callback(callback, specs)

    def check(self) -> None:
        """Raise what is wrong with any of the jobs."""
        named = Counter(getattr(one, "id", None) for one in self._specs)
        del named[None]
        twice = [job_id for job_id, times in named.items() if times > 1]
        if twice:
            raise DuplicateJob(f"id {twice[0]} stands twice in the batch; {validation.UNCHANGED}")
        for start in self.pieces:
            self.members(start)
        self.callback([])

    def members(self, start: int) -> list[Draft]:
        """The jobs of the piece that starts here."""
        piece = self._specs[start : start + PIECE_JOBS]
        named = [self._member(one, start + offset) for offset, one in enumerate(piece)]
        return _for_good(draft_all(self._context, named, first=start, of=len(self._specs)))

    def joins(self, members: Sequence[Draft], start: int) -> list[Draft]:
        """The joins of one piece; none if there is no callback to wait for them."""
        if self._callback is None:
            return []
        width = graph.DEPENDENCIES_MAX
        specs = [
            JobSpec(
                type=JOIN_TYPE,
                queue=self._callback.queue,
                tenant=self._callback.tenant,
                tags=[Role.JOIN.of(self.id), graph.GATHERS],
                after=[_ended(one.job.id) for one in members[first : first + width]],
                key=self._key(f"join:{start + first}"),
                max_attempts=None,
                lifetime_seconds=None,
            )
            for first in range(0, len(members), width)
        ]
        return _for_good(draft_all(self._context, specs, own_ids=True))

    def callback(self, after: Sequence[Dependency]) -> list[Draft]:
        if self._callback is None:
            return []
        spec = lasting(tagged(self._callback, Role.CALLBACK.of(self.id), graph.GATHERS))
        spec = replace(spec, after=after, key=self._key("callback"))
        return _for_good(draft_all(self._context, [spec]))

    def _member(self, given: object, index: int) -> JobSpec:
        try:
            if not isinstance(given, JobSpec):
                raise InvalidInput(
                    f"{validation.told(given)} is not a JobSpec; {validation.UNCHANGED}"
                )
            if given.key is not None or given.key_hold_seconds is not None:
                raise InvalidInput(
                    "a job of a batch has no key of its own: give the batch an id, and repeat it; "
                    f"{validation.UNCHANGED}"
                )
            spec = tagged(given, Role.MEMBER.of(self.id))
        except HeadraceError as error:
            raise in_batch(index, error, of=len(self._specs)) from error
        return replace(spec, key=self._key(str(index)))

    def _key(self, what: str) -> str | None:
        return f"batch:{self.id}:{what}" if self._repeatable else None


def _callback(given: object, specs: Sequence[JobSpec]) -> JobSpec:
    """The callback as submitted, of the tenant of its batch."""
    if not isinstance(given, JobSpec):
        raise InvalidInput(
            f"the callback {validation.told(given)} is not a JobSpec; {validation.UNCHANGED}"
        )
    refuse_own_ties(given, "the callback of a batch")
    return replace(
        given, tenant=given.tenant or (getattr(specs[0], "tenant", None) if specs else None)
    )


def _for_good(drafts: Sequence[Draft]) -> list[Draft]:
    """With keys that hold for as long as the jobs are there."""
    rule = KeyRule(window_seconds=None, released_when_terminal=False)
    return [replace(draft, key_rule=rule) for draft in drafts]


def _ended(job_id: str) -> Dependency:
    return Dependency(job_id, DependencyKind.AFTER_ANY)
