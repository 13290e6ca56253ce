"""B. At-Least-Once Execution / At-Most-Once Transition, and C. Cancel-Wins Semantics."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace.contracts.conformance import (
    JobAlreadyTerminal,
    JobCanceled,
    LeaseToken,
    QueueError,
)
from headrace.testing.conformance.conformance.factories import (
    CTX,
    DEFAULT,
    create_test_job_message,
    enqueue_and_dequeue,
    open_backend,
)
from headrace.testing.conformance.conformance.suite import suite
from headrace.testing.conformance.kit import Env, raises

B1 = "B1. At-Most-Once Completion Transition"
B2 = "B2. Terminal States Immutable"
C1 = "C1. Cancel Wins Over Ack Complete"
C2 = "C2. Cancel Invalidates Lease"


@suite.case(B1, "a second ack_complete with the same token is JobAlreadyTerminal")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, {"answer": 42})
    done = await backend.get_record(CTX, leased.record.job_id)
    assert (done.status.kind, done.result) == ("Completed", {"answer": 42})
    assert (done.lease_token, done.lease_until) == (None, None)
    env.clock.advance(1)
    with raises(JobAlreadyTerminal):
        await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, {"answer": 0})
    assert await backend.get_record(CTX, leased.record.job_id) == done


@suite.case(B1, "of many acks at once exactly one is accepted")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    job_id, token = leased.record.job_id, leased.lease_token
    answers = await asyncio.gather(
        *(backend.ack_complete(CTX, job_id, token, n) for n in range(5)),
        *(backend.ack_fail(CTX, job_id, token, "error", None) for _ in range(5)),
        return_exceptions=True,
    )
    assert answers.count(None) == 1
    assert all(isinstance(it, JobAlreadyTerminal) for it in answers if it is not None)
    assert (await backend.get_status(CTX, job_id)).kind in ("Completed", "Failed")


@suite.case(B2, "a completed job cannot be canceled (False) nor failed (JobAlreadyTerminal)")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, None)
    done = await backend.get_record(CTX, leased.record.job_id)
    env.clock.advance(1)
    assert await backend.cancel(CTX, leased.record.job_id) is False
    with raises(JobAlreadyTerminal):
        await backend.ack_fail(CTX, leased.record.job_id, LeaseToken.new(), "error", None)
    assert await backend.get_record(CTX, leased.record.job_id) == done


@suite.case(B2, "a failed job answers every write with JobAlreadyTerminal and cancel with False")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    job_id, token = leased.record.job_id, leased.lease_token
    await backend.ack_fail(CTX, job_id, token, "permanent error", None)
    ended = await backend.get_record(CTX, job_id)
    env.clock.advance(1)
    with raises(JobAlreadyTerminal):
        await backend.ack_complete(CTX, job_id, token, None)
    with raises(JobAlreadyTerminal):
        await backend.ack_fail(CTX, job_id, token, "error", env.clock.now())
    with raises(JobAlreadyTerminal):
        await backend.heartbeat_extend(CTX, job_id, token, timedelta(seconds=30))
    assert await backend.cancel(CTX, job_id) is False
    assert await backend.get_record(CTX, job_id) == ended


@suite.case(B2, "the reaper leaves ended jobs alone")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, None)
    done = await backend.get_record(CTX, leased.record.job_id)
    env.clock.advance(86_400)
    await backend.run_reaper_tick()
    assert await backend.get_record(CTX, leased.record.job_id) == done


@suite.case(C1, "cancel of a leased job succeeds, its ack is JobCanceled, and Canceled stays")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    assert await backend.cancel(CTX, leased.record.job_id) is True
    with raises(JobCanceled):
        await backend.ack_complete(CTX, leased.record.job_id, leased.lease_token, None)
    status = await backend.get_status(CTX, leased.record.job_id)
    assert status.kind == "Canceled"
    assert status.finished_at == env.clock.now()


@suite.case(C1, "a job that waits, to run or to be retried, is canceled and never dequeued")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    retry_at = env.clock.now() + timedelta(seconds=5)
    await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "error", retry_at)
    waiting = await backend.enqueue(CTX, create_test_job_message())
    for job_id in (waiting, leased.record.job_id):
        assert await backend.cancel(CTX, job_id) is True
        assert (await backend.get_status(CTX, job_id)).kind == "Canceled"
    env.clock.advance(10)
    assert await backend.dequeue(CTX, DEFAULT) is None


@suite.case(C1, "a second cancel is False: Canceled is terminal")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    job_id = await backend.enqueue(CTX, create_test_job_message())
    assert await backend.cancel(CTX, job_id) is True
    record = await backend.get_record(CTX, job_id)
    env.clock.advance(1)
    assert await backend.cancel(CTX, job_id) is False
    assert await backend.get_record(CTX, job_id) == record


@suite.case(C1, "when cancel and ack race, one wins and the other is told")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    for _ in range(10):
        leased = await enqueue_and_dequeue(backend)
        job_id = leased.record.job_id
        canceled, acked = await asyncio.gather(
            backend.cancel(CTX, job_id),
            backend.ack_complete(CTX, job_id, leased.lease_token, None),
            return_exceptions=True,
        )
        kind = (await backend.get_status(CTX, job_id)).kind
        if canceled is True:
            assert isinstance(acked, JobCanceled)
            assert kind == "Canceled"
        else:
            assert (canceled, acked) == (False, None)
            assert kind == "Completed"


@suite.case(C2, "after cancel, heartbeat_extend and ack_fail are both JobCanceled")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.cancel(CTX, leased.record.job_id)
    with raises(JobCanceled):
        await backend.heartbeat_extend(
            CTX, leased.record.job_id, leased.lease_token, timedelta(seconds=30)
        )
    with raises(JobCanceled):
        await backend.ack_fail(CTX, leased.record.job_id, leased.lease_token, "error", None)
    record = await backend.get_record(CTX, leased.record.job_id)
    assert (record.status.kind, record.lease_token, record.error) == ("Canceled", None, None)


@suite.case(C2, "JobCanceled comes before every other refusal, and all are QueueErrors")
async def _(env: Env) -> None:
    backend = await open_backend(env)
    leased = await enqueue_and_dequeue(backend)
    await backend.cancel(CTX, leased.record.job_id)
    with raises(QueueError) as caught:
        await backend.ack_complete(CTX, leased.record.job_id, LeaseToken.new(), None)
    assert type(caught.error) is JobCanceled
