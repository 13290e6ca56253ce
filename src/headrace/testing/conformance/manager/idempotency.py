"""Idempotency keys: one key, one job, within its scope, its window and its release rule."""

from __future__ import annotations

import asyncio

from headrace.manager import JobManager
from headrace.model import Job, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.suite import suite, take

KEYED = JobSpec(type="t", key="k", payload=1)


async def _again(manager: JobManager) -> Job:
    return (await manager.submit(JobSpec(type="t", key="k", payload=2))).job


@suite.case("idempotency", "the same key gives the same job, as it was first submitted")
async def same_job(env: Env) -> None:
    manager = await env.manager()
    first = (await manager.submit(KEYED)).job
    answer = await manager.submit(JobSpec(type="t", key="k", payload=2))
    assert answer.job == first
    assert answer.created == (False,)
    assert (await manager.stats()).total == 1
    assert len(await manager.events()) == 1


@suite.case("idempotency", "the scope is tenant, queue, type and key")
async def scope(env: Env) -> None:
    manager = await env.manager()
    specs = [
        KEYED,
        JobSpec(type="t", key="k", tenant="other"),
        JobSpec(type="t", key="k", queue="other"),
        JobSpec(type="other", key="k"),
        JobSpec(type="t", key="other"),
    ]
    answer = await manager.submit_many(specs)
    assert len({job.id for job in answer.jobs}) == 5
    repeated = await manager.submit_many(specs)
    assert [job.id for job in repeated.jobs] == [job.id for job in answer.jobs]
    assert repeated.created == (False,) * 5


@suite.case("idempotency", "within one batch, the second of a key is the first")
async def in_batch(env: Env) -> None:
    manager = await env.manager()
    answer = await manager.submit_many([KEYED, JobSpec(type="t", id="x"), KEYED])
    assert answer.jobs[0].id == answer.jobs[2].id
    assert answer.created == (True, True, False)
    assert (await manager.stats()).total == 2


@suite.case("idempotency", "the window ends at its second")
async def window(env: Env) -> None:
    manager = await env.manager(Policy(key_window_seconds=60.0))
    first = (await manager.submit(KEYED)).job
    env.clock.advance(59.999)
    assert (await _again(manager)).id == first.id
    env.clock.advance(0.001)
    assert (await _again(manager)).id != first.id


@suite.case("idempotency", "released when terminal: a new job once the first has ended")
async def released(env: Env) -> None:
    manager = await env.manager()
    first = (await manager.submit(KEYED)).job
    _, token = await take(manager, first.id)
    assert (await _again(manager)).id == first.id
    await manager.complete(first.id, token)
    second = await _again(manager)
    assert second.id != first.id
    assert second.payload == 2
    assert (await _again(manager)).id == second.id


@suite.case("idempotency", "kept when terminal: the ended job answers until the window ends")
async def kept(env: Env) -> None:
    manager = await env.manager(Policy(key_released_when_terminal=False, key_window_seconds=60.0))
    first = (await manager.submit(KEYED)).job
    _, token = await take(manager, first.id)
    await manager.complete(first.id, token)
    again = await _again(manager)
    assert (again.id, again.state) == (first.id, State.COMPLETED)
    env.clock.advance(60)
    assert (await _again(manager)).id != first.id


@suite.case("idempotency", "a cancellation, a death and a deletion release the key too")
async def other_ends(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    first = (await manager.submit(KEYED)).job
    await manager.cancel([first.id])
    second = await _again(manager)
    assert second.id != first.id
    _, token = await take(manager, second.id)
    await manager.fail(second.id, token, "no")
    assert (await manager.get(second.id)).state is State.DEAD
    assert (await _again(manager)).id not in (first.id, second.id)


@suite.case("idempotency", "of many at once, all get one job")
async def race(env: Env) -> None:
    manager = await env.manager()
    answers = await asyncio.gather(*(manager.submit(KEYED) for _ in range(30)))
    assert len({answer.job.id for answer in answers}) == 1
    assert sum(answer.created[0] for answer in answers) == 1
    assert (await manager.stats()).total == 1


@suite.case("idempotency", "a dependency on a repeated job is a dependency on the first")
async def dependency(env: Env) -> None:
    manager = await env.manager()
    first = (await manager.submit(KEYED)).job
    await manager.submit_many(
        [JobSpec(type="t", id="second", key="k"), JobSpec(type="t", id="child", after=["second"])]
    )
    assert (await manager.get("child")).state is State.BLOCKED
    _, token = await take(manager, first.id)
    await manager.complete(first.id, token)
    assert (await manager.get("child")).state is State.PENDING


@suite.case("idempotency", "a key is any text, line breaks and all")
async def any_text(env: Env) -> None:
    manager = await env.manager()
    for key in ("a\nb", "a\u00a0b", "\U0001f469\u200d\U0001f52c", " x "):
        first = (await manager.submit(JobSpec(type="t", key=key))).job
        assert (await manager.submit(JobSpec(type="t", key=key))).job.id == first.id
