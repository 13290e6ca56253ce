"""A. Lease Semantics."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace.contracts.conformance import (
    InvalidLeaseToken,
    JobNotFound,
    LeaseExpired,
    LeaseToken,
)
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

A1 = "A1. Dequeue Leases Atomically"
A2 = "A2. Only Lease Holder Can Ack"
A3 = "A3. Lease Expiry Race → LeaseExpired"
A4 = "A4. Expired Lease Becomes Eligible Again"


@suite.case(A1, "a dequeued job has a token and a lease, and status and record show both")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    before = await backend.get_record(CTX, job_id)
    assert (before.lease_token, before.lease_until) == (None, None)
    leased = await dequeue(backend)
    assert leased.record.job_id == job_id
    assert len(leased.lease_token.as_str()) > 0
    assert leased.lease_until > env.clock.now()
    status = await backend.get_status(CTX, job_id)
    assert status.kind == "Processing"
    assert status.lease_until == leased.lease_until
    record = await backend.get_record(CTX, job_id)
    assert record.lease_token == leased.lease_token
    assert record.lease_until == leased.lease_until
    assert record == leased.record


@suite.case(A1, "an empty queue gives nothing, and so does a queue that was not named")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    assert await backend.dequeue(CTX, DEFAULT) is None
    await backend.enqueue(CTX, create_test_job_message())
    assert await backend.dequeue(CTX, ["another"]) is None
    assert await backend.dequeue(CTX, ["another", "default"]) is not None
    assert await backend.dequeue(CTX, DEFAULT) is None


@suite.case(A1, "of many dequeues at once no two get the same job, and every job is got")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    ids = [await backend.enqueue(CTX, create_test_job_message()) for _ in range(20)]
    answers = await asyncio.gather(*(backend.dequeue(CTX, DEFAULT) for _ in range(30)))
    got = [leased for leased in answers if leased is not None]
    assert sorted(leased.record.job_id for leased in got) == sorted(ids)
    assert len({leased.lease_token for leased in got}) == 20


@suite.case(A2, "ack_complete with another token is InvalidLeaseToken and changes nothing")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    with raises(InvalidLeaseToken):
        await backend.ack_complete(
            CTX, leased.record.job_id, LeaseToken.from_str("invalid_token"), None
        )
    assert await backend.get_record(CTX, leased.record.job_id) == leased.record


@suite.case(A2, "ack_fail and heartbeat_extend with another token are InvalidLeaseToken too")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    fake = LeaseToken("invalid_token")
    with raises(InvalidLeaseToken):
        await backend.ack_fail(CTX, leased.record.job_id, fake, "error", None)
    with raises(InvalidLeaseToken):
        await backend.ack_fail(CTX, leased.record.job_id, fake, "error", env.clock.now())
    with raises(InvalidLeaseToken):
        await backend.heartbeat_extend(CTX, leased.record.job_id, fake, timedelta(hours=1))
    assert await backend.get_record(CTX, leased.record.job_id) == leased.record
    await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, None)


@suite.case(A2, "a job that nobody has leased cannot be acked, whatever the token")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    for token in (LeaseToken.new(), ""):
        with raises(InvalidLeaseToken):
            await backend.ack_complete(CTX, job_id, token, None)
    assert (await backend.get_status(CTX, job_id)).kind == "Enqueued"


@suite.case(A2, "an unknown job is JobNotFound for every method")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    token = LeaseToken.new()
    with raises(JobNotFound):
        await backend.ack_complete(CTX, "unknown", token, None)
    with raises(JobNotFound):
        await backend.ack_fail(CTX, "unknown", token, "error", None)
    with raises(JobNotFound):
        await backend.heartbeat_extend(CTX, "unknown", token, timedelta(seconds=30))
    with raises(JobNotFound):
        await backend.cancel(CTX, "unknown")
    with raises(JobNotFound):
        await backend.get_status(CTX, "unknown")
    with raises(JobNotFound):
        await backend.get_record(CTX, "unknown")


@suite.case(A3, "ack_complete with the right token of an expired lease is LeaseExpired")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.force_lease_expiry(leased.record.job_id)
    with raises(LeaseExpired):
        await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, None)
    assert (await backend.get_status(CTX, leased.record.job_id)).kind == "Processing"


@suite.case(A3, "ack_fail and heartbeat_extend of an expired lease are LeaseExpired too")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.force_lease_expiry(leased.record.job_id)
    with raises(LeaseExpired):
        await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "error", None)
    with raises(LeaseExpired):
        await backend.heartbeat_extend(
            CTX, leased.record.job_id, leased.lease_token, timedelta(seconds=30)
        )


@suite.case(A3, "a lease expires by itself at lease_until, not a microsecond before")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    first = await enqueue_and_dequeue(backend)
    env.clock.set(first.lease_until - timedelta(microseconds=1))
    await backend.ack_complete(CTX, first.record.job_id, first.lease_token, None)
    second = await enqueue_and_dequeue(backend)
    env.clock.set(second.lease_until)
    with raises(LeaseExpired):
        await backend.ack_complete(CTX, second.record.job_id, second.lease_token, None)


@suite.case(A3, "heartbeat_extend moves lease_until to now plus the duration")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    env.clock.set(leased.lease_until - timedelta(seconds=1))
    until = await backend.heartbeat_extend(
        CTX, leased.record.job_id, leased.lease_token, timedelta(seconds=30)
    )
    assert until == leased.lease_until + timedelta(seconds=29)
    record = await backend.get_record(CTX, leased.record.job_id)
    assert (record.lease_until, record.lease_token) == (until, leased.lease_token)
    assert (await backend.get_status(CTX, leased.record.job_id)).lease_until == until
    env.clock.set(until - timedelta(microseconds=1))
    await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, None)


@suite.case(A3, "heartbeat_extend never shortens a lease, and takes seconds as well")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.heartbeat_extend(CTX, leased.record.job_id, leased.lease_token, 30)
    assert (await backend.get_record(CTX, leased.record.job_id)).lease_until == leased.lease_until


@suite.case(A4, "after the reaper the job is leased again: new token, attempt + 1, old token void")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    first_lease = await enqueue_and_dequeue(backend)
    await backend.force_lease_expiry(first_lease.record.job_id)
    await backend.run_reaper_tick()
    second_lease = await dequeue(backend)
    assert second_lease.record.job_id == first_lease.record.job_id
    assert second_lease.lease_token != first_lease.lease_token
    assert second_lease.record.attempt == first_lease.record.attempt + 1
    with raises(InvalidLeaseToken):
        await backend.ack_complete(CTX, first_lease.record.job_id, first_lease.lease_token, None)
    assert await backend.get_record(CTX, second_lease.record.job_id) == second_lease.record
    await backend.ack_complete(CTX, second_lease.record.job_id, second_lease.lease_token, None)


@suite.case(
    A4, "between the reaper and the next lease the job is Enqueued and nobody's token is good"
)
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.force_lease_expiry(leased.record.job_id)
    await backend.run_reaper_tick()
    record = await backend.get_record(CTX, leased.record.job_id)
    assert record.status.kind == "Enqueued"
    assert (record.lease_token, record.lease_until) == (None, None)
    with raises(InvalidLeaseToken):
        await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, None)


@suite.case(A4, "a job whose every lease expires is Failed once its attempts are spent")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    message = create_test_job_message()
    message.max_retries = 1
    job_id = await backend.enqueue(CTX, message)
    for attempt in (1, 2):
        assert (await dequeue(backend)).record.attempt == attempt
        await backend.force_lease_expiry(job_id)
        await backend.run_reaper_tick()
    assert (await backend.get_status(CTX, job_id)).kind == "Failed"
    assert await backend.dequeue(CTX, DEFAULT) is None
