"""Claiming jobs, and what their holder writes while it holds them: heartbeats, progress, checkpoints."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET

from headrace import codec, lifecycle, validation
from headrace.duration import Seconds
from headrace.errors import HeadraceError, InvalidLimit, JobNotFound, LeaseExpired
from headrace.manager import deadlines, limits, presence
from headrace.manager.context import Context
from headrace.model import Job, Lease, State
from headrace.stores.base import ClaimRequest, Extended, Fence, Note, WorkerProcess, WorkerSeen

CLAIM_LIMIT_MAX = 10_000
ANNOUNCE_SECONDS = 5.0
"""A worker's presence is written down at most this often."""
FORGET_SECONDS = 60.0
"""A worker that has not asked for so long starts anew."""
NOTE_CHARS_MAX = 1000


class Heartbeats(msgspec.Struct, frozen=True):
    """The leases that go on, and why the others do not.

    A worker that claimed the same job again names two leases of it; then the job may stand in both.
    """

    extended: Mapping[str, Extended]
    """By job id; a state of cancelling tells the worker to stop."""
    refused: Mapping[str, HeadraceError]
    lost: tuple[Lease, ...] = ()
    """The leases that do not hold, as they were given."""


class Claimed(msgspec.Struct, frozen=True):
    """What a claim took, and when it is worth while to claim again."""

    jobs: tuple[Job, ...]
    next_at: datetime | None = None
    """When a limit has the next token, or (if the claim looked ahead) the next job becomes due, whichever
    is sooner. None: nothing that is known waits for its time. New jobs announce themselves in the log."""


class Claims:
    """Claims jobs, and remembers when each worker's presence was last written down."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._announced: dict[str, WorkerSeen] = {}
        self._limited_first = False

    async def claim(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None,
        types: Iterable[str] | None,
        tags: Iterable[str] | Mapping[str, object],
        limit: int,
        lease_seconds: Seconds | None,
        due_by: datetime | None,
        look_ahead: bool = False,
        slots: int | None = None,
        busy: int | None = None,
    ) -> Claimed:
        context = self._context
        await context.synchronise()
        request = ClaimRequest(
            worker=validation.check_name(worker, "worker"),
            now=context.now(),
            limit=validation.check_limit(limit, "limit", maximum=CLAIM_LIMIT_MAX),
            nonce=secrets.token_hex(8),
            tenant=context.tenant,
            queues=validation.check_names(queues, "queue"),
            types=validation.check_names(types, "type"),
            tags=validation.check_tags(tags),
            lease_seconds=None
            if lease_seconds is None
            else validation.check_seconds(lease_seconds, "lease_seconds"),
            due_by=None if due_by is None else validation.check_time(due_by, "due_by"),
        )
        await self._announce(_seen(request, slots, busy))
        # They take turns, so that neither queues with limits nor those without starve the others.
        self._limited_first = not self._limited_first
        found = await limits.claim(context, request, limited_first=self._limited_first)
        next_at = found.next_at
        if look_ahead and len(found.jobs) < request.limit:
            # By the time of the claim, not by now: what has become due since is due at once.
            due_at = await context.store.next_due(request)
            next_at = min(filter(None, (next_at, due_at)), default=None)
        return Claimed(tuple(found.jobs), next_at)

    async def announce(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None,
        types: Iterable[str] | None,
        tags: Iterable[str] | Mapping[str, object],
        slots: int | None,
        busy: int | None,
        process: WorkerProcess | None,
    ) -> None:
        context = self._context
        await context.synchronise()
        await self._announce(
            WorkerSeen(
                worker=validation.check_name(worker, "worker"),
                seen_at=context.now(),
                tenant=context.tenant,
                queues=validation.check_names(queues, "queue"),
                types=validation.check_names(types, "type"),
                tags=validation.check_tags(tags),
                slots=_count(slots, "slots", least=1),
                busy=_count(busy, "busy", least=0),
                process=process,
            )
        )

    async def _announce(self, asked: WorkerSeen) -> None:
        """So that `explain` can tell a queue that nobody asks for from one that is only busy.

        A worker that asks for several things in turn is written down as asking for all of them.
        """
        last = self._announced.get(asked.worker)
        if asked.process is None and last is not None:
            asked = msgspec.structs.replace(asked, process=last.process)
        seen = asked if last is None or _age(last, asked) >= FORGET_SECONDS else _both(last, asked)
        if (
            last is not None
            and 0 <= _age(last, asked) < ANNOUNCE_SECONDS
            # How many handlers run changes with every job: it is no reason to write more often.
            and msgspec.structs.replace(seen, seen_at=last.seen_at, busy=last.busy) == last
        ):
            return
        self._announced[asked.worker] = seen
        await presence.announce(self._context.store, seen)


def _seen(request: ClaimRequest, slots: int | None, busy: int | None) -> WorkerSeen:
    return WorkerSeen(
        worker=request.worker,
        seen_at=request.now,
        tenant=request.tenant,
        queues=request.queues,
        types=request.types,
        tags=request.tags,
        slots=_count(slots, "slots", least=1),
        busy=_count(busy, "busy", least=0),
    )


def _count(value: int | None, what: str, *, least: int) -> int | None:
    return None if value is None else validation.check_limit(value, what, minimum=least)


def _age(last: WorkerSeen, now: WorkerSeen) -> float:
    return (now.seen_at - last.seen_at).total_seconds()


def _both(last: WorkerSeen, now: WorkerSeen) -> WorkerSeen:
    """What matches either of the two, and perhaps a little more."""
    return msgspec.structs.replace(
        now,
        tenant=now.tenant if last.tenant == now.tenant else None,
        queues=_union(last.queues, now.queues),
        types=_union(last.types, now.types),
        tags=tuple(tag for tag in now.tags if tag in last.tags),
    )


def _union(one: Sequence[str] | None, other: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(sorted({*one, *other}))


async def heartbeat(context: Context, leases: Sequence[Lease]) -> Heartbeats:
    """Extend many leases in one step. Those that do not hold are explained, not raised."""
    await context.synchronise()
    fences = {
        Fence(lease.job_id, lease.token): None
        if lease.seconds is None
        else validation.check_seconds(lease.seconds, "the seconds of a lease")
        for lease in leases
    }
    mine = await _visible(context, fences)
    extended = {}
    if mine:
        answer = await context.store.extend(mine, context.now())
        extended = {one.job_id: one for one in answer}
    # Of several leases of one job at most one holds: the stored token says which.
    named = Counter(fence.job_id for fence in fences)
    unsure = [fence for fence in fences if fence.job_id not in extended or named[fence.job_id] > 1]
    jobs = await context.read(list(dict.fromkeys(fence.job_id for fence in unsure)))
    missing = {
        fence: _why_not(context, job, fence)
        for fence in unsure
        if (job := jobs.get(fence.job_id)) is None
        or fence.job_id not in extended
        or job.token != fence.token
    }
    refused = {fence.job_id: error for fence, error in missing.items()}
    if late := [job_id for job_id, error in refused.items() if isinstance(error, LeaseExpired)]:
        await deadlines.enforce(context, late)
    return Heartbeats(
        extended,
        refused,
        tuple(lease for lease in leases if Fence(lease.job_id, lease.token) in missing),
    )


async def _visible(
    context: Context, fences: Mapping[Fence, float | None]
) -> Mapping[Fence, float | None]:
    """The leases of jobs that this manager may see."""
    if context.tenant is None:
        return fences
    own = await context.read([fence.job_id for fence in fences])
    return {fence: seconds for fence, seconds in fences.items() if fence.job_id in own}


async def held_leases(context: Context, leases: Sequence[Lease]) -> Mapping[str, State]:
    """One read: the states of the jobs whose leases hold."""
    jobs = await context.read(list(dict.fromkeys(lease.job_id for lease in leases)))
    now = context.now()
    return {
        lease.job_id: job.state
        for lease in leases
        if (job := jobs.get(lease.job_id)) is not None
        and job.token == lease.token
        and (job.lease_until is None or now < job.lease_until)
    }


async def annotate(
    context: Context,
    lease: Fence,
    *,
    progress: float | None = None,
    note: str | None = None,
    checkpoint: object = UNSET,
    log: object = UNSET,
) -> None:
    """Write progress, a checkpoint or the log lines, or raise why the lease's holder may not."""
    async with deadlines.enforced(context, lease.job_id):
        job = await context.read_one(lease.job_id)
        lifecycle.check_lease(job, lease.token, context.now())
        if progress is not None and not _is_fraction(progress):
            raise InvalidLimit(
                f"progress is {progress}; it must be from 0 to 1; nothing was changed"
            )
        limit = context.policy(job.queue).payload_bytes_max
        said = Note(
            progress=progress,
            progress_note=None
            if note is None
            else validation.check_text(note, "the note", NOTE_CHARS_MAX),
            checkpoint_json=None
            if checkpoint is UNSET
            else codec.encode(checkpoint, what="checkpoint", limit=limit),
            log_json=None if log is UNSET else codec.encode(log, what="log", limit=limit),
        )
        written = await context.store.annotate(
            lease, context.sealing.note(job, said), context.now()
        )
        if not written:
            raise _why_not(context, (await context.read([lease.job_id])).get(lease.job_id), lease)


def _is_fraction(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _why_not(context: Context, job: Job | None, fence: Fence) -> HeadraceError:
    """Why a lease does not hold, in the order of the contract."""
    if job is None:
        return JobNotFound(fence.job_id)
    try:
        lifecycle.check_lease(job, fence.token, context.now())
    except HeadraceError as error:
        return error
    # It holds now though it did not a moment ago: a clock that was set back. Ask again.
    return lifecycle.lease_expired(job, context.now())
