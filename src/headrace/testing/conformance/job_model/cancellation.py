"""8. CANCELLED: what an explicit cancellation does in each state, asked for or forced."""

from __future__ import annotations

from headrace.contracts.job_model import (
    FailureCategory,
    JobCancelled,
    JobNotFound,
    JobState,
    JobTerminal,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "8. Failure Classification: CANCELLED"


@suite.case(PART, "a job that waits is cancelled at once, whatever it waits for")
async def waiting(env: Env) -> None:
    queue = await open_queue(env)
    parent = await queue.submit("parent")
    retrying = await queue.submit("t", priority=0)
    await run(queue, retrying, error="no")
    pending = await queue.submit("t", dependencies=[parent])
    delayed = await queue.submit("t", delay=60)
    for job_id in (retrying, pending, delayed, parent):
        after = await queue.cancel(job_id)
        assert (after.state, after.completed_at) == (JobState.CANCELLED, env.clock.now())
        assert after.failure is not None
        assert after.failure.category is FailureCategory.CANCELLED
    env.clock.advance(3600)
    assert await queue.claim("w") is None


@suite.case(PART, "a running job is asked to stop; its worker is told and answers")
async def cooperative(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    assert not (await queue.heartbeat(job_id, token_of(job))).cancel_requested
    asked = await queue.cancel(job_id)
    assert (asked.state, asked.cancel_requested) == (JobState.RUNNING, True)
    assert await queue.cancel(job_id) == asked
    assert (await queue.heartbeat(job_id, token_of(job))).cancel_requested
    after = await queue.fail(job_id, token_of(job), FailureCategory.CANCELLED)
    assert after.state is JobState.CANCELLED


@suite.case(PART, "a worker that finishes before it hears of it has completed the job")
async def cooperative_too_late(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    await queue.cancel(job_id)
    done = await queue.complete(job_id, token_of(job), 1)
    assert (done.state, done.result) == (JobState.COMPLETED, 1)


@suite.case(PART, "a failure while cancellation is asked for is not retried")
async def cooperative_failure(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    await queue.cancel(job_id)
    assert (await queue.fail(job_id, token_of(job), "no")).state is JobState.CANCELLED


@suite.case(PART, "a worker that never answers: CANCELLED when its lease lapses")
async def unanswered(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    await claimed(queue)
    await queue.cancel(job_id)
    env.clock.advance(300)
    assert await state(queue, job_id) is JobState.CANCELLED
    assert await queue.claim("w") is None


@suite.case(PART, "with force a running job is cut off: its worker's writes are refused")
async def forced(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    after = await queue.cancel(job_id, force=True)
    assert (after.state, after.token) == (JobState.CANCELLED, None)
    for write in (
        queue.complete(job_id, token_of(job)),
        queue.fail(job_id, token_of(job), "no"),
        queue.heartbeat(job_id, token_of(job)),
    ):
        with raises(JobCancelled):
            await write
    assert await queue.get(job_id) == after


@suite.case(PART, "an ended job is not cancelled; a cancelled one is left as it is")
async def ended(env: Env) -> None:
    queue = await open_queue(env)
    done = await queue.submit("t")
    before = await run(queue, done)
    for force in (False, True):
        with raises(JobTerminal):
            await queue.cancel(done, force)
    assert await queue.get(done) == before
    gone = await queue.submit("t")
    first = await queue.cancel(gone)
    env.clock.advance(1)
    assert await queue.cancel(gone) == first
    with raises(JobNotFound):
        await queue.cancel("unknown")
