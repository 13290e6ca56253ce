"""Transition Triggers: the precondition, action and postcondition of each."""

from __future__ import annotations

from headrace.contracts.queue_semantics import DuplicateJob, Job, JobNotFound, JobState, StaleLease
from headrace.errors import InvalidInput
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    FixedDice,
    claimed,
    open_queue,
    states,
    suite,
    token_of,
)


@suite.case("Enqueue: Precondition", "an id that exists is refused in every state of that job")
async def enqueue_precondition(env: Env) -> None:
    queue = await open_queue(env, max_retries=0)
    for job_id in ("ready", "flying", "succeeded", "failed"):
        await queue.enqueue(job_id, {"first": True}, queue=job_id)
    await claimed(queue, name="flying")
    good = await claimed(queue, name="succeeded")
    await queue.ack(good.id, token_of(good))
    bad = await claimed(queue, name="failed")
    await queue.nack(bad.id, token_of(bad), "no")
    for job_id in ("ready", "flying", "succeeded", "failed"):
        before = await queue.get(job_id)
        with raises(DuplicateJob):
            await queue.enqueue(job_id, {"first": False}, queue="elsewhere")
        assert await queue.get(job_id) == before


@suite.case("Enqueue: Precondition", "an empty id, queue or job is refused and stores nothing")
async def enqueue_bad_input(env: Env) -> None:
    queue = await open_queue(env)
    for bad in ("", "  ", None, 7):
        with raises(InvalidInput):
            await queue.enqueue(bad)  # type: ignore[arg-type]  # the point of the case
    with raises(InvalidInput):
        await queue.enqueue("j", queue="")
    with raises(InvalidInput):
        await queue.enqueue("j", priority=5)
    with raises(InvalidInput):
        await queue.enqueue(Job(""))
    assert await queue.claim("w") is None
    with raises(JobNotFound):
        await queue.get("j")


@suite.case("Enqueue: Action", "a job is inserted as Ready, given as fields or as a value")
async def enqueue_action(env: Env) -> None:
    queue = await open_queue(env)
    by_fields = await queue.enqueue("a", [1, 2], "q", 1)
    by_value = await queue.enqueue(Job("b", [1, 2], "q", 1))
    unnamed = await queue.enqueue(payload=[1, 2], queue="q", priority=1)
    assert by_fields.state is by_value.state is unnamed.state is JobState.READY
    for job in (by_fields, by_value, unnamed):
        assert (job.payload, job.queue, job.priority) == ([1, 2], "q", 1)
        assert (job.retry_count, job.retry_at, job.error) == (0, None, None)
    assert unnamed.id not in ("", "a", "b")


@suite.case("Enqueue: Action", "max_retries and execution_timeout of the value are the job's own")
async def enqueue_own_limits(env: Env) -> None:
    queue = await open_queue(env, max_retries=3, execution_timeout=60, dice=FixedDice(0.0))
    plain = await queue.enqueue(Job("plain", queue="elsewhere"))
    assert (plain.max_retries, plain.execution_timeout) == (3, 60)
    once = await queue.enqueue(Job("once", max_retries=0, execution_timeout=5))
    assert (once.max_retries, once.execution_timeout) == (0, 5)
    job = await claimed(queue, name="default")
    assert (await queue.nack(job.id, token_of(job), "no")).state is JobState.FAILED
    more = await queue.enqueue(Job("more", max_retries=9))
    assert more.max_retries == 9


@suite.case("Enqueue: Precondition", "a value whose fields cannot be honoured is refused")
async def enqueue_other_fields(env: Env) -> None:
    queue = await open_queue(env, execution_timeout=60)
    now = env.clock.now()
    for bad in (
        Job("j", max_retries=-1),
        Job("j", max_retries="3"),  # type: ignore[arg-type]  # the point of the case
        Job("j", execution_timeout=0),
        Job("j", execution_timeout=61),
        Job("j", state=JobState.IN_FLIGHT),
        Job("j", lease_token="t"),  # noqa: S106 - no secret
        Job("j", lease_version=1),
        Job("j", lease_expires_at=now),
        Job("j", worker="w"),
        Job("j", retry_count=1),
        Job("j", retry_at=now),
        Job("j", error="no"),
        Job("j", enqueued_at=now),
        Job("j", finished_at=now),
    ):
        with raises(InvalidInput):
            await queue.enqueue(bad)
    with raises(JobNotFound):
        await queue.get("j")


@suite.case("Enqueue: Postcondition", "the job is claimable")
async def enqueue_postcondition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    assert (await claimed(queue)).id == "j"


@suite.case("Claim: Precondition", "retry_at must have come: not before it, but at it")
async def claim_precondition(env: Env) -> None:
    queue = await open_queue(env, dice=FixedDice(0.8))
    await queue.enqueue("j")
    job = await claimed(queue)
    ready = await queue.nack(job.id, token_of(job), "no")
    assert ready.retry_at is not None
    env.clock.advance(0.399999)
    assert await queue.claim("w") is None
    assert await states(queue, "j") == ["Ready"]
    env.clock.set(ready.retry_at)
    assert (await claimed(queue)).id == "j"


@suite.case("Claim: Precondition", "only Ready jobs are claimed; an empty queue answers None")
async def claim_only_ready(env: Env) -> None:
    queue = await open_queue(env)
    assert await queue.claim("w") is None
    await queue.enqueue("j")
    job = await claimed(queue)
    assert await queue.claim("w") is None
    await queue.ack(job.id, token_of(job))
    assert await queue.claim("w") is None
    with raises(InvalidInput):
        await queue.claim("")


@suite.case("Claim: Action", "status becomes InFlight and a lease token is assigned in one step")
async def claim_action(env: Env) -> None:
    queue = await open_queue(env)
    before = await queue.enqueue("j")
    assert before.lease_token is None
    job = await claimed(queue)
    assert job.state is JobState.IN_FLIGHT
    assert job.lease_token
    assert await queue.get("j") == job


@suite.case("Claim: Postcondition", "the job is leased to the worker that asked")
async def claim_postcondition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("a")
    await queue.enqueue("b")
    assert [(await claimed(queue, worker)).worker for worker in ("w1", "w2")] == ["w1", "w2"]
    assert [(await queue.get(job_id)).worker for job_id in ("a", "b")] == ["w1", "w2"]


@suite.case("Ack: Precondition", "the job must be InFlight and the token must match")
async def ack_precondition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    with raises(StaleLease):
        await queue.ack("j", "1.nothing")
    job = await claimed(queue)
    with raises(StaleLease):
        await queue.ack("j", token_of(job) + "0")
    assert await queue.get("j") == job
    with raises(JobNotFound):
        await queue.ack("unknown", token_of(job))


@suite.case("Ack: Action", "status becomes Succeeded")
async def ack_action(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    after = await queue.ack("j", token_of(job))
    assert (after.state, after.lease_token, after.worker) == (JobState.SUCCEEDED, None, None)


@suite.case("Ack: Postcondition", "the job is complete; nothing changes it any more")
async def ack_postcondition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    done = await queue.ack("j", token_of(job))
    with raises(StaleLease):
        await queue.ack("j", token_of(job))
    with raises(StaleLease):
        await queue.nack("j", token_of(job), "no")
    env.clock.advance(1000)
    assert await queue.recover() == ()
    assert await queue.claim("w") is None
    assert await queue.get("j") == done


@suite.case("Nack: Precondition", "the job must be InFlight and the token must match")
async def nack_precondition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    with raises(StaleLease):
        await queue.nack("j", "1.nothing", "no")
    job = await claimed(queue)
    with raises(StaleLease):
        await queue.nack("j", "", "no")
    assert await queue.get("j") == job
    with raises(JobNotFound):
        await queue.nack("unknown", token_of(job), "no")


@suite.case("Nack: Action: retries < MaxRetries", "Ready, retry count + 1, and a computed retry_at")
async def nack_action_retry(env: Env) -> None:
    queue = await open_queue(env, dice=FixedDice(0.5))
    await queue.enqueue("j")
    for count in (1, 2, 3):
        job = await claimed(queue)
        now = env.clock.now()
        after = await queue.nack("j", token_of(job), f"error {count}")
        assert (after.state, after.retry_count) == (JobState.READY, count)
        assert after.error == f"error {count}"
        assert after.retry_at is not None
        assert (after.retry_at - now).total_seconds() == 0.25 * 2 ** (count - 1)
        env.clock.set(after.retry_at)


@suite.case("Nack: Action: retries >= MaxRetries", "Failed, with no retry_at")
async def nack_action_exhausted(env: Env) -> None:
    queue = await open_queue(env, max_retries=1)
    await queue.enqueue("j")
    job = await claimed(queue)
    await queue.nack("j", token_of(job), "no")
    env.clock.advance(30)
    job = await claimed(queue)
    assert (job.retry_count, job.max_retries) == (1, 1)
    after = await queue.nack("j", token_of(job), "no")
    assert (after.state, after.retry_count, after.retry_at) == (JobState.FAILED, 1, None)


@suite.case("Nack: Postcondition", "whatever the error, it is a retry or a permanent failure")
async def nack_postcondition(env: Env) -> None:
    queue = await open_queue(env, max_retries=1)
    errors: list[Exception | str] = [ValueError("bad"), TimeoutError(), "text"]
    for number, error in enumerate(errors):
        name = f"q{number}"
        await queue.enqueue(name, queue=name)
        for expected in (JobState.READY, JobState.FAILED):
            job = await claimed(queue, name=name)
            assert (await queue.nack(name, token_of(job), error)).state is expected
            env.clock.advance(30)


@suite.case("Lease Timeout / Recovery: Precondition", "the lease must have expired")
async def timeout_precondition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    env.clock.advance(4.999999)
    assert await queue.recover() == ()
    assert await queue.claim("w2") is None
    assert await queue.get("j") == job


@suite.case("Lease Timeout / Recovery: Action", "implicit: claimable again under the same id")
async def timeout_action(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j", {"n": 1})
    first = await claimed(queue, "w1")
    env.clock.advance(5)
    again = await claimed(queue, "w2")
    assert (again.id, again.payload) == (first.id, {"n": 1})


@suite.case("Lease Timeout / Recovery: Postcondition", "the job is reclaimed by the new worker")
async def timeout_postcondition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    first = await claimed(queue, "w1")
    env.clock.advance(5)
    second = await claimed(queue, "w2")
    assert (second.state, second.worker) == (JobState.IN_FLIGHT, "w2")
    assert second.lease_token != first.lease_token
    assert (await queue.ack("j", token_of(second))).state is JobState.SUCCEEDED


@suite.case("Claim: Precondition", "what is no queue and no list of queues is refused")
async def claim_bad_queue(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    for bad in (5, True, object(), [5], [None], [["default"]], "", [""], b"default"):
        with raises(InvalidInput):
            await queue.claim("w", queue=bad)  # type: ignore[arg-type]  # the point of the case
    assert await states(queue, "j") == ["Ready"]
