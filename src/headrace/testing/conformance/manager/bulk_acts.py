"""Acts on many jobs that are stored and carried on by anybody: each job once, whoever dies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from headrace import errors
from headrace.limits import QueueLimits, Rate
from headrace.manager import Act, BulkAct, JobManager, Matching, Progress
from headrace.model import Event, EventKind, State
from headrace.policy import CancelMode, Policy
from headrace.spec import JobSpec
from headrace.stores.base import EventQuery
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite

POLICY = Policy(lease_seconds=10.0, max_attempts=1)
DEAD = Matching(states=[State.DEAD])


async def dead(manager: JobManager, count: int, **fields: Any) -> None:
    """So many jobs that died of the same error."""
    await manager.submit_many([JobSpec(type="t", **fields) for _ in range(count)])
    for job in await manager.claim("w", limit=count):
        await manager.fail(job.id, job.token, f"row {job.seq} is bad", code="ValueError")


async def through(manager: JobManager, act: BulkAct) -> BulkAct:
    while not (told := await manager.bulk_act(act.id)).has_ended:
        await manager.run_bulk_acts()
    return told


@suite.case("bulk acts", "a redrive of all that match makes each again once, tagged and linked")
async def redriven(env: Env) -> None:
    manager = await env.manager(POLICY)
    await dead(manager, 7, payload={"to": "a", "retries": 1})
    await submit(manager, "other")
    planned = await manager.plan_bulk("redrive", DEAD)
    assert (planned.dry_run, planned.done, planned.at_least) == (True, 7, False)
    assert [one.message for one in planned.groups] == ["row <n> is bad"]
    act = await manager.start_bulk("redrive", DEAD, patch={"to": "b", "retries": None}, expected=7)
    assert (act.progress, act.done, act.expected, act.is_patched) == (Progress.RUNNING, 0, 7, True)
    told = await through(manager, act)
    assert (told.progress, told.done, dict(told.left)) == (Progress.DONE, 7, {})
    assert [(one.jobs, one.code) for one in told.groups] == [(7, "ValueError")]
    made = (await manager.find(tags=[act.tag])).jobs
    assert len({job.previous_id for job in made}) == len(made) == 7
    assert {job.payload["to"] for job in made} == {"b"}
    assert all("retries" not in job.payload for job in made)
    again = await through(manager, await manager.start_bulk("redrive", DEAD))
    assert (again.done, dict(again.left)) == (0, {"redriven before": 7})
    assert [one.id for one in await manager.bulk_acts()] == [again.id, act.id] or (
        again.created_at == act.created_at
    )


@suite.case("bulk acts", "cancel, delete and priority by filter, with what was left and why")
async def others(env: Env) -> None:
    manager = await env.manager(POLICY)
    for number in range(5):
        await submit(manager, f"j{number}", queue="q", priority=3 if number else 1)
    await manager.claim("w", limit=1)
    where = Matching(queues=["q"])
    act = await manager.start_bulk(Act.PRIORITY, where, priority=1)
    told = await through(manager, act)
    assert (told.done, dict(told.left)) == (4, {"had it already": 1})
    assert {job.priority for job in (await manager.find(queues=["q"])).jobs} == {1}
    act = await manager.start_bulk(Act.CANCEL, where, mode=CancelMode.NOT_STARTED, reason="no more")
    told = await through(manager, act)
    assert (told.done, dict(told.left)) == (4, {"running": 1})
    job = await manager.get("j4")
    assert job.failure is not None
    assert (job.state, job.failure.message) == (State.CANCELLED, "no more")
    told = await through(manager, await manager.start_bulk(Act.DELETE, where))
    assert told.done == 4
    assert [job.id for job in (await manager.find(queues=["q"])).jobs] == ["j0"]


@suite.case("bulk acts", "cut off before or after any write, it goes on and counts each job once")
async def cut_off(env: Env) -> None:
    manager = await env.manager(POLICY)
    await dead(manager, 6)
    start: list[tuple[str, Callable[[], Awaitable[BulkAct]]]] = [
        ("put_record", lambda: manager.start_bulk("redrive", DEAD, rate=Rate(1000))),
        (
            "delete_record",
            lambda: manager.start_bulk("priority", Matching(states=["pending"]), priority=0),
        ),
        ("insert", lambda: manager.start_bulk("redrive", Matching(states=["cancelled"]))),
        ("commit", lambda: manager.start_bulk("cancel", Matching(states=["pending"]))),
    ]
    for verb, begin in (start[0], start[1], start[3], start[2]):
        act = await begin()
        for after in (False, True) * 3:
            await _cut(manager, verb, after=after)
        env.clock.advance(1)
        told = await through(manager, act)
        assert (told.done, dict(told.left)) == (6, {}), verb
    made = (await manager.find(states=["pending"])).jobs
    assert len(made) == 6
    assert len({job.previous_id for job in made}) == 6
    enqueued = [one for one in await _all_events(manager) if one.kind is EventKind.ENQUEUED]
    assert len(enqueued) == 6 * 3


class Cut(Exception):
    pass


async def _cut(manager: JobManager, verb: str, *, after: bool) -> None:
    """One run that dies at its first call of this verb: before it is made, or before its answer comes."""
    store = manager.store
    real = getattr(store, verb)

    async def dies(*args: Any) -> Any:
        if after:
            await real(*args)
        raise Cut

    setattr(store, verb, dies)
    try:
        await manager.run_bulk_acts()
    except Cut:
        pass
    finally:
        delattr(store, verb)


async def _all_events(manager: JobManager) -> list[Event]:
    found: list[Event] = []
    while page := await manager.store.events(
        EventQuery(after=found[-1].cursor if found else "", limit=1000)
    ):
        found += page
    return found


@suite.case("bulk acts", "at a rate it does no more than that in a second")
async def at_a_rate(env: Env) -> None:
    manager = await env.manager(POLICY)
    await dead(manager, 10)
    act = await manager.start_bulk("redrive", DEAD, rate=Rate(3))
    done = []
    for _ in range(5):
        for _ in range(3):
            await manager.run_bulk_acts()
        done.append((await manager.bulk_act(act.id)).done)
        env.clock.advance(1)
    assert done[0] <= 3
    assert all(later - earlier <= 3 for earlier, later in pairwise(done))
    assert done[-1] == 10


@suite.case("bulk acts", "one that is cancelled ends, and what it has done is counted")
async def cancelled(env: Env) -> None:
    manager = await env.manager(POLICY)
    await dead(manager, 10)
    act = await manager.start_bulk("redrive", DEAD, rate=Rate(3))
    await manager.run_bulk_acts()
    told = await manager.cancel_bulk(act.id)
    assert (told.progress, told.done) == (Progress.CANCELLED, 3)
    assert len((await manager.find(tags=[act.tag])).jobs) == 3
    assert await manager.cancel_bulk(act.id) == told
    assert (await manager.run_bulk_acts()).jobs == 0


@suite.case("bulk acts", "jobs of one error group are meant by its fingerprint")
async def of_a_group(env: Env) -> None:
    manager = await env.manager(POLICY)
    begin = env.clock.now()
    await dead(manager, 3)
    await submit(manager, "odd")
    (job,) = await manager.claim("w")
    await manager.fail("odd", job.token, "no route", code="OSError")
    await manager.roll_up()
    env.clock.advance(1)
    bad, odd = (await manager.error_groups(begin)).groups
    assert (bad.count, odd.sample) == (3, "odd")
    told = await through(
        manager, await manager.start_bulk("redrive", Matching(error_group=odd.fingerprint))
    )
    assert told.done == 1
    planned = await manager.plan_bulk("redrive", Matching(error_group=bad.fingerprint))
    assert planned.done == 3


@suite.case("bulk acts", "a queue that is full is waited for; nothing is lost or made twice")
async def full(env: Env) -> None:
    manager = await env.manager(POLICY)
    await dead(manager, 4, queue="q")
    await manager.set_limits("q", QueueLimits(waiting_jobs_max=4))
    for number in range(2):
        await submit(manager, f"w{number}", queue="q")
    env.clock.advance(2)
    act = await manager.start_bulk("redrive", DEAD)
    await manager.run_bulk_acts()
    assert (await manager.bulk_act(act.id)).done == 0
    await manager.cancel(["w0", "w1"])
    env.clock.advance(10)
    assert (await through(manager, act)).done == 4


@suite.case("bulk acts", "of a tenant they are about its own jobs, and nobody else's to see")
async def of_tenants(env: Env) -> None:
    manager = await env.manager(POLICY)
    for tenant in ("other", "acme"):
        await submit(manager, f"of-{tenant}", tenant=tenant)
    acme, other = manager.scoped("acme"), manager.scoped("other")
    act = await acme.start_bulk("cancel", Matching(states=["pending"]))
    assert await other.bulk_acts() == ()
    for verb in (other.bulk_act, other.cancel_bulk):
        with raises(errors.BulkActNotFound):
            await verb(act.id)
    assert (await other.run_bulk_acts()).jobs == 0
    assert (await through(manager, act)).done == 1
    assert (await manager.get("of-acme")).state is State.CANCELLED
    assert (await manager.get("of-other")).state is State.PENDING


@suite.case("bulk acts", "what cannot be is refused, and nothing is stored")
async def refused(env: Env) -> None:
    manager = await env.manager(POLICY)
    for act, where, said in (
        ("cancel", Matching(), {}),
        ("priority", DEAD, {"priority": 1}),
        ("priority", Matching(states=["pending"]), {}),
        ("delete", DEAD, {"reason": "no"}),
        ("redrive", DEAD, {"mode": "cooperative"}),
        ("cancel", Matching(states=["pending"]), {"patch": {}}),
        ("explode", DEAD, {}),
    ):
        with raises(errors.InvalidInput):
            await manager.start_bulk(act, where, **said)
    assert await manager.bulk_acts() == ()


@suite.case("redrive", "with another payload the new job has that, and the old one its own")
async def other_payload(env: Env) -> None:
    manager = await env.manager(POLICY)
    await dead(manager, 1, id="a", payload={"n": 1})
    (made,) = (await manager.redrive(["a"], payload={"n": 2})).jobs
    assert ((await manager.get(made.id)).payload, made.previous_id) == ({"n": 2}, "a")
    assert (await manager.get("a")).payload == {"n": 1}
