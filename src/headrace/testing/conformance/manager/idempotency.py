"""Idempotency keys: one key, one job, within its scope, its window and its release rule."""

from __future__ import annotations

import asyncio

from headrace.errors import InvalidInput, InvalidLimit
from headrace.manager import JobManager
from headrace.model import Job, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import suite, take, unchanged

KEYED = JobSpec(type="t", key="k", payload=1)
ORDER = JobSpec(type="confirm", key="order-1", key_hold_seconds=86_400, payload={"order": 1})


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


@suite.case("idempotency", "a key held for a time answers for so long, ended or not")
async def held_for_a_time(env: Env) -> None:
    manager = await env.manager()
    twice_at_once = await asyncio.gather(manager.submit(ORDER), manager.submit(ORDER))
    (first,) = {answer.job.id for answer in twice_at_once}
    _, token = await take(manager, first)
    await manager.complete(first, token)
    env.clock.advance(30)
    again = await manager.submit(ORDER)
    assert (again.job.id, again.job.state, again.created) == (first, State.COMPLETED, (False,))
    env.clock.advance(86_369.999)
    assert (await manager.submit(ORDER)).job.id == first
    assert (await manager.stats()).total == 1
    env.clock.advance(0.001)
    assert (await manager.submit(ORDER)).job.id != first


@suite.case("idempotency", "a time of its own may be shorter or longer than the queue's window")
async def own_time(env: Env) -> None:
    manager = await env.manager(Policy(key_window_seconds=60.0))
    for key, seconds in (("short", 10.0), ("long", 600.0)):
        spec = JobSpec(type="t", key=key, key_hold_seconds=seconds)
        first = (await manager.submit(spec)).job.id
        await manager.cancel([first])
        env.clock.advance(seconds - 0.001)
        assert (await manager.submit(spec)).job.id == first
        env.clock.advance(0.001)
        assert (await manager.submit(spec)).job.id != first


@suite.case("idempotency", "the first submission says how long its key is held")
async def first_says(env: Env) -> None:
    manager = await env.manager()
    first = (await manager.submit(ORDER)).job.id
    await manager.submit(JobSpec(type="confirm", key="order-1", key_hold_seconds=1))
    await manager.cancel([first])
    env.clock.advance(3600)
    assert (await manager.submit(ORDER)).job.id == first
    await manager.delete([first])
    assert (await manager.submit(ORDER)).job.id != first, "a deleted job holds nothing"


@suite.case("idempotency", "a time without a key, or one that is none, is refused")
async def bad_times(env: Env) -> None:
    manager = await env.manager()
    before = await unchanged(manager)
    with raises(InvalidInput):
        await manager.submit(JobSpec(type="t", key_hold_seconds=60))
    with raises(InvalidInput):
        await manager.submit_batch([JobSpec(type="t", key_hold_seconds=60)], batch_id="b")
    for bad in (0, -1, float("inf"), float("nan"), "a day", True):
        with raises(InvalidLimit, InvalidInput):
            await manager.submit(JobSpec(type="t", key="k", key_hold_seconds=bad))
    assert await unchanged(manager) == before
