"""D. Retry Semantics."""

from __future__ import annotations

from datetime import timedelta, timezone

from headrace.contracts.conformance import InvalidRequest
from headrace.testing.conformance.conformance.factories import (
    CTX,
    DEFAULT,
    create_test_job_message,
    dequeue,
    enqueue_and_dequeue,
    open_backend,
)
from headrace.testing.conformance.conformance.suite import suite
from headrace.testing.conformance.kit import Env, raises

D1 = "D1. Retryable Error Schedules Retry"
D2 = "D2. Permanent Failure Is Terminal"
D3 = "D3. Max Retries Respected"
D4 = "D4. Attempt Increments On Lease Acquisition"


@suite.case(D1, "ack_fail with retry_at is Retrying then, not eligible before, eligible after")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    retry_at = env.clock.now() + timedelta(seconds=60)
    await backend.ack_fail(
        CTX, leased.record.job_id, leased.lease_token, "retryable error", retry_at
    )
    status = await backend.get_status(CTX, leased.record.job_id)
    assert status.kind == "Retrying"
    assert status.retry_at == retry_at
    assert status.error == "retryable error"
    assert await backend.dequeue(CTX, DEFAULT) is None
    await backend.advance_time_to(retry_at + timedelta(seconds=1))
    retried = await dequeue(backend)
    assert (retried.record.job_id, retried.record.attempt) == (leased.record.job_id, 2)


@suite.case(D1, "a job is eligible at retry_at itself and not a microsecond before")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    retry_at = env.clock.now() + timedelta(seconds=60)
    await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "error", retry_at)
    await backend.advance_time_to(retry_at - timedelta(microseconds=1))
    assert await backend.dequeue(CTX, DEFAULT) is None
    await backend.advance_time_to(retry_at)
    assert (await dequeue(backend)).record.job_id == leased.record.job_id


@suite.case(D1, "retry_at comes back exactly as given: microseconds, any zone, the past too")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    job_id = leased.record.job_id
    zone = timezone(timedelta(hours=5, minutes=30))
    for retry_at in (
        env.clock.now() + timedelta(microseconds=123_457),
        (env.clock.now() + timedelta(seconds=1, microseconds=1)).astimezone(zone),
        env.clock.now() - timedelta(days=1, microseconds=999_999),
    ):
        await backend.ack_fail(CTX, job_id, leased.lease_token, "error", retry_at)
        status = await backend.get_status(CTX, job_id)
        assert (status.kind, status.retry_at) == ("Retrying", retry_at)
        await backend.advance_time_to(retry_at)
        leased = await dequeue(backend)


@suite.case(D1, "a retry_at without a zone is refused and the lease goes on")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    naive = env.clock.now().replace(tzinfo=None)
    with raises(InvalidRequest):
        await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "error", naive)
    assert await backend.get_record(CTX, leased.record.job_id) == leased.record


@suite.case(D2, "ack_fail without retry_at is Failed with its error, and never eligible again")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "permanent error", None)
    status = await backend.get_status(CTX, leased.record.job_id)
    assert status.kind == "Failed"
    assert status.error == "permanent error"
    assert status.retry_at is None
    assert await backend.dequeue(CTX, DEFAULT) is None
    env.clock.advance(86_400)
    await backend.run_reaper_tick()
    assert await backend.dequeue(CTX, DEFAULT) is None
    assert await backend.get_status(CTX, leased.record.job_id) == status


@suite.case(D3, "with max_retries=2 the third failure is Failed even with a retry_at")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_message = create_test_job_message()
    job_message.max_retries = 2
    job_id = await backend.enqueue(CTX, job_message)
    for attempt in (1, 2, 3):
        leased = await dequeue(backend)
        assert leased.record.attempt == attempt
        if attempt <= 2:
            retry_at = env.clock.now() + timedelta(seconds=1)
            await backend.ack_fail(CTX, job_id, leased.lease_token, "retry error", retry_at)
            assert (await backend.get_status(CTX, job_id)).kind == "Retrying"
            await backend.advance_time_to(retry_at + timedelta(seconds=1))
        else:
            await backend.ack_fail(CTX, job_id, leased.lease_token, "final error", env.clock.now())
    status = await backend.get_status(CTX, job_id)
    assert (status.kind, status.error) == ("Failed", "final error")
    assert await backend.dequeue(CTX, DEFAULT) is None
    env.clock.advance(86_400)
    assert await backend.dequeue(CTX, DEFAULT) is None


@suite.case(D3, "max_retries=0 allows one attempt, and the default allows four")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    for max_retries, attempts in ((0, 1), (None, 4)):
        message = create_test_job_message()
        if max_retries is not None:
            message.max_retries = max_retries
        job_id = await backend.enqueue(CTX, message)
        for attempt in range(1, attempts + 1):
            leased = await dequeue(backend)
            assert leased.record.attempt == attempt
            assert leased.record.max_retries == attempts - 1
            await backend.ack_fail(CTX, job_id, leased.lease_token, "error", env.clock.now())
            kind = (await backend.get_status(CTX, job_id)).kind
            assert kind == ("Failed" if attempt == attempts else "Retrying")


@suite.case(D4, "attempt is 0 when enqueued and 1 immediately after the lease")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    assert (await backend.get_record(CTX, job_id)).attempt == 0
    leased = await dequeue(backend)
    assert leased.record.attempt == 1
    assert (await backend.get_record(CTX, job_id)).attempt == 1


@suite.case(D4, "only a lease counts as an attempt: heartbeats, failures and the reaper do not")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    job_id = leased.record.job_id
    await backend.heartbeat_extend(CTX, job_id, leased.lease_token, timedelta(hours=1))
    assert (await backend.get_record(CTX, job_id)).attempt == 1
    await backend.ack_fail(CTX, job_id, leased.lease_token, "error", env.clock.now())
    assert (await backend.get_record(CTX, job_id)).attempt == 1
    assert (await dequeue(backend)).record.attempt == 2
    await backend.force_lease_expiry(job_id)
    await backend.run_reaper_tick()
    assert (await backend.get_record(CTX, job_id)).attempt == 2
