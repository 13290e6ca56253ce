"""Job State Transition Matrix: the four states, and each row of the table."""

from __future__ import annotations

from headrace.contracts.queue_semantics import JobState, StaleLease
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    claimed,
    open_queue,
    states,
    suite,
    token_of,
)


@suite.case("States: Ready", "a Ready job can be claimed and processed")
async def ready(env: Env) -> None:
    queue = await open_queue(env)
    assert (await queue.enqueue("j")).state is JobState.READY
    assert (await claimed(queue)).id == "j"


@suite.case("States: InFlight", "an InFlight job is leased by one worker")
async def in_flight(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue, "w7")
    assert (job.state, job.worker) == (JobState.IN_FLIGHT, "w7")
    assert await queue.get("j") == job
    assert await queue.claim("w8") is None


@suite.case("States: Failed", "a Failed job is never processed again")
async def failed(env: Env) -> None:
    queue = await open_queue(env, max_retries=0)
    await queue.enqueue("j")
    job = await claimed(queue)
    await queue.nack(job.id, token_of(job), "boom")
    env.clock.advance(86_400)
    assert await queue.claim("w") is None
    after = await queue.get("j")
    assert (after.state, after.error) == (JobState.FAILED, "boom")


@suite.case("States: Succeeded", "a Succeeded job completed successfully")
async def succeeded(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    env.clock.advance(1)
    after = await queue.ack(job.id, token_of(job))
    assert (after.state, after.finished_at) == (JobState.SUCCEEDED, env.clock.now())


@suite.case("State Transitions: - → Ready (Enqueue)", "a new job is added to the queue")
async def enqueue(env: Env) -> None:
    queue = await open_queue(env)
    job = await queue.enqueue("j", {"n": 1}, queue="q")
    assert (job.state, job.queue, job.lease_version) == (JobState.READY, "q", 0)
    assert await queue.get("j") == job


@suite.case("State Transitions: Ready → InFlight (Claim)", "a worker claims the job")
async def claim(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    assert await states(queue, "j") == ["Ready"]
    await claimed(queue)
    assert await states(queue, "j") == ["InFlight"]


@suite.case("State Transitions: InFlight → Succeeded (Ack)", "the handler returns success")
async def ack(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    assert await states(queue, "j") == ["InFlight"]
    assert (await queue.ack(job.id, token_of(job))).state is JobState.SUCCEEDED
    assert await states(queue, "j") == ["Succeeded"]


@suite.case(
    "State Transitions: InFlight → Ready (Nack (retry))", "the handler fails and retries remain"
)
async def nack_retry(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    assert (await queue.nack(job.id, token_of(job), "no")).state is JobState.READY
    assert await states(queue, "j") == ["Ready"]


@suite.case(
    "State Transitions: InFlight → Failed (Nack (exhausted))",
    "the handler fails and max retries are reached",
)
async def nack_exhausted(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    seen = []
    for _ in range(4):
        job = await claimed(queue)
        seen.append((await queue.nack(job.id, token_of(job), "no")).state.value)
        env.clock.advance(30)
    assert seen == ["Ready", "Ready", "Ready", "Failed"]


@suite.case(
    "State Transitions: InFlight → Ready (Lease Timeout)",
    "a claim of any queue makes a job with a lapsed lease Ready",
)
async def lease_timeout(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j", queue="a")
    await claimed(queue, name="a")
    env.clock.advance(5)
    assert await queue.claim("w", queue="b") is None
    assert await states(queue, "j") == ["Ready"]
    assert (await claimed(queue, "w2", name="a")).lease_version == 2


@suite.case(
    "State Transitions", "no other transition exists: what is not in flight takes no ack or nack"
)
async def no_other(env: Env) -> None:
    queue = await open_queue(env, max_retries=0)
    for job_id in ("ready", "succeeded", "failed"):
        await queue.enqueue(job_id, queue=job_id)
    good = await claimed(queue, name="succeeded")
    await queue.ack(good.id, token_of(good))
    bad = await claimed(queue, name="failed")
    await queue.nack(bad.id, token_of(bad), "no")
    tokens = {"ready": "none", "succeeded": token_of(good), "failed": token_of(bad)}
    for job_id, token in tokens.items():
        before = await queue.get(job_id)
        with raises(StaleLease):
            await queue.ack(job_id, token)
        with raises(StaleLease):
            await queue.nack(job_id, token, "late")
        with raises(StaleLease):
            await queue.heartbeat(job_id, token)
        assert await queue.get(job_id) == before
