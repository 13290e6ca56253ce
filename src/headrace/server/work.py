"""Handlers of the routes of workers. Each write shows the token of the lease that it is fenced by."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from headrace import lifecycle, validation
from headrace.api import problems
from headrace.api import work as api
from headrace.api.jobs import JobAnswer, SubmittedAnswer, job_answer
from headrace.api.route import LEASE_HEADER
from headrace.api.submissions import content_of, spec_of
from headrace.errors import HeadraceError, InvalidLimit, InvalidRequest
from headrace.manager import (
    CancelAcknowledged,
    Changed,
    Claimed,
    Completed,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Stopped,
    settlement,
)
from headrace.model import Event, Lease
from headrace.server.call import Call, Handlers

CLAIM_SECONDS_MAX = 30.0
LEASES_MAX = 10_000


async def claim(call: Call[None, api.ClaimBody]) -> api.ClaimedAnswer:
    body = call.body
    if not 0 <= body.wait_seconds <= CLAIM_SECONDS_MAX:
        raise InvalidLimit(f"a claim waits 0 to {CLAIM_SECONDS_MAX:g} seconds; nothing was claimed")
    most = call.service.bounds.batch_jobs_max
    limit = validation.check_limit(body.limit, "limit", maximum=most)
    manager = call.manager

    async def once() -> Claimed:
        claiming = asyncio.ensure_future(
            manager.claim_ahead(
                body.worker,
                queues=body.queues,
                types=body.types,
                tags=body.tags,
                limit=limit,
                tenant=body.tenant,
                lease_seconds=body.lease_seconds,
                due_by=body.due_by,
                look_ahead=body.look_ahead or body.wait_seconds > 0,
                slots=body.slots,
                busy=body.busy,
            )
        )
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # Whoever asked has gone: what was leased for nobody goes to others.
            with contextlib.suppress(HeadraceError):
                for job in (await claiming).jobs:
                    await manager.release(job.id, job.token)
            raise

    claimed = await call.service.hub.claim(
        once,
        _takes(body, manager.tenant or body.tenant),
        body.wait_seconds,
        lambda: manager.clock.now().timestamp(),
    )
    return api.ClaimedAnswer(
        jobs=tuple(api.claimed_job(job) for job in claimed.jobs),
        next_at=claimed.next_at,
        at=manager.clock.now(),
    )


def _takes(body: api.ClaimBody, tenant: str | None) -> Callable[[Event], bool]:
    """Whether an event may concern this claim. Tags are left to the claim itself."""

    def takes(event: Event) -> bool:
        return (
            tenant in (None, event.tenant)
            and (body.queues is None or event.queue in body.queues)
            and (body.types is None or event.type in body.types)
        )

    return takes


async def announce(call: Call[None, api.AnnounceBody]) -> None:
    body = call.body
    await call.manager.announce(
        body.worker,
        queues=body.queues,
        types=body.types,
        tags=body.tags,
        slots=body.slots,
        busy=body.busy,
        process=body.process,
    )


async def heartbeat(call: Call[None, api.HeartbeatBody]) -> api.HeartbeatAnswer:
    held = [
        Lease(
            validation.check_id(one.job_id),
            one.lease,
            None if one.seconds is None else validation.check_seconds(one.seconds, "seconds"),
        )
        for one in _bounded(call.body.leases)
    ]
    found = await call.manager.heartbeat(held)
    return api.HeartbeatAnswer(
        extended={
            job_id: api.ExtendedAnswer(state=one.state, lease_until=one.lease_until)
            for job_id, one in found.extended.items()
        },
        refused={
            job_id: problems.problem_of(error, call.root_path)
            for job_id, error in found.refused.items()
        },
        lost=tuple(
            api.HeldLease(job_id=one.job_id, lease=one.token, seconds=one.seconds)
            for one in found.lost
        ),
        at=call.manager.clock.now(),
    )


async def check(call: Call[None, api.HeartbeatBody]) -> api.CheckedAnswer:
    held = [Lease(validation.check_id(one.job_id), one.lease) for one in _bounded(call.body.leases)]
    return api.CheckedAnswer(held=await call.manager.held(held))


async def hook(call: Call[None, None]) -> api.HookAnswer:
    """What it is told may be the result of another job: only its holder is told it."""
    job = await call.manager.get(call["job_id"])
    lifecycle.check_lease(job, _lease(call), call.manager.clock.now())
    found = await call.manager.hook_call(job)
    if found is None:
        return api.HookAnswer(wanted=True, note="it follows nothing", about={})
    return api.HookAnswer(wanted=found.wanted, note=found.note, about=found.about)


async def settle(call: Call[None, api.SettleBody]) -> api.SettledAnswer:
    outcomes = _bounded(call.body.outcomes)
    settled = await call.manager.settle([_outcome(call, one) for one in outcomes])
    told = []
    for outcome, answer in zip(outcomes, settled.outcomes, strict=True):
        if isinstance(answer, HeadraceError):
            problem = problems.problem_of(answer, call.root_path)
            one = api.SettledOne(job_id=outcome.job_id, state=None, job=None, problem=problem)
        else:
            job = job_answer(answer, contents=True) if call.body.jobs else None
            one = api.SettledOne(job_id=answer.id, state=answer.state, job=job, problem=None)
        told.append(one)
    return api.SettledAnswer(outcomes=tuple(told), freed=settled.freed)


def _bounded(given: tuple[Any, ...]) -> tuple[Any, ...]:
    validation.check_limit(len(given), "the number of leases", minimum=0, maximum=LEASES_MAX)
    return given


def _outcome(call: Call[Any, Any], given: api.Outcome) -> Outcome:
    job_id, token = given.job_id, given.lease
    match given:
        case api.Completed():
            result = content_of(given.result, "result")
            return Completed(job_id=job_id, token=token, result=result)
        case api.Failed():
            failure = settlement.failure_of(given.message, category=given.category, code=given.code)
            return Failed(
                job_id=job_id,
                token=token,
                failure=failure,
                retry_after=given.retry_after,
                retry_at=given.retry_at,
            )
        case api.Snoozed():
            now = call.manager.clock.now()
            until = settlement.later(now, until=given.until, seconds=given.seconds)
            return Snoozed(job_id=job_id, token=token, until=until)
        case api.Released():
            return Released(job_id=job_id, token=token)
        case api.Stopped():
            return Stopped(job_id=job_id, token=token, message=given.message)
        case api.CancelAcknowledged():
            return CancelAcknowledged(job_id=job_id, token=token, was_executing=given.was_executing)
        case _:
            assert_never(given)


async def complete(call: Call[None, api.CompleteBody]) -> JobAnswer:
    result = content_of(call.body.result, "result")
    return _changed(await call.manager.complete(call["job_id"], _lease(call), result))


async def fail(call: Call[None, api.FailBody]) -> JobAnswer:
    body = call.body
    changed = await call.manager.fail(
        call["job_id"],
        _lease(call),
        body.message,
        category=body.category,
        code=body.code,
        retry_after=body.retry_after,
        retry_at=body.retry_at,
    )
    return _changed(changed)


async def snooze(call: Call[None, api.SnoozeBody]) -> JobAnswer:
    body = call.body
    return _changed(
        await call.manager.snooze(
            call["job_id"], _lease(call), until=body.until, seconds=body.seconds
        )
    )


async def release(call: Call[None, None]) -> JobAnswer:
    return _changed(await call.manager.release(call["job_id"], _lease(call)))


async def stop(call: Call[None, api.StopBody]) -> JobAnswer:
    return _changed(await call.manager.stop(call["job_id"], _lease(call), call.body.message))


async def acknowledge(call: Call[None, api.AcknowledgeBody]) -> JobAnswer:
    return _changed(
        await call.manager.acknowledge_cancel(
            call["job_id"], _lease(call), was_executing=call.body.was_executing
        )
    )


async def progress(call: Call[None, api.ProgressBody]) -> None:
    body = call.body
    await call.manager.progress(call["job_id"], _lease(call), body.fraction, body.note)


async def checkpoint(call: Call[None, api.CheckpointBody]) -> None:
    value = content_of(call.body.value, "checkpoint")
    await call.manager.checkpoint(call["job_id"], _lease(call), value)


async def log(call: Call[None, api.LogBody]) -> None:
    lines = [msgspec.json.decode(line) for line in call.body.lines]
    await call.manager.keep_log(call["job_id"], _lease(call), lines)


async def spawn(call: Call[None, api.SpawnBody]) -> SubmittedAnswer:
    specs = [spec_of(one) for one in call.body.jobs]
    submitted = await call.manager.spawn(call["job_id"], _lease(call), specs)
    jobs = tuple(job_answer(job, contents=True) for job in submitted.jobs)
    return SubmittedAnswer(jobs=jobs, created=submitted.created)


def _lease(call: Call[Any, Any]) -> str:
    """A worker touches only what it leases, also where its queue asks for no token."""
    token = call.request.headers.get(LEASE_HEADER)
    if not token:
        raise InvalidRequest(f"show the token of the lease: {LEASE_HEADER}; nothing was changed")
    return token


def _changed(changed: Changed) -> JobAnswer:
    """Of a job that it held: the worker knows what is in it."""
    return job_answer(changed.job, contents=True)


HANDLERS: Handlers = {
    api.CLAIM: claim,
    api.ANNOUNCE: announce,
    api.HEARTBEAT: heartbeat,
    api.CHECK: check,
    api.HOOK: hook,
    api.SETTLE: settle,
    api.COMPLETE: complete,
    api.FAIL: fail,
    api.SNOOZE: snooze,
    api.RELEASE: release,
    api.STOP: stop,
    api.ACKNOWLEDGE: acknowledge,
    api.PROGRESS: progress,
    api.CHECKPOINT: checkpoint,
    api.LOG: log,
    api.SPAWN: spawn,
}
