"""Lease Semantics: basics, duration, extension, expiry, and what the execution timeout is not."""

from __future__ import annotations

from datetime import timedelta

from headrace.contracts.queue_semantics import JobState, StaleLease
from headrace.errors import InvalidInput
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.queue_semantics.suite import (
    claimed,
    open_queue,
    states,
    suite,
    token_of,
)


@suite.case("Lease Basics", "a claim gives a token, a version and an expiry")
async def basics(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    assert (job.lease_version, job.lease_expires_at) == (
        1,
        env.clock.now() + timedelta(seconds=5),
    )
    assert isinstance(job.lease_token, str)


@suite.case("Lease Basics", "the version only grows; acks, nacks and heartbeats leave it alone")
async def version_grows_by_claims(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    assert (await queue.heartbeat("j", token_of(job))).lease_version == 1
    assert (await queue.nack("j", token_of(job), "no")).lease_version == 1
    env.clock.advance(30)
    job = await claimed(queue)
    assert job.lease_version == 2
    assert (await queue.ack("j", token_of(job))).lease_version == 2


@suite.case("Lease Duration (TTL)", "LeaseTTL is 5 s by default and can be set")
async def duration(env: Env) -> None:
    for option, expected in (({}, 5.0), ({"lease_ttl": 30}, 30.0)):
        queue = await open_queue(env, **option)
        name = f"q{expected}"
        await queue.enqueue(name, queue=name)
        job = await claimed(queue, name=name)
        assert job.lease_expires_at == env.clock.now() + timedelta(seconds=expected)
    for bad in (0, -1, float("inf")):
        with raises(InvalidInput):
            await open_queue(env, lease_ttl=bad)


@suite.case("Lease Duration (TTL)", "the lease runs from the claim, not from the enqueue")
async def runs_from_the_claim(env: Env) -> None:
    queue = await open_queue(env, lease_ttl=timedelta(seconds=2))
    await queue.enqueue("j")
    env.clock.advance(100)
    job = await claimed(queue)
    assert job.lease_expires_at == env.clock.now() + timedelta(seconds=2)


@suite.case("Lease Fencing", "ack and nack need the matching token; a stale one is StaleLease")
async def lease_fencing(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    for write in (queue.ack, queue.nack):
        with raises(StaleLease) as caught:
            await write("j", "0.stale")
        assert getattr(caught.error, "code", None) == "STALE_LEASE"
    assert await queue.get("j") == job


@suite.case("Lease Extension (Heartbeat)", "the interval is a third of LeaseTTL")
async def interval(env: Env) -> None:
    assert round((await open_queue(env)).heartbeat_interval, 2) == 1.67
    assert (await open_queue(env, lease_ttl=30)).heartbeat_interval == 10


@suite.case("Lease Extension (Heartbeat)", "each heartbeat lets the lease last LeaseTTL from now")
async def extension(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    for _ in range(10):
        env.clock.advance(queue.heartbeat_interval)
        beaten = await queue.heartbeat("j", token_of(job))
        assert beaten.lease_expires_at == env.clock.now() + timedelta(seconds=5)
        assert beaten.lease_token == job.lease_token
        assert await queue.claim("w2") is None
    assert (await queue.ack("j", token_of(job))).state is JobState.SUCCEEDED


@suite.case("Lease Extension (Heartbeat)", "when heartbeats stop, the lease lapses LeaseTTL later")
async def extension_ends(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    env.clock.advance(4)
    await queue.heartbeat("j", token_of(job))
    env.clock.advance(4.999999)
    assert await queue.claim("w2") is None
    env.clock.advance(0.000001)
    assert (await claimed(queue, "w2")).lease_version == 2


@suite.case("Lease Extension (Heartbeat)", "it stops being possible when the job completes")
async def stop_condition(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    done = await queue.ack("j", token_of(job))
    with raises(StaleLease):
        await queue.heartbeat("j", token_of(job))
    assert await queue.get("j") == done


@suite.case("Lease Expiry and Reclaim: 1", "the job remains InFlight in the store")
async def expiry_1(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    job = await claimed(queue)
    env.clock.advance(500)
    assert await queue.get("j") == job
    assert job.state is JobState.IN_FLIGHT


@suite.case(
    "Lease Expiry and Reclaim: 2", "the job is available to a new claim, ahead of newer ones"
)
async def expiry_2(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("old")
    await claimed(queue, "w1")
    env.clock.advance(5)
    await queue.enqueue("new")
    assert (await claimed(queue, "w2")).id == "old"


@suite.case("Lease Expiry and Reclaim: 3", "the new claim has a new token and the next version")
async def expiry_3(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    first = await claimed(queue, "w1")
    env.clock.advance(5)
    second = await claimed(queue, "w2")
    assert second.lease_token != first.lease_token
    assert second.lease_version == first.lease_version + 1


@suite.case("Lease Expiry and Reclaim: 4", "the old worker's commits are rejected")
async def expiry_4(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    first = await claimed(queue, "w1")
    env.clock.advance(5)
    second = await claimed(queue, "w2")
    for write in (queue.ack, queue.nack, queue.heartbeat):
        with raises(StaleLease):
            await write("j", token_of(first))
    assert await queue.get("j") == second


@suite.case(
    "Lease Expiry and Reclaim: 5", "several workers may process the job; one outcome stands"
)
async def expiry_5(env: Env) -> None:
    queue = await open_queue(env)
    await queue.enqueue("j")
    tokens = []
    for worker in ("w1", "w2", "w3"):
        tokens.append(token_of(await claimed(queue, worker)))
        env.clock.advance(4.9 if worker == "w3" else 5)
    outcomes = []
    for token in tokens:
        try:
            outcomes.append((await queue.ack("j", token)).state.value)
        except StaleLease:
            outcomes.append("stale")
    assert outcomes == ["stale", "stale", "Succeeded"]


@suite.case("Separation of Concerns", "the execution timeout is 5 minutes, whatever the lease")
async def separate_values(env: Env) -> None:
    queue = await open_queue(env, lease_ttl=30)
    assert (await queue.enqueue("a")).execution_timeout == 300.0
    other = await open_queue(env, lease_ttl=30, execution_timeout=timedelta(minutes=10))
    job = await other.enqueue("b")
    assert job.execution_timeout == 600.0
    assert other.policy.lease_seconds == 30.0


@suite.case(
    "Separation of Concerns", "a five-minute job that beats every 10 s keeps its 30 s lease"
)
async def long_work_short_lease(env: Env) -> None:
    queue = await open_queue(env, lease_ttl=30)
    await queue.enqueue("j")
    job = await claimed(queue)
    for _ in range(30):
        env.clock.advance(queue.heartbeat_interval)
        await queue.heartbeat("j", token_of(job))
        assert await queue.claim("w2") is None
    assert await states(queue, "j") == ["InFlight"]
    assert (await queue.ack("j", token_of(job))).state is JobState.SUCCEEDED


@suite.case("Separation of Concerns", "the job is reclaimed when its heartbeats stop")
async def reclaimed_when_beats_stop(env: Env) -> None:
    queue = await open_queue(env, lease_ttl=30)
    await queue.enqueue("j")
    job = await claimed(queue)
    for _ in range(3):
        env.clock.advance(10)
        await queue.heartbeat("j", token_of(job))
    env.clock.advance(30)
    assert (await claimed(queue, "w2")).lease_version == 2
