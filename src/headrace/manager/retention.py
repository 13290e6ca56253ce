"""The end of ended jobs: deleting them, clearing out the old ones, running failed ones again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from headrace import codec, completion
from headrace.envelope import is_sealed, told, unpack
from headrace.errors import (
    CannotDecrypt,
    InvalidTransition,
    JobNotFound,
    NotTerminal,
)
from headrace.manager.context import Context
from headrace.manager.placement import Draft, KeyRule
from headrace.manager.records import Again, retried
from headrace.manager.selection import Selection, select
from headrace.manager.submission import Submitted, draft_one, store_drafts
from headrace.model import TERMINAL, Dependency, Job, State, new_id
from headrace.stores.base import KeyScope, Query

BATCH_JOBS = 1000
REDRIVABLE = frozenset({State.FAILED, State.DEAD, State.CANCELLED})


async def delete(context: Context, chosen: Selection) -> tuple[Job, ...]:
    """Delete ended jobs: all that were meant, or none. Unknown ids are passed over."""

    async def once() -> tuple[Job, ...]:
        jobs = (await select(context, chosen)).jobs
        live = [job for job in jobs if not job.is_terminal]
        if live:
            raise NotTerminal(
                f"{len(live)} of {len(jobs)} jobs have not ended (job {live[0].id} is {live[0].state}); "
                "nothing was deleted",
                job_id=live[0].id,
            )
        if jobs and not await context.store.delete({job.id: job.version for job in jobs}):
            raise Again
        return jobs

    return await retried(once, "the jobs kept changing; nothing was deleted")


async def cleanup(
    context: Context, *, keep: dict[State, float | None] | None, limit: int
) -> dict[State, int]:
    """Delete ended jobs past their keep time. `keep` (seconds by state) overrides the policies.

    Batch by batch, so that it can be stopped at any time; how many went, by state.
    """
    deleted: dict[State, int] = {}
    for state, seconds, queues in await _keep_times(context, keep):
        before = context.now() - timedelta(seconds=seconds)
        while (left := limit - sum(deleted.values())) > 0:
            gone = await _delete_old(context, state, before, queues, min(BATCH_JOBS, left))
            if not gone:
                break
            deleted[state] = deleted.get(state, 0) + gone
    return deleted


async def redrive(
    context: Context, chosen: Selection, payload: object | UnsetType = UNSET
) -> Submitted:
    """Submit failed, dead or cancelled jobs again, as new jobs linked to the old by previous_id.

    While the new job is alive, redriving the old one again gives that same new job. Once it has ended, it
    stands for the old one: tags choose it by itself, and the old one only if it is named.
    """
    selected = await select(context, chosen)
    if selected.not_found:
        raise JobNotFound(selected.not_found[0])
    jobs = [job for job in selected.jobs if job.id in chosen.ids or job.state in REDRIVABLE]
    by_tag = [job for job in jobs if job.id not in chosen.ids]
    done = {job_id for job_id, heir in (await heirs(context, by_tag)).items() if heir.is_terminal}
    jobs = [job for job in jobs if job.id not in done]
    for job in jobs:
        if job.state not in REDRIVABLE:
            raise InvalidTransition(
                f"job {job.id} is {job.state}; only failed, dead and cancelled jobs can be redriven; "
                "nothing was submitted",
                job_id=job.id,
            )

    def given(job: Job) -> bytes:
        limit = context.policy(job.queue).payload_bytes_max
        return codec.encode(payload, what="payload", limit=limit)

    return await run_again(context, jobs, payload_of=None if payload is UNSET else given)


async def run_again(
    context: Context,
    jobs: Sequence[Job],
    *,
    tags: Sequence[str] = (),
    payload_of: Callable[[Job], bytes] | None = None,
) -> Submitted:
    """Submit these jobs again, each under the key of the last that was made of it.

    With `tags` besides their own, and with the payload that `payload_of` makes of the old job.
    """
    now = context.now()
    keys = await _keys(context, jobs)
    drafts = [await _with_riders(context, job, now, key=keys[job.id]) for job in jobs]
    if tags or payload_of is not None:
        drafts = [
            replace(draft, job=_changed(job, draft.job, tags, payload_of))
            for job, draft in zip(jobs, drafts, strict=True)
        ]
    return await store_drafts(context, drafts)


def _changed(
    old: Job, fresh: Job, tags: Sequence[str], payload_of: Callable[[Job], bytes] | None
) -> Job:
    return replace(
        fresh,
        tags=tuple(sorted({*fresh.tags, *tags})),
        payload_json=fresh.payload_json if payload_of is None else payload_of(old),
    )


async def heirs(context: Context, jobs: Sequence[Job]) -> dict[str, Job]:
    """The job that was made of each first, by the id of the old one: those there are, alive or ended."""
    return await _holders(context, {job.id: (job, redrive_key(job.id)) for job in jobs})


async def latest_heirs(context: Context, jobs: Sequence[Job]) -> dict[str, Job]:
    """The same, but the last of the line that begins with it.

    A redrive keeps its key when its job ends, so that one can tell what was redriven already. What is made
    of the same job after that goes by the id of the one that ended: two at once are still one.
    """
    found: dict[str, Job] = {}
    keys = {job.id: (job, redrive_key(job.id)) for job in jobs}
    while keys:
        holders = await _holders(context, keys)
        found |= holders
        keys = {
            job_id: (keys[job_id][0], again_key(one.id))
            for job_id, one in holders.items()
            if one.is_terminal
        }
    return found


async def _holders(context: Context, keys: Mapping[str, tuple[Job, str]]) -> dict[str, Job]:
    """By the id of the old job, who holds the key; only what was made of it."""
    scopes = {
        job_id: KeyScope(job.tenant, job.queue, job.type, key)
        for job_id, (job, key) in keys.items()
    }
    held = await context.store.keyed(list(scopes.values()), context.now()) if scopes else {}
    jobs = await context.read(list(dict.fromkeys(held.values())))
    return {
        job_id: jobs[held[scope]]
        for job_id, scope in scopes.items()
        if scope in held and held[scope] in jobs and jobs[held[scope]].previous_id == job_id
    }


async def _keys(context: Context, jobs: Sequence[Job]) -> dict[str, str]:
    """What each of the jobs is redriven under."""
    latest = await latest_heirs(context, jobs)
    keys = {}
    for job in jobs:
        heir = latest.get(job.id)
        if heir is not None and not heir.is_terminal and heir.key is not None:
            keys[job.id] = heir.key  # it is the answer
        else:
            keys[job.id] = redrive_key(job.id) if heir is None else again_key(heir.id)
    return keys


async def _with_riders(context: Context, job: Job, now: datetime, *, key: str) -> Draft:
    """The job again, with its webhook and its hooks: whoever heard of its end hears of the new one's."""
    again = _again(job, now, key)
    deliver = context.policy(job.queue).deliver_callbacks
    told = [draft_one(context, one, now) for one in completion.webhooks(again.job, deliver=deliver)]
    return replace(again, riders=(*told, *await _hooks(context, job, again.job, now)))


async def _hooks(context: Context, old: Job, fresh: Job, now: datetime) -> list[Draft]:
    """The hooks of the old job for the fresh one."""
    edges = await context.store.edges(parent_id=old.id)
    children = await context.read([edge.child_id for edge in edges])
    hooks = []
    for edge in edges:
        child = children.get(edge.child_id)
        role = None if child is None else completion.hook_role(child, old.id)
        if child is not None and role is not None:
            again = await _with_riders(context, child, now, key=redrive_key(child.id))
            tags = {*child.tags, role.of(fresh.id)} - {role.of(old.id)}
            moved = replace(again.job, tags=tuple(sorted(tags)), key=None)
            needs = (Dependency(fresh.id, edge.kind),)
            hooks.append(replace(again, job=moved, dependencies=needs))
    return hooks


def redrive_key(job_id: str) -> str:
    """The idempotency key of the job that redriving this one makes."""
    return f"redrive:{job_id}"


def again_key(job_id: str) -> str:
    """That of the job that is made of the same one after this, which it was redriven as, has ended."""
    return f"redrive-after:{job_id}"


def _again(job: Job, now: datetime, key: str) -> Draft:
    """The job as it was first stored, whatever today's policy would say to it.

    Its key holds for as long as it is stored: redriving the old job while it lives gives this one.
    """
    lifetime = None if job.expires_at is None else job.expires_at - job.created_at
    fresh = Job(
        id=new_id(),
        tenant=job.tenant,
        queue=job.queue,
        type=job.type,
        tags=job.tags,
        payload_json=_payload_of(job),
        priority=job.priority,
        created_at=now,
        key=key,
        limit_key=job.limit_key,
        previous_id=job.id,
        correlation_id=job.correlation_id,
        callback_url=job.callback_url,
        max_attempts=job.max_attempts,
        lease_seconds=job.lease_seconds,
        timeout_seconds=job.timeout_seconds,
        expires_at=None if lifetime is None else now + lifetime,
        backoff_json=job.backoff_json,
        state=State.PENDING,
        run_at=now,
        updated_at=now,
    )
    return Draft(fresh, (), KeyRule(window_seconds=None, released_when_terminal=False))


def _payload_of(job: Job) -> bytes:
    """The payload, for another job: encrypted contents are bound to theirs."""
    if is_sealed(job.payload_json):
        body = unpack(job.payload_json)
        raise CannotDecrypt(
            f"the payload of job {job.id} is {told(body)}; a new job would need it, so nothing was submitted",
            key_id=body.key,
            why=body.why or "the key is not in the ring",
        )
    return job.payload_json


async def _keep_times(
    context: Context, keep: dict[State, float | None] | None
) -> list[tuple[State, float, Sequence[str] | None]]:
    """(state, seconds to keep, queues or None for all)."""
    if keep is not None:
        return [(state, seconds, None) for state, seconds in keep.items() if seconds is not None]
    tallies = await context.store.count(context.now(), tenant=context.tenant)
    times: list[tuple[State, float, Sequence[str] | None]] = []
    for queue in sorted({tally.queue for tally in tallies}):
        policy = context.policy(queue)
        for state in sorted(TERMINAL):
            done = state is State.COMPLETED
            seconds = policy.keep_completed_seconds if done else policy.keep_other_seconds
            if seconds is not None:
                times.append((state, seconds, (queue,)))
    return times


async def _delete_old(
    context: Context, state: State, before: datetime, queues: Sequence[str] | None, count: int
) -> int:
    jobs = await context.store.find(
        Query(
            tenant=context.tenant,
            states=(state,),
            queues=queues,
            finalized_before=before,
            limit=count,
        )
    )
    if not jobs or not await context.store.delete({job.id: job.version for job in jobs}):
        return 0
    return len(jobs)
