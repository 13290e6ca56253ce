"""Deleting, clearing out, and running again."""

from __future__ import annotations

from datetime import timedelta

from headrace import errors
from headrace.model import State
from headrace.policy import CancelMode, IdSource, Policies, Policy
from headrace.retry import Constant
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import finish, submit, suite, take, unchanged


@suite.case("delete", "ended jobs by id and tag; unknown ids are passed over")
async def delete(env: Env) -> None:
    manager = await env.manager()
    for name in ("a", "b", "c"):
        await submit(manager, name, tags=["x"] if name == "b" else [])
    await finish(manager, "a", "b", "c")
    gone = await manager.delete(["a", "nobody"], tags=["x"])
    assert {job.id for job in gone} == {"a", "b"}
    with raises(errors.JobNotFound):
        await manager.get("a")
    assert (await manager.stats()).total == 1


@suite.case("delete", "one that has not ended keeps them all")
async def all_or_nothing(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "ended", tags=["x"])
    await finish(manager, "ended")
    await submit(manager, "live", tags=["x"])
    before = await unchanged(manager)
    with raises(errors.NotTerminal):
        await manager.delete(tags=["x"])
    with raises(errors.NotTerminal):
        await manager.delete(["ended", "live"])
    assert await unchanged(manager) == before
    assert await manager.delete(["nobody"]) == ()


@suite.case("cleanup", "by the policies: completed after their time, the others after theirs")
async def by_policy(env: Env) -> None:
    brief = Policy(keep_completed_seconds=10.0, keep_other_seconds=None)
    manager = await env.manager(
        Policies(
            default=Policy(keep_completed_seconds=100.0, keep_other_seconds=1000.0),
            queues={"brief": brief},
        )
    )
    for name, queue in (("a", "default"), ("b", "brief")):
        await submit(manager, f"{name}-done", queue=queue)
        await finish(manager, f"{name}-done")
        await submit(manager, f"{name}-cancelled", queue=queue)
        await manager.cancel([f"{name}-cancelled"])
    await submit(manager, "live")
    env.clock.advance(10)
    assert await manager.cleanup() == {}
    env.clock.advance(1)
    assert await manager.cleanup() == {State.COMPLETED: 1}
    env.clock.advance(90)
    assert await manager.cleanup() == {State.COMPLETED: 1}
    env.clock.advance(900)
    assert await manager.cleanup() == {State.CANCELLED: 1}
    assert {job.id for job in (await manager.find()).jobs} == {"b-cancelled", "live"}


@suite.case("cleanup", "by state and age as asked, up to a limit")
async def as_asked(env: Env) -> None:
    manager = await env.manager()
    for n in range(6):
        await submit(manager, f"j{n}")
    await finish(manager, *(f"j{n}" for n in range(6)))
    env.clock.advance(5)
    assert await manager.cleanup({State.FAILED: 0.0}) == {}
    assert await manager.cleanup({State.COMPLETED: 5.0}) == {}
    assert await manager.cleanup({State.COMPLETED: 4.0}, limit=4) == {State.COMPLETED: 4}
    assert await manager.cleanup({State.COMPLETED: 4.0}) == {State.COMPLETED: 2}


@suite.case("redrive", "a failed, dead or cancelled job runs again as a new job linked to the old")
async def redrive(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1))
    await submit(manager, "dead", payload={"n": 1}, tags=["x"], priority=1, queue="q")
    _, token = await take(manager, "dead")
    await manager.fail("dead", token, "no")
    await submit(manager, "cancelled", tags=["x"])
    await manager.cancel(["cancelled"])
    answer = await manager.redrive(tags=["x"])
    again = {job.previous_id: job for job in answer.jobs}
    assert set(again) == {"dead", "cancelled"}
    new = again["dead"]
    assert new.id != "dead"
    assert (new.state, new.attempt, new.payload, new.tags, new.priority, new.queue) == (
        State.PENDING,
        0,
        {"n": 1},
        ("x",),
        1,
        "q",
    )
    assert (await manager.get("dead")).state is State.DEAD


@suite.case("redrive", "twice gives the same new job while it lives")
async def redrive_twice(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    await manager.cancel(["j"])
    first = (await manager.redrive(["j"])).job
    second = await manager.redrive(["j"])
    assert second.job.id == first.id
    assert second.created == (False,)


@suite.case("redrive", "what is not redrivable is refused by id, and nothing is submitted")
async def refused(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "live")
    await submit(manager, "cancelled")
    await manager.cancel(["cancelled"], mode=CancelMode.IMMEDIATE)
    before = await unchanged(manager)
    with raises(errors.InvalidTransition):
        await manager.redrive(["cancelled", "live"])
    with raises(errors.JobNotFound):
        await manager.redrive(["cancelled", "nobody"])
    assert await unchanged(manager) == before


@suite.case("redrive", "works whatever today's policy says to ids, timeouts and keys")
async def any_policy(env: Env) -> None:
    strict = Policy(ids=IdSource.CLIENT, key_released_when_terminal=False, timeout_seconds=None)
    manager = await env.manager(strict)
    await submit(manager, "j", backoff=Constant(initial=3.0), lifetime_seconds=500.0)
    await manager.cancel(["j"])
    env.clock.advance(50)
    first = (await manager.redrive(["j"])).job
    assert first.backoff_json == (await manager.get("j")).backoff_json
    assert first.expires_at == env.clock.now() + timedelta(seconds=500)
    await manager.cancel([first.id])
    second = await manager.redrive(["j"])
    assert second.created == (True,)
    assert second.job.id != first.id
