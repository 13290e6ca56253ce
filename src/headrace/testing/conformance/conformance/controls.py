"""Backend Test Helpers, and the requirement that they are the same on every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.clock import SystemClock
from headrace.contracts.conformance import (
    Backend,
    InvalidRequest,
    JobNotFound,
    LeaseExpired,
)
from headrace.testing.conformance.conformance.factories import (
    CTX,
    DEFAULT,
    STRANGER,
    create_test_job_message,
    dequeue,
    enqueue_and_dequeue,
    open_backend,
)
from headrace.testing.conformance.conformance.suite import suite
from headrace.testing.conformance.kit import Env, raises

HELPERS = "Backend Test Helpers"
AGNOSTIC = "3. Test suite must be backend-agnostic"


@suite.case(HELPERS, "force_lease_expiry ends the lease and nothing else")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.force_lease_expiry(leased.record.job_id)
    record = await backend.get_record(CTX, leased.record.job_id)
    assert record.lease_until == env.clock.now()
    assert (record.status.kind, record.attempt) == ("Processing", 1)
    assert record.lease_token == leased.lease_token
    assert await backend.dequeue(CTX, DEFAULT) is None
    await backend.force_lease_expiry(leased.record.job_id)


@suite.case(
    HELPERS, "force_lease_expiry of an unknown job is JobNotFound, without a lease a refusal"
)
async def _(env: Env) -> None:
    backend = await open_backend(env)
    with raises(JobNotFound):
        await backend.force_lease_expiry("unknown")
    job_id = await backend.enqueue(CTX, create_test_job_message())
    before = await backend.get_record(CTX, job_id)
    with raises(InvalidRequest):
        await backend.force_lease_expiry(job_id)
    assert await backend.get_record(CTX, job_id) == before


@suite.case(HELPERS, "run_reaper_tick takes back lapsed leases of every tenant and no other")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    lapsed = await enqueue_and_dequeue(backend)
    foreign = await enqueue_and_dequeue(backend, STRANGER)
    healthy = await enqueue_and_dequeue(backend)
    await backend.force_lease_expiry(lapsed.record.job_id)
    await backend.force_lease_expiry(foreign.record.job_id)
    await backend.run_reaper_tick()
    assert (await backend.get_status(CTX, lapsed.record.job_id)).kind == "Enqueued"
    assert (await backend.get_status(STRANGER, foreign.record.job_id)).kind == "Enqueued"
    assert await backend.get_record(CTX, healthy.record.job_id) == healthy.record
    await backend.run_reaper_tick()
    assert (await backend.get_record(CTX, lapsed.record.job_id)).attempt == 1


@suite.case(HELPERS, "advance_time_to moves time ahead for leases and retries, and never back")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    start = env.clock.now()
    await backend.advance_time_to(start - timedelta(days=1))
    assert env.clock.now() == start
    await backend.advance_time_to(leased.lease_until)
    assert env.clock.now() == leased.lease_until
    with raises(LeaseExpired):
        await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token)
    with raises(InvalidRequest):
        await backend.advance_time_to(start.replace(tzinfo=None))


@suite.case(HELPERS, "on a live clock the helpers work the same: D1 as it is written")
async def _(env: Env) -> None:
    backend: Backend = await env.open(Backend, live_clock=True)
    leased = await enqueue_and_dequeue(backend)
    assert leased.lease_until > datetime.now(UTC)
    retry_at = datetime.now(UTC) + timedelta(seconds=60)
    await backend.ack_fail(
        CTX, leased.record.job_id, leased.lease_token, "retryable error", retry_at
    )
    status = await backend.get_status(CTX, leased.record.job_id)
    assert (status.kind, status.retry_at) == ("Retrying", retry_at)
    assert await backend.dequeue(CTX, DEFAULT) is None
    await backend.advance_time_to(retry_at + timedelta(seconds=1))
    retried = await dequeue(backend)
    await backend.advance_time_to(datetime.now(UTC))
    await backend.force_lease_expiry(retried.record.job_id)
    with raises(LeaseExpired):
        await backend.ack_complete(CTX, retried.record.job_id, retried.lease_token)
    await backend.run_reaper_tick()
    assert (await dequeue(backend)).record.attempt == 3


@suite.case(HELPERS, "on a live clock max_retries is respected: D3 as it is written")
async def _(env: Env) -> None:
    backend: Backend = await env.open(Backend, live_clock=True)
    message = create_test_job_message()
    message.max_retries = 2
    job_id = await backend.enqueue(CTX, message)
    for attempt in (1, 2, 3):
        leased = await dequeue(backend)
        assert leased.record.attempt == attempt
        retry_at = datetime.now(UTC) + timedelta(seconds=1)
        await backend.ack_fail(CTX, job_id, leased.lease_token, "error", retry_at)
        await backend.advance_time_to(retry_at + timedelta(seconds=1))
    assert (await backend.get_status(CTX, job_id)).kind == "Failed"
    assert await backend.dequeue(CTX, DEFAULT) is None


@suite.case(AGNOSTIC, "a backend opens on any store and any clock, and closes twice")
async def _(env: Env) -> None:
    backend = await Backend.open(env.url, clock=SystemClock())
    env.closing(backend)
    async with backend:
        ahead = datetime.now(UTC) + timedelta(hours=1)
        await backend.advance_time_to(ahead)
        job_id = await backend.enqueue(CTX, create_test_job_message())
        assert (await backend.get_record(CTX, job_id)).created_at >= ahead
    await backend.close()


@suite.case(AGNOSTIC, "a whole job, by keyword names, leaves the same record on every store")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(ctx=CTX, message=create_test_job_message())
    leased = await backend.dequeue(ctx=CTX, queues=DEFAULT)
    assert leased is not None
    token = leased.lease_token
    await backend.heartbeat_extend(
        ctx=CTX, job_id=job_id, lease_token=token, duration=timedelta(seconds=900)
    )
    await backend.ack_fail(
        ctx=CTX, job_id=job_id, lease_token=token, error="once", retry_at=env.clock.now()
    )
    env.clock.advance(1)
    again = await dequeue(backend)
    env.clock.advance(1)
    await backend.ack_complete(
        ctx=CTX, job_id=job_id, lease_token=again.lease_token, result=[1, {"a": None}]
    )
    record = await backend.get_record(ctx=CTX, job_id=job_id)
    assert (record.attempt, record.result, record.error) == (2, [1, {"a": None}], "once")
    assert record.status == await backend.get_status(ctx=CTX, job_id=job_id)
    assert record.finished_at == record.created_at + timedelta(seconds=2)
    assert await backend.cancel(ctx=CTX, job_id=job_id) is False
