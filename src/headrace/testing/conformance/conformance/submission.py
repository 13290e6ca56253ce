"""E. Idempotency Semantics (Tenant-Scoped), F. Ordering Semantics, and what a message may be."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headrace.contracts.conformance import (
    InvalidRequest,
    JobMessage,
    JobPriority,
    LeaseToken,
    QueueCtx,
)
from headrace.testing.conformance.conformance.factories import (
    CTX,
    DEFAULT,
    create_job_with_priority,
    create_test_job_message,
    dequeue,
    open_backend,
)
from headrace.testing.conformance.conformance.suite import suite
from headrace.testing.conformance.kit import Env, raises

E1 = "E1. Idempotency Returns Same JobId For Non-Terminal"
E2 = "E2. Terminal Allows Re-Enqueue"
E3 = "E3. Scope Isolation"
F1 = "F1. Priority Then FIFO"
NOTES = "Implementation Notes"


def keyed() -> JobMessage:
    message = create_test_job_message()
    message.idempotency_key = "test_key"
    return message


@suite.case(E1, "enqueuing the same key in the same scope again returns the same job_id")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    message = keyed()
    job_id1 = await backend.enqueue(CTX, message.clone())
    record = await backend.get_record(CTX, job_id1)
    env.clock.advance(1)
    message.payload = {"n": 2}
    assert await backend.enqueue(CTX, message) == job_id1
    assert await backend.get_record(CTX, job_id1) == record
    assert (record.idempotency_key, record.payload) == ("test_key", {"n": 1})
    assert (await dequeue(backend)).record.job_id == job_id1
    assert await backend.dequeue(CTX, DEFAULT) is None


@suite.case(E1, "the key holds while the job is leased, retrying or back from a lost lease")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(CTX, keyed())
    leased = await dequeue(backend)
    assert await backend.enqueue(CTX, keyed()) == job_id
    await backend.ack_fail(CTX, job_id, leased.lease_token, "error", env.clock.now())
    assert await backend.enqueue(CTX, keyed()) == job_id
    await dequeue(backend)
    await backend.force_lease_expiry(job_id)
    await backend.run_reaper_tick()
    assert await backend.enqueue(CTX, keyed()) == job_id


@suite.case(E1, "the key holds without end, and many enqueues at once make one job")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    ids = await asyncio.gather(*(backend.enqueue(CTX, keyed()) for _ in range(10)))
    assert len(set(ids)) == 1
    env.clock.advance(400 * 86_400)
    assert await backend.enqueue(CTX, keyed()) == ids[0]


@suite.case(E1, "without a key every enqueue is a job of its own")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    ids = {await backend.enqueue(CTX, create_test_job_message()) for _ in range(3)}
    assert len(ids) == 3


@suite.case(E2, "after the job has completed the same key gives a new job_id")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id1 = await backend.enqueue(CTX, keyed())
    leased = await dequeue(backend)
    await backend.ack_complete(CTX, job_id1, leased.lease_token, None)
    job_id2 = await backend.enqueue(CTX, keyed())
    assert job_id1 != job_id2
    assert await backend.enqueue(CTX, keyed()) == job_id2
    assert (await backend.get_status(CTX, job_id1)).kind == "Completed"
    assert (await backend.get_status(CTX, job_id2)).kind == "Enqueued"


@suite.case(E2, "so it is after the job has failed, and after it was canceled")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id1 = await backend.enqueue(CTX, keyed())
    leased = await dequeue(backend)
    await backend.ack_fail(CTX, job_id1, leased.lease_token, "error", None)
    job_id2 = await backend.enqueue(CTX, keyed())
    assert job_id2 != job_id1
    assert await backend.cancel(CTX, job_id2) is True
    assert await backend.enqueue(CTX, keyed()) not in (job_id1, job_id2)


@suite.case(E3, "the same key in another tenant, queue or job_type is another job")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    base_message = create_test_job_message()
    base_message.idempotency_key = "same_key"
    ctx2 = QueueCtx("different_tenant")
    job_id1 = await backend.enqueue(CTX, base_message.clone())
    job_id2 = await backend.enqueue(ctx2, base_message.clone())
    different_queue = base_message.clone()
    different_queue.queue = "different_queue"
    job_id3 = await backend.enqueue(CTX, different_queue)
    different_type = base_message.clone()
    different_type.job_type = "different_type"
    job_id4 = await backend.enqueue(CTX, different_type)
    assert len({job_id1, job_id2, job_id3, job_id4}) == 4
    assert await backend.enqueue(ctx2, base_message) == job_id2
    assert await backend.enqueue(CTX, different_queue) == job_id3


@suite.case(F1, "high before low, and the older of two equals first")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id1 = await backend.enqueue(CTX, create_job_with_priority(JobPriority.LOW))
    env.clock.advance(0.01)
    job_id2 = await backend.enqueue(CTX, create_job_with_priority(JobPriority.HIGH))
    env.clock.advance(0.01)
    job_id3 = await backend.enqueue(CTX, create_job_with_priority(JobPriority.HIGH))
    first, second, third = [await dequeue(backend) for _ in range(3)]
    assert first.record.job_id == job_id2
    assert second.record.job_id == job_id3
    assert third.record.job_id == job_id1


@suite.case(F1, "critical, high, normal, low, whatever the order they came in")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    for priority in (
        JobPriority.NORMAL,
        JobPriority.LOW,
        JobPriority.CRITICAL,
        JobPriority.HIGH,
    ):
        await backend.enqueue(CTX, create_job_with_priority(priority))
    got = [(await dequeue(backend)).record.priority for _ in range(4)]
    assert got == [JobPriority.CRITICAL, JobPriority.HIGH, JobPriority.NORMAL, JobPriority.LOW]


@suite.case(F1, "jobs of the same instant are dequeued in the order they were enqueued")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    ids = [await backend.enqueue(CTX, create_test_job_message()) for _ in range(12)]
    assert [(await dequeue(backend)).record.job_id for _ in ids] == ids


@suite.case(F1, "a message with run_at is eligible from then on")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    message = create_test_job_message()
    message.run_at = env.clock.now() + timedelta(seconds=10)
    job_id = await backend.enqueue(CTX, message)
    assert (await backend.get_status(CTX, job_id)).kind == "Enqueued"
    assert await backend.dequeue(CTX, DEFAULT) is None
    await backend.advance_time_to(message.run_at)
    assert (await dequeue(backend)).record.job_id == job_id


@suite.case(NOTES, "the record holds what was enqueued")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    message = JobMessage(
        "test_job", {"list": [1, "zwei", None]}, "mail", JobPriority.CRITICAL, 7, "key"
    )
    record = await backend.get_record(CTX, await backend.enqueue(CTX, message))
    assert record.tenant_id == CTX.tenant_id
    assert (record.queue, record.job_type) == ("mail", "test_job")
    assert record.payload == {"list": [1, "zwei", None]}
    assert (record.priority, record.max_retries) == (JobPriority.CRITICAL, 7)
    assert (record.idempotency_key, record.attempt) == ("key", 0)
    assert record.created_at == env.clock.now()
    assert (record.error, record.result, record.finished_at) == (None, None, None)


@suite.case(NOTES, "a message is plain data: it can be changed, copied, cloned and replaced")
async def _(env: Env) -> None:
    message = create_test_job_message()
    twins = (message.clone(), copy.copy(message), copy.deepcopy(message), replace(message))
    assert all(twin == message and twin is not message for twin in twins)
    message.max_retries = 2
    backend = await open_backend(env)
    for one, max_retries in ((message, 2), *((twin, 3) for twin in twins)):
        record = await backend.get_record(CTX, await backend.enqueue(CTX, one))
        assert record.max_retries == max_retries


@suite.case(NOTES, "a lease token is text that can be made, compared and shown")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    await backend.enqueue(CTX, create_test_job_message())
    leased = await dequeue(backend)
    assert LeaseToken(leased.lease_token.as_str()) == leased.lease_token
    assert LeaseToken.new() != LeaseToken.new()
    await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token.as_str())


@suite.case(NOTES, "what can never work is InvalidRequest, and nothing is stored")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    naive = env.clock.now().replace(tzinfo=None)
    bad: list[dict[str, Any]] = [
        {"job_type": ""},
        {"queue": " "},
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"priority": "urgent"},
        {"idempotency_key": ""},
        {"idempotency_key": "k" * 257},
        {"payload": object()},
        {"run_at": naive},
    ]
    for fields in bad:
        with raises(InvalidRequest):
            await backend.enqueue(CTX, replace(create_test_job_message(), **fields))
    nothing: Any = None
    with raises(InvalidRequest):
        await backend.enqueue(CTX, nothing)
    with raises(InvalidRequest):
        await backend.enqueue(nothing, create_test_job_message())
    with raises(InvalidRequest):
        await backend.enqueue(QueueCtx(""), create_test_job_message())
    assert await backend.dequeue(CTX, DEFAULT) is None


@suite.case(
    NOTES, "empty ids, no queues, bad durations and bad contexts are InvalidRequest everywhere"
)
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    leased = await dequeue(backend)
    nothing: Any = None
    for queues in ([], [""], "default"):
        with raises(InvalidRequest):
            await backend.dequeue(CTX, queues)
    for duration in (0, -1, timedelta(0), float("nan"), nothing):
        with raises(InvalidRequest):
            await backend.heartbeat_extend(CTX, job_id, leased.lease_token, duration)
    with raises(InvalidRequest):
        await backend.ack_complete(CTX, job_id, nothing)
    with raises(InvalidRequest):
        await backend.ack_fail(CTX, job_id, leased.lease_token, nothing)
    for wrong in ("", nothing):
        with raises(InvalidRequest):
            await backend.get_status(CTX, wrong)
        with raises(InvalidRequest):
            await backend.cancel(CTX, wrong)
    with raises(InvalidRequest):
        await backend.get_record(nothing, job_id)
    with raises(InvalidRequest):
        backend.event_stream(nothing)
    assert await backend.get_record(CTX, job_id) == leased.record


@suite.case(NOTES, "a priority may be given as text, in whatever case")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    words: list[Any] = ["High", "HIGH", "high", JobPriority.HIGH]
    for word in words:
        job_id = await backend.enqueue(CTX, create_job_with_priority(word))
        assert (await backend.get_record(CTX, job_id)).priority is JobPriority.HIGH
    bad: list[Any] = ["urgent", "", None, 1, ["High"], True]
    for word in bad:
        with raises(InvalidRequest):
            await backend.enqueue(CTX, create_job_with_priority(word))


@suite.case(NOTES, "what is not a list of queues is InvalidRequest, not a TypeError")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    bad: list[Any] = [5, None, [5], [None], [["default"]], object()]
    for queues in bad:
        with raises(InvalidRequest):
            await backend.dequeue(CTX, queues)
    assert (await dequeue(backend)).record.job_id == job_id
