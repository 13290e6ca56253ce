"""Conformance Requirements: tenant isolation is absolute, on every method."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from headrace.contracts.conformance import (
    Backend,
    InvalidRequest,
    JobNotFound,
    LeaseToken,
    QueueCtx,
)
from headrace.testing.conformance.conformance.factories import (
    CTX,
    DEFAULT,
    STRANGER,
    assert_silent,
    create_test_job_message,
    dequeue,
    enqueue_and_dequeue,
    open_backend,
    receive_next_event,
)
from headrace.testing.conformance.conformance.suite import suite
from headrace.testing.conformance.kit import Env, raises

TENANTS = "5. Tenant isolation must be absolute"

Call = Callable[[Backend, str, LeaseToken], Awaitable[object]]

CALLS: dict[str, Call] = {
    "ack_complete": lambda backend, job_id, token: backend.ack_complete(STRANGER, job_id, token),
    "ack_fail, final": lambda backend, job_id, token: backend.ack_fail(
        STRANGER, job_id, token, "error"
    ),
    "heartbeat_extend": lambda backend, job_id, token: backend.heartbeat_extend(
        STRANGER, job_id, token, timedelta(hours=9)
    ),
    "cancel": lambda backend, job_id, _: backend.cancel(STRANGER, job_id),
    "get_status": lambda backend, job_id, _: backend.get_status(STRANGER, job_id),
    "get_record": lambda backend, job_id, _: backend.get_record(STRANGER, job_id),
}


async def refusal(call: Call, backend: Backend, job_id: str, token: LeaseToken) -> str:
    with raises(JobNotFound) as caught:
        await call(backend, job_id, token)
    return str(caught.error).replace(job_id, "<id>")


@suite.case(TENANTS, "on every method a foreign job answers word for word as an unknown one")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    job_id, token = leased.record.job_id, leased.lease_token
    for name, call in CALLS.items():
        foreign = await refusal(call, backend, job_id, token)
        unknown = await refusal(call, backend, "no-such-job", token)
        assert foreign == unknown, name
    assert await backend.get_record(CTX, job_id) == leased.record
    await backend.ack_complete(CTX, job_id, token)


@suite.case(TENANTS, "so it does when the foreign job waits, is retrying, or has ended")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    waiting = await backend.enqueue(CTX, create_test_job_message())
    retrying = await dequeue(backend)
    later = env.clock.now() + timedelta(hours=1)
    await backend.ack_fail(CTX, waiting, retrying.lease_token, "error", later)
    ended = await enqueue_and_dequeue(backend)
    await backend.ack_complete(CTX, ended.record.job_id, ended.lease_token)
    canceled = await backend.enqueue(CTX, create_test_job_message())
    await backend.cancel(CTX, canceled)
    fresh = await backend.enqueue(CTX, create_test_job_message())
    for job_id in (waiting, ended.record.job_id, canceled, fresh):
        before = await backend.get_record(CTX, job_id)
        for call in CALLS.values():
            await refusal(call, backend, job_id, LeaseToken.new())
        assert await backend.get_record(CTX, job_id) == before


@suite.case(TENANTS, "dequeue gives a tenant only its own jobs, under any load")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    tenants = [QueueCtx(f"tenant-{n}") for n in range(4)]
    owner: dict[str, QueueCtx] = {}
    for ctx in tenants * 5:
        owner[await backend.enqueue(ctx, create_test_job_message())] = ctx
    answers = await asyncio.gather(*(backend.dequeue(ctx, DEFAULT) for ctx in tenants * 5))
    got = dict(zip([id(it) for it in answers], tenants * 5, strict=True))
    for leased in answers:
        assert leased is not None
        assert leased.record.tenant_id == got[id(leased)].tenant_id
        assert owner[leased.record.job_id] == got[id(leased)]
    assert await backend.dequeue(STRANGER, DEFAULT) is None


@suite.case(TENANTS, "a stream hears its own tenant only, reaper and cancellations included")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    mine = backend.event_stream(CTX)
    theirs = backend.event_stream(STRANGER)
    leased = await enqueue_and_dequeue(backend)
    await backend.force_lease_expiry(leased.record.job_id)
    await backend.run_reaper_tick()
    await backend.cancel(CTX, leased.record.job_id)
    await assert_silent(theirs)
    heard = [await receive_next_event(mine) for _ in range(4)]
    assert [str(event.kind) for event in heard] == ["Enqueued", "Leased", "Enqueued", "Canceled"]
    assert {event.tenant_id for event in heard} == {CTX.tenant_id}
    foreign = await backend.enqueue(STRANGER, create_test_job_message())
    assert (await receive_next_event(theirs)).job_id == foreign
    await assert_silent(mine)


@suite.case(TENANTS, "a foreign cancel or ack neither frees nor takes an idempotency key")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    message = create_test_job_message()
    message.idempotency_key = "key"
    job_id = await backend.enqueue(CTX, message)
    with raises(JobNotFound):
        await backend.cancel(STRANGER, job_id)
    assert await backend.enqueue(CTX, message) == job_id
    other = await backend.enqueue(STRANGER, message)
    assert await backend.cancel(STRANGER, other) is True
    assert await backend.enqueue(CTX, message) == job_id


@suite.case(TENANTS, "a context that names no tenant is InvalidRequest on every method")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    waiting = await backend.enqueue(CTX, create_test_job_message())
    job_id, token = leased.record.job_id, leased.lease_token
    nobody: list[Any] = [None, "", "  ", 7, ["test_tenant"]]
    for tenant_id in nobody:
        calls: list[Callable[[QueueCtx], Awaitable[object]]] = [
            lambda ctx: backend.enqueue(ctx, create_test_job_message()),
            lambda ctx: backend.dequeue(ctx, DEFAULT),
            lambda ctx: backend.ack_complete(ctx, job_id, token),
            lambda ctx: backend.ack_fail(ctx, job_id, token, "error"),
            lambda ctx: backend.heartbeat_extend(ctx, job_id, token, 60),
            lambda ctx: backend.cancel(ctx, job_id),
            lambda ctx: backend.get_status(ctx, job_id),
            lambda ctx: backend.get_record(ctx, job_id),
        ]
        for call in calls:
            with raises(InvalidRequest):
                await call(QueueCtx(tenant_id))
        with raises(InvalidRequest):
            backend.event_stream(QueueCtx(tenant_id))
    assert await backend.get_record(CTX, job_id) == leased.record
    assert (await dequeue(backend)).record.job_id == waiting
