"""Submitting: defaults from the policy, order, and all or nothing."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta, timezone

from msgspec.structs import replace

from headrace.errors import (
    DuplicateJob,
    InvalidBatch,
    InvalidId,
    PayloadTooLarge,
    StaleToken,
)
from headrace.manager import JobManager
from headrace.model import Priority, State
from headrace.policy import IdSource, OnDuplicateId, Policies, Policy
from headrace.retry import Constant
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take, unchanged


@suite.case("submit", "a bare job gets its queue's policy and a random UUID")
async def defaults(env: Env) -> None:
    slow = Policy(lease_seconds=99.0, max_attempts=None, timeout_seconds=7.0, lifetime_seconds=None)
    manager = await env.manager(Policies(queues={"slow": slow}))
    job = (await manager.submit(JobSpec(type="t"))).job
    assert uuid.UUID(job.id).version == 4
    assert (job.queue, job.tenant, job.priority, job.state) == (
        "default",
        "default",
        Priority.NORMAL,
        State.PENDING,
    )
    assert (job.max_attempts, job.lease_seconds, job.timeout_seconds) == (3, 30.0, 1800.0)
    assert job.run_at == job.created_at == job.updated_at == env.clock.now()
    assert job.expires_at == env.clock.now() + timedelta(days=7)
    other = (await manager.submit(JobSpec(type="t", queue="slow"))).job
    assert (other.max_attempts, other.lease_seconds, other.timeout_seconds, other.expires_at) == (
        None,
        99.0,
        7.0,
        None,
    )


@suite.case("submit", "every field that is given is kept")
async def given(env: Env) -> None:
    manager = await env.manager()
    east = timezone(timedelta(hours=3))
    job = await submit(
        manager,
        "j",
        payload={"a": [1, None, "é"], "b": 2.5},
        priority=Priority.BULK,
        tags={"team": "x", "n": 1},
        run_at=datetime(2027, 5, 1, 12, tzinfo=east),
        max_attempts=9,
        lease_seconds=5.5,
        timeout_seconds=60.0,
        lifetime_seconds=3600.0,
        backoff=Constant(initial=4.0, jitter=False),
        correlation_id="trace-1",
        callback_url="https://example.org/x",
    )
    read = await manager.get("j")
    assert read == job
    assert read.payload == {"a": [1, None, "é"], "b": 2.5}
    assert read.tags == ("n=1", "team=x")
    assert read.run_at == datetime(2027, 5, 1, 9, tzinfo=UTC)
    assert (read.max_attempts, read.correlation_id) == (9, "trace-1")
    assert read.expires_at == env.clock.now() + timedelta(hours=1)


@suite.case("submit", "payloads of every JSON kind and bytes come back equal")
async def payloads(env: Env) -> None:
    manager = await env.manager()
    samples = [
        None,
        True,
        0,
        -1.5,
        "",
        "ünï ☃",
        [],
        [1, [2]],
        {},
        {"k": {"n": None}},
        b"",
        b"\x00\xff",
    ]
    for number, payload in enumerate(samples):
        job = await submit(manager, f"j{number}", payload=payload)
        assert (await manager.get(job.id)).payload == payload


@suite.case("submit", "the payload is immutable: nothing that happens to the job changes it")
async def immutable(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j", payload={"n": 1})
    _, token = await take(manager, "j")
    await manager.fail("j", token, "no", retry_after=0)
    _, token = await take(manager, "j")
    await manager.complete("j", token, {"r": 2})
    assert (await manager.get("j")).payload == {"n": 1}


@suite.case("submit_many", "order is kept in the answer and in the queue")
async def order(env: Env) -> None:
    manager = await env.manager()
    specs = [JobSpec(type="t", id=f"j{n:03}") for n in range(150)]
    answer = await manager.submit_many(specs)
    wanted = [spec.id for spec in specs]
    assert [job.id for job in answer.jobs] == wanted
    assert answer.created == (True,) * 150
    assert [job.id for job in await manager.claim("w", limit=1000)] == wanted


@suite.case("submit_many", "nothing at all for an empty batch")
async def empty(env: Env) -> None:
    manager = await env.manager()
    assert (await manager.submit_many([])).jobs == ()


@suite.case("submit_many", "a batch with one bad job stores nothing and says which it was")
async def one_bad(env: Env) -> None:
    manager = await env.manager()
    before = await unchanged(manager)
    with raises(InvalidBatch) as caught:
        await manager.submit_many([JobSpec(type="t"), JobSpec(type="t"), JobSpec(type="", id="x")])
    assert isinstance(caught.error, InvalidBatch)
    assert caught.error.index == 2
    assert "nothing was stored" in caught.error.message
    assert await unchanged(manager) == before


@suite.case("submit_many", "an id that is stored already stores nothing")
async def stored_id(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    before = await unchanged(manager)
    with raises(DuplicateJob):
        await submit(manager, "j")
    with raises(InvalidBatch) as caught:
        await manager.submit_many([JobSpec(type="t", id="k"), JobSpec(type="t", id="j")])
    assert isinstance(caught.error, InvalidBatch)
    assert isinstance(caught.error.cause, DuplicateJob)
    with raises(InvalidBatch):
        await manager.submit_many([JobSpec(type="t", id="k"), JobSpec(type="t", id="k")])
    assert await unchanged(manager) == before


@suite.case("submit_many", "where the policy says so, a repeated id gives the stored job")
async def repeated_id(env: Env) -> None:
    manager = await env.manager(Policy(on_duplicate_id=OnDuplicateId.EXISTING))
    first = await submit(manager, "j", payload=1)
    answer = await manager.submit_many(
        [JobSpec(type="t", id="k"), JobSpec(type="t", id="j", payload=2)]
    )
    assert answer.created == (True, False)
    assert answer.jobs[1] == first
    assert (await manager.stats()).total == 2


@suite.case("submit", "ids are named by whom the policy says")
async def id_source(env: Env) -> None:
    manager = await env.manager(
        Policies(queues={"s": Policy(ids=IdSource.SERVER), "c": Policy(ids=IdSource.CLIENT)})
    )
    with raises(InvalidId):
        await manager.submit(JobSpec(type="t", queue="s", id="mine"))
    with raises(InvalidId):
        await manager.submit(JobSpec(type="t", queue="c"))
    assert (await manager.submit(JobSpec(type="t", queue="c", id="mine"))).job.id == "mine"


@suite.case("spawn", "a running job submits children of its own, and only while it holds its lease")
async def spawn(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "mother", tenant="acme")
    _, token = await take(manager, "mother")
    answer = await manager.spawn(
        "mother", token, [JobSpec(type="t", id="c1"), JobSpec(type="t", id="c2")]
    )
    assert [(job.parent_id, job.tenant) for job in answer.jobs] == [("mother", "acme")] * 2
    before = await unchanged(manager)
    with raises(StaleToken):
        await manager.spawn("mother", "stale", [JobSpec(type="t", id="c3")])
    assert await unchanged(manager) == before
    await _no_lease(manager, token)


async def _no_lease(manager: JobManager, token: str) -> None:
    await manager.complete("mother", token)
    with raises(Exception) as caught:
        await manager.spawn("mother", token, [JobSpec(type="t", id="c3")])
    assert getattr(caught.error, "code", "") == "JOB_TERMINAL"


@suite.case("submit", "from many tasks at once: every job is stored once")
async def concurrent(env: Env) -> None:

    manager = await env.manager()
    await asyncio.gather(*(submit(manager, f"j{n}") for n in range(60)))
    assert (await manager.stats()).total == 60
    assert len(await manager.claim("w", limit=100)) == 60


@suite.case("submit", "of many submitted at once, one that is refused touches no other")
async def refused_among_others(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "there")
    specs = [JobSpec(type="t", id="there" if n == 7 else f"j{n}") for n in range(20)]
    answers = await asyncio.gather(*map(manager.submit, specs), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert [type(error) for error in refused] == [DuplicateJob]
    assert isinstance(answers[7], DuplicateJob)
    assert (await manager.stats()).total == 20


@suite.case("submit", "many at once under one idempotency key are one job")
async def one_key_at_once(env: Env) -> None:
    manager = await env.manager()
    answers = await asyncio.gather(
        *(manager.submit(JobSpec(type="t", key="k", payload=n)) for n in range(12))
    )
    assert len({answer.job.id for answer in answers}) == 1
    assert sum(answer.created[0] for answer in answers) == 1
    assert (await manager.stats()).total == 1


@suite.case("submit", "a job like the one before differs in nothing but what it was given")
async def alike(env: Env) -> None:
    manager = await env.manager(Policies(default=Policy(payload_bytes_max=100)))
    tags = ("a", "b")
    first, second = [
        (
            await manager.submit(
                JobSpec(type="t", tags=tags, payload=payload, delay_seconds=5, lease_seconds=9)
            )
        ).job
        for payload in (1, {"two": 2})
    ]
    assert first.id != second.id
    assert second == replace(first, id=second.id, seq=second.seq, payload_json=b'{"two":2}')
    one, other = [
        event for event in await manager.events() if event.job_id in (first.id, second.id)
    ]
    assert other == replace(
        one, seq=other.seq, cursor=other.cursor, job_id=second.id, payload_bytes=len(b'{"two":2}')
    )
    with raises(PayloadTooLarge):
        await manager.submit(JobSpec(type="t", tags=tags, payload="x" * 100, delay_seconds=5))
    env.clock.advance(60.0)
    later = (await manager.submit(JobSpec(type="t", tags=tags, payload=3, lease_seconds=9))).job
    assert later.run_at == later.created_at == env.clock.now()
    assert later.expires_at == env.clock.now() + timedelta(days=7)
