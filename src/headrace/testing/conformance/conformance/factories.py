"""The specification's factory functions: test data, and the short ways that its examples take."""

from __future__ import annotations

import asyncio

from headrace.contracts.conformance import (
    Backend,
    EventStream,
    JobEvent,
    JobMessage,
    JobPriority,
    Leased,
    QueueCtx,
)
from headrace.testing.conformance.kit import Env

CTX = QueueCtx("test_tenant")
STRANGER = QueueCtx("different_tenant")
DEFAULT = ["default"]


def create_test_job_message() -> JobMessage:
    return JobMessage(job_type="test_job", payload={"n": 1})


def create_job_with_priority(priority: JobPriority) -> JobMessage:
    return JobMessage(job_type="test_job", payload={"n": 1}, priority=priority)


async def open_backend(env: Env) -> Backend:
    backend = await env.open(Backend)
    assert isinstance(backend, Backend)
    return backend


async def dequeue(backend: Backend, ctx: QueueCtx = CTX) -> Leased:
    """A dequeue that must find something."""
    leased = await backend.dequeue(ctx, DEFAULT)
    assert leased is not None
    return leased


async def enqueue_and_dequeue(backend: Backend, ctx: QueueCtx = CTX) -> Leased:
    """The specification's usual start: one job, leased."""
    job_id = await backend.enqueue(ctx, create_test_job_message())
    leased = await dequeue(backend, ctx)
    assert leased.record.job_id == job_id
    return leased


async def receive_next_event(stream: EventStream) -> JobEvent:
    event = await asyncio.wait_for(stream.next(), timeout=1)
    assert event is not None
    return event


async def assert_silent(stream: EventStream, seconds: float = 0.02) -> None:
    """Nothing comes; and the read that was given up has lost nothing."""
    try:
        event = await asyncio.wait_for(stream.next(), timeout=seconds)
    except TimeoutError:
        return
    raise AssertionError(f"no event was expected, and {event} came")
