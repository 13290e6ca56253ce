"""G. Observability Events (Minimal Stable Protocol)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace.contracts.conformance import Backend, JobEvent, QueueError
from headrace.contracts.presets import CONFORMANCE
from headrace.testing.conformance.conformance.factories import (
    CTX,
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

G1 = "G1. Emits Enqueued Event"
G2 = "G2. Emits Lifecycle Events"
ORDER = "4. Event ordering must be deterministic"


@suite.case(G1, "a stream opened before an enqueue receives Enqueued with the job's names")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = backend.event_stream(CTX)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    event = await receive_next_event(stream)
    assert event.kind == "Enqueued"
    assert event.job_id == job_id
    assert event.tenant_id == CTX.tenant_id
    assert event.queue == "default"
    assert event.job_type == "test_job"
    assert (event.attempt, event.at) == (0, env.clock.now())


@suite.case(G1, "a stream starts at the call that is not awaited: nothing before, everything after")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    await backend.enqueue(CTX, create_test_job_message())
    stream = backend.event_stream(CTX)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    later = backend.event_stream(CTX)
    last_id = await backend.enqueue(CTX, create_test_job_message())
    assert (await receive_next_event(stream)).job_id == job_id
    assert (await receive_next_event(stream)).job_id == last_id
    assert (await receive_next_event(later)).job_id == last_id
    await assert_silent(stream)
    await assert_silent(later)


@suite.case(G1, "the start is exact when another backend on the same store writes first")
async def _(env: Env) -> None:
    manager = await env.manager(CONFORMANCE)
    reader, writer = Backend(manager), Backend(manager)
    for _ in range(20):
        await writer.enqueue(CTX, create_test_job_message())
        stream = reader.event_stream(CTX)
        job_id = await writer.enqueue(CTX, create_test_job_message())
        event = await receive_next_event(stream)
        assert (event.kind, event.job_id) == ("Enqueued", job_id)
        await stream.aclose()


@suite.case(G1, "the start is exact for every kind of write that follows the call")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    await backend.enqueue(CTX, create_test_job_message())
    stream = backend.event_stream(CTX)
    leased = await dequeue(backend)
    assert (await receive_next_event(stream)).kind == "Leased"
    job_id = leased.record.job_id
    stream = backend.event_stream(CTX)
    await backend.ack_fail(CTX, job_id, leased.lease_token, "error", env.clock.now())
    assert (await receive_next_event(stream)).kind == "Retrying"
    await dequeue(backend)
    await backend.force_lease_expiry(job_id)
    stream = backend.event_stream(CTX)
    await backend.run_reaper_tick()
    assert (await receive_next_event(stream)).kind == "Enqueued"
    leased = await dequeue(backend)
    stream = backend.event_stream(CTX)
    await backend.ack_complete(CTX, job_id, leased.lease_token)
    assert (await receive_next_event(stream)).kind == "Completed"
    job_id = await backend.enqueue(CTX, create_test_job_message())
    stream = backend.event_stream(CTX)
    await backend.cancel(CTX, job_id)
    assert (await receive_next_event(stream)).kind == "Canceled"


@suite.case(G1, "a reader that already waits is told as soon as the event is there")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = backend.event_stream(CTX)
    waiting = asyncio.create_task(receive_next_event(stream))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    job_id = await backend.enqueue(CTX, create_test_job_message())
    assert (await waiting).job_id == job_id


@suite.case(G1, "an enqueue that its idempotency key turns away makes no event")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    message = create_test_job_message()
    message.idempotency_key = "key"
    await backend.enqueue(CTX, message)
    stream = backend.event_stream(CTX)
    await backend.enqueue(CTX, message)
    await assert_silent(stream)


@suite.case(G2, "enqueue, dequeue and ack_complete emit Enqueued, Leased and Completed")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = backend.event_stream(CTX)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    enqueued_event = await receive_next_event(stream)
    assert (enqueued_event.kind, enqueued_event.job_id) == ("Enqueued", job_id)
    leased = await dequeue(backend)
    leased_event = await receive_next_event(stream)
    assert (leased_event.kind, leased_event.job_id) == ("Leased", job_id)
    assert (leased_event.attempt, leased_event.lease_until) == (1, leased.lease_until)
    await backend.ack_complete(CTX, job_id, leased.lease_token, None)
    completed_event = await receive_next_event(stream)
    assert (completed_event.kind, completed_event.job_id) == ("Completed", job_id)
    await assert_silent(stream)


@suite.case(G2, "ack_fail without retry_at emits Failed with the error")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    stream = backend.event_stream(CTX)
    await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "permanent", None)
    event = await receive_next_event(stream)
    assert (event.kind, event.job_id) == ("Failed", leased.record.job_id)
    assert (event.error, event.retry_at, event.attempt) == ("permanent", None, 1)
    await assert_silent(stream)


@suite.case(G2, "ack_fail with retry_at emits Retrying with the exact retry_at and the error")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    stream = backend.event_stream(CTX)
    retry_at = env.clock.now() + timedelta(seconds=1, microseconds=7)
    await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "again", retry_at)
    event = await receive_next_event(stream)
    assert (event.kind, event.job_id) == ("Retrying", leased.record.job_id)
    assert (event.error, event.retry_at) == ("again", retry_at)
    await assert_silent(stream)


@suite.case(G2, "a retry past max_retries emits Failed, not Retrying")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    message = create_test_job_message()
    message.max_retries = 0
    job_id = await backend.enqueue(CTX, message)
    leased = await dequeue(backend)
    stream = backend.event_stream(CTX)
    await backend.ack_fail(CTX, job_id, leased.lease_token, "spent", env.clock.now())
    event = await receive_next_event(stream)
    assert (event.kind, event.error) == ("Failed", "spent")


@suite.case(G2, "cancel emits Canceled once, whether the job waited or was leased")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    waiting = await backend.enqueue(CTX, create_test_job_message())
    stream = backend.event_stream(CTX)
    for job_id in (leased.record.job_id, waiting):
        await backend.cancel(CTX, job_id)
        await backend.cancel(CTX, job_id)
        event = await receive_next_event(stream)
        assert (event.kind, event.job_id, event.error) == ("Canceled", job_id, None)
    await assert_silent(stream)


@suite.case(G2, "a lease that the reaper takes back emits Enqueued, with the cause lost")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    stream = backend.event_stream(CTX)
    await backend.force_lease_expiry(leased.record.job_id)
    await assert_silent(stream)
    await backend.run_reaper_tick()
    event = await receive_next_event(stream)
    assert (event.kind, event.cause) == ("Enqueued", "lost")
    assert (event.job_id, event.attempt) == (leased.record.job_id, 1)


@suite.case(G2, "what is refused emits nothing")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    stream = backend.event_stream(CTX)
    with raises(QueueError):
        await backend.ack_complete(CTX, leased.record.job_id, "invalid_token")
    with raises(QueueError):
        await backend.cancel(CTX, "unknown")
    await backend.heartbeat_extend(CTX, leased.record.job_id, leased.lease_token, 600)
    await assert_silent(stream)


@suite.case(ORDER, "events arrive in chronological order, the same for every reader")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    streams = [backend.event_stream(CTX) for _ in range(3)]
    expected: list[tuple[str, str]] = []
    for _ in range(5):
        env.clock.advance(0.5)
        job_id = await backend.enqueue(CTX, create_test_job_message())
        leased = await dequeue(backend)
        env.clock.advance(0.5)
        await backend.ack_complete(CTX, job_id, leased.lease_token)
        expected += [("Enqueued", job_id), ("Leased", job_id), ("Completed", job_id)]
    heard: list[list[JobEvent]] = []
    for stream in streams:
        heard.append([await receive_next_event(stream) for _ in expected])
        await assert_silent(stream)
    assert [(str(event.kind), event.job_id) for event in heard[0]] == expected
    times = [event.at for event in heard[0]]
    assert times == sorted(times)
    assert heard[0] == heard[1] == heard[2]


@suite.case(ORDER, "writes at once reach every reader in one order, each event once")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    streams = [backend.event_stream(CTX) for _ in range(2)]
    ids = await asyncio.gather(
        *(backend.enqueue(CTX, create_test_job_message()) for _ in range(25))
    )
    heard = [[(await receive_next_event(stream)).job_id for _ in ids] for stream in streams]
    assert sorted(heard[0]) == sorted(ids)
    assert heard[0] == heard[1]


@suite.case(ORDER, "a read that times out or is cancelled loses nothing")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = backend.event_stream(CTX)
    for _ in range(3):
        await assert_silent(stream, 0.005)
        job_id = await backend.enqueue(CTX, create_test_job_message())
        assert (await receive_next_event(stream)).job_id == job_id


@suite.case(ORDER, "a stream is read with async for, anext and next alike, and may be awaited")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = await backend.event_stream(CTX)
    ids = [await backend.enqueue(CTX, create_test_job_message()) for _ in range(3)]
    heard = [(await anext(stream)).job_id, (await receive_next_event(stream)).job_id]
    async for event in stream:
        heard.append(event.job_id)
        break
    assert heard == ids


@suite.case(ORDER, "a closed stream ends, for whoever waits on it too")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = backend.event_stream(CTX)
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0.01)
    await stream.aclose()
    await stream.aclose()
    assert await asyncio.wait_for(waiting, timeout=1) is None
    assert [event async for event in stream] == []
    unread = backend.event_stream(CTX)
    await unread.aclose()
    assert await unread.next() is None


@suite.case(ORDER, "closing the backend ends its streams")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = backend.event_stream(CTX)
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0.01)
    await backend.close()
    assert await asyncio.wait_for(waiting, timeout=1) is None
    with raises(QueueError):
        await backend.enqueue(CTX, create_test_job_message())


@suite.case(
    ORDER, "a stream passes over any number of other tenants' events without losing its own"
)
async def _(env: Env) -> None:
    backend = await open_backend(env)
    stream = backend.event_stream(CTX)
    waiting = asyncio.create_task(receive_next_event(stream))
    for _ in range(30):
        await backend.enqueue(STRANGER, create_test_job_message())
    assert not waiting.done()
    job_id = await backend.enqueue(CTX, create_test_job_message())
    assert (await waiting).job_id == job_id
