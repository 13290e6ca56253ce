"""Submitting jobs: alone, in batches, and from inside a running job. All or nothing, order kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType

import msgspec

from headrace import completion, graph, lifecycle, spec, validation
from headrace.errors import (
    DependencyNotFound,
    DuplicateJob,
    HeadraceError,
    InvalidBatch,
    InvalidInput,
    StoreError,
    SubmissionTimeout,
)
from headrace.manager import admission
from headrace.manager.changes import ripple_or_leave
from headrace.manager.context import Context
from headrace.manager.placement import NO_KEY, Draft, KeyRule, place
from headrace.manager.records import Again, retried
from headrace.model import DEFAULT_TENANT, Job, fresh_ids
from headrace.policy import IdSource, OnDuplicateId, Policy
from headrace.spec import JobSpec, Template
from headrace.stores.base import Clash, Fence, Inserted, Insertion, KeyHold, KeyScope

BATCH_JOBS_MAX = 100_000
TEMPLATES_MAX = 1000
"""So many types of jobs are remembered; with more of them, all are checked anew."""

SUBMISSION_TIMEOUT_SECONDS = 30.0


class Submitted(msgspec.Struct, frozen=True):
    """One job per submitted description, in order: new, or the one that was there already."""

    jobs: tuple[Job, ...]
    created: tuple[bool, ...]

    @property
    def job(self) -> Job:
        """The only job, for calls that submit one."""
        (only,) = self.jobs
        return only


class acknowledged:  # noqa: N801 - read as a verb: `async with acknowledged(30):`
    """Wait for the store's word no longer than this. Raises SubmissionTimeout."""

    __slots__ = ("_seconds", "_timeout")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            raise self._unknown() from late
        if isinstance(error, TimeoutError):
            raise self._unknown() from error

    def _unknown(self) -> SubmissionTimeout:
        return SubmissionTimeout(
            f"no acknowledgment within {self._seconds:g} seconds; whether the jobs were stored is not known: "
            "submit again with the same idempotency key"
        )


async def submit(
    context: Context,
    specs: Sequence[JobSpec],
    *,
    spawner: Fence | None = None,
    own_ids: bool = False,
) -> Submitted:
    """Store every job or none. `spawner`: the lease of the running job that makes these.

    `own_ids`: Headrace itself has named these jobs, whoever names those that others submit.
    """
    validation.check_limit(
        len(specs), "the number of jobs in a batch", minimum=0, maximum=BATCH_JOBS_MAX
    )
    await context.synchronise()
    drafts = draft_all(context, specs, spawner=spawner, own_ids=own_ids)
    return await store_drafts(context, drafts, spawner=spawner)


def check(context: Context, spec: JobSpec, *, own_ids: bool = False) -> None:
    """Raise what submitting this job now would raise before the store is asked."""
    draft_all(context, [spec], own_ids=own_ids)


async def store_drafts(
    context: Context, drafts: Sequence[Draft], *, spawner: Fence | None = None
) -> Submitted:
    """Store every checked draft or none, finding those that are stored already."""
    if not drafts:
        return Submitted((), ())
    repeated: dict[str, Job] = {}

    async def once() -> Submitted:
        answer = await _attempt(context, drafts, repeated, spawner)
        if isinstance(answer, Submitted):
            return answer
        repeated.update(await _weigh(context, drafts, answer, spawner))
        raise Again

    return await retried(once, "the batch kept clashing with other writes; nothing was stored")


def draft_all(
    context: Context,
    specs: Sequence[JobSpec],
    *,
    spawner: Fence | None = None,
    own_ids: bool = False,
    first: int = 0,
    of: int | None = None,
) -> list[Draft]:
    """Every description checked, or the error that names the first bad one.

    `first`, `of`: where these stand in what the caller submitted.
    """
    now = context.now()
    parent_id = None if spawner is None else spawner.job_id
    drafts: list[Draft] = []
    ids: set[str] = set()
    fresh = fresh_ids(len(specs))
    for index, given in enumerate(specs):
        try:
            draft = None if spawner or own_ids else _alike(context, given, now, fresh)
            if draft is None:
                draft = draft_one(context, given, now, parent_id=parent_id, own_ids=own_ids)
            for one in draft.whole:
                if one.job.id in ids:
                    raise DuplicateJob(
                        f"id {one.job.id} stands twice in the batch; {validation.UNCHANGED}"
                    )
                ids.add(one.job.id)
        except HeadraceError as error:
            raise in_batch(first + index, error, of=of or len(specs)) from error
        drafts.append(draft)
    validation.check_limit(
        len(ids),
        "the number of jobs in a batch, with their hooks and webhooks,",
        minimum=0,
        maximum=BATCH_JOBS_MAX,
    )
    return drafts


def _alike(context: Context, given: object, now: datetime, fresh: Iterator[str]) -> Draft | None:
    """The draft of one that is like a job that was checked before. None: this one must be checked itself."""
    if type(given) is not JobSpec or type(given.type) is not str or type(given.queue) is not str:
        return None
    template = context.templates.get(given.type)
    if template is None or not template.fits(given, context.policy(given.queue)):
        return None
    like = template.at(now)
    return Draft(template.draft(given, like, fresh), (), NO_KEY, like=like)


def draft_one(
    context: Context,
    given: JobSpec,
    now: datetime,
    *,
    parent_id: str | None = None,
    own_ids: bool = False,
) -> Draft:
    """The checked job of one description, with all that is stored with it."""
    one = _spec(given)
    policy = context.policy(validation.check_name(one.queue, "queue"))
    if own_ids:
        policy = msgspec.structs.replace(policy, ids=IdSource.EITHER)
    job = spec.draft(one, policy, now, tenant=_tenant(context, one), parent_id=parent_id)
    dependencies = spec.dependencies(one)
    graph.check_width(job.id, len(dependencies))
    brought = completion.follow_ups(one, job, deliver=policy.deliver_callbacks)
    if parent_id is None and not own_ids:
        _remember(context, one, policy, job)
    return Draft(
        job,
        dependencies,
        _key_rule(one, policy),
        tuple(draft_one(context, rider, now) for rider in brought),
    )


def _remember(context: Context, given: JobSpec, policy: Policy, job: Job) -> None:
    """So that jobs like this one need not be checked again."""
    template = Template.of(given, policy, job)
    if template is not None:
        if len(context.templates) >= TEMPLATES_MAX:
            context.templates.clear()
        context.templates[job.type] = template


def _key_rule(one: JobSpec, policy: Policy) -> KeyRule:
    asked = spec.key_hold_seconds(one)
    if asked is not None:
        return KeyRule(asked, released_when_terminal=False)
    return KeyRule(policy.key_window_seconds, policy.key_released_when_terminal)


def _spec(given: object) -> JobSpec:
    if not isinstance(given, JobSpec):
        raise InvalidInput(f"{validation.told(given)} is not a JobSpec; {validation.UNCHANGED}")
    return given


def _tenant(context: Context, one: JobSpec) -> str:
    if context.tenant is None:
        return DEFAULT_TENANT if one.tenant is None else one.tenant
    if one.tenant is not None and validation.check_name(one.tenant, "tenant") != context.tenant:
        raise InvalidInput(
            f"the job names tenant {validation.told(one.tenant)}, which is not the caller's; "
            f"{validation.UNCHANGED}"
        )
    return context.tenant


async def _attempt(
    context: Context, drafts: Sequence[Draft], repeated: Mapping[str, Job], spawner: Fence | None
) -> Submitted | Clash:
    """One try to store what is new. `repeated`: jobs of the batch that are known to be stored."""
    now = context.now()
    twins, existing = await _twins(context, drafts, now)
    existing |= repeated
    there = {*repeated, *_holding_already(drafts, existing)} if existing else ()
    new = [
        one
        for draft in drafts
        if twins[draft.job.id] == draft.job.id and draft.job.id not in there
        for one in draft.whole
    ]
    placement = await place(context, new, twins, spawner)
    insertion = Insertion(
        jobs=[job for job, _ in placement.born],
        events=[event for _, event in placement.born],
        now=now,
        edges=placement.edges,
        parents=placement.parents,
        kin=placement.kin,
        keys=_holds(new, now),
        fence=spawner,
    )
    answer = await admission.insert(context, insertion) if new else Inserted(())
    if isinstance(answer, Clash):
        return answer
    stored = {job.id: job for job in answer.jobs}
    falling = [edge for edge in insertion.edges if edge.outcome is not None and not edge.seen]
    if falling:
        await ripple_or_leave(context, falling)
        stored |= await _as_now(context, list(stored))
    known = stored | existing
    return Submitted(
        tuple(known[twins[draft.job.id]] for draft in drafts),
        tuple(draft.job.id in stored for draft in drafts),
    )


async def _as_now(context: Context, ids: Sequence[str]) -> Mapping[str, Job]:
    """The stored jobs read again; nothing if the store does not answer, since they are stored anyway."""
    try:
        return await context.read(ids)
    except StoreError:
        return {}


async def _twins(
    context: Context, drafts: Sequence[Draft], now: datetime
) -> tuple[dict[str, str], dict[str, Job]]:
    """The id each draft goes by: its own, or that of the job, stored or drafted, with its key."""
    ids = [draft.job.id for draft in drafts]
    scopes = {draft.job.id: _scope(draft.job) for draft in drafts if draft.job.key is not None}
    if not scopes:
        return dict(zip(ids, ids, strict=True)), {}
    held = await context.store.keyed(list(dict.fromkeys(scopes.values())), now)
    existing = dict(await context.store.get(list(held.values())))
    holder = {scope: job_id for scope, job_id in held.items() if job_id in existing}
    twins = {}
    for draft in drafts:
        own = draft.job.id
        twins[own] = holder.setdefault(scopes[own], own) if own in scopes else own
    return twins, existing


def _holding_already(drafts: Sequence[Draft], existing: Mapping[str, Job]) -> list[str]:
    """Drafts with both the id and the key of a stored job: the same job, submitted again."""
    return [
        draft.job.id
        for draft in drafts
        if draft.job.key is not None
        and (stored := existing.get(draft.job.id)) is not None
        and stored.key is not None
        and _scope(stored) == _scope(draft.job)
    ]


async def _weigh(
    context: Context, drafts: Sequence[Draft], clash: Clash, spawner: Fence | None
) -> Mapping[str, Job]:
    """What a clash means: an error, or another try (with these jobs known to be stored)."""
    if clash.fence and spawner is not None:
        job = await context.read_one(spawner.job_id)
        lifecycle.check_lease(job, spawner.token, context.now())
    if clash.parents:
        gone = set(clash.parents) - (await context.read(clash.parents)).keys()
        if gone:
            raise DependencyNotFound(f"job {min(gone)} is gone; {validation.UNCHANGED}")
    stored = await context.read(clash.ids)
    clashing = set(clash.ids)
    for index, draft in enumerate(drafts):
        repeatable = context.policy(draft.job.queue).on_duplicate_id is OnDuplicateId.EXISTING
        if repeatable and draft.job.id in stored:
            continue  # and so are its riders
        taken = [one.job.id for one in draft.whole if one.job.id in clashing]
        if taken:
            error = DuplicateJob(
                f"a job with id {taken[0]} is stored already; {validation.UNCHANGED}"
            )
            raise in_batch(index, error, of=len(drafts))
    return stored


def _holds(new: Sequence[Draft], now: datetime) -> list[KeyHold]:
    holds = []
    for draft in new:
        if draft.job.key is not None:
            window = draft.key_rule.window_seconds
            until = None if window is None else now + timedelta(seconds=window)
            holds.append(
                KeyHold(
                    _scope(draft.job), draft.job.id, until, draft.key_rule.released_when_terminal
                )
            )
    return holds


def _scope(job: Job) -> KeyScope:
    assert job.key is not None
    return KeyScope(job.tenant, job.queue, job.type, job.key)


def in_batch(index: int, error: HeadraceError, *, of: int) -> HeadraceError:
    """The same error for a lone job; for one of many, an error that says which."""
    if of == 1:
        return error
    return InvalidBatch(f"job {index} of the batch: {error.message}", index=index, cause=error)
