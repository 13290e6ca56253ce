"""Schedules: one job per tick, whoever fires, whatever happens in between."""

from __future__ import annotations

import asyncio
import importlib.util
from datetime import datetime, timedelta
from typing import Any

from headrace import errors
from headrace.crypto import KeyRing
from headrace.manager import JobManager
from headrace.manager.schedule_records import KIND
from headrace.model import Job, State
from headrace.policy import IdSource, OnDuplicateId, Policies, Policy
from headrace.schedules import Cron, Every, Misfire
from headrace.spec import JobSpec
from headrace.stores.base import Record
from headrace.testing.conformance.kit import CaseFunction, Env, raises
from headrace.testing.conformance.manager.suite import suite, unchanged

HOURLY = Cron("0 * * * *")
JOB = JobSpec(type="report", payload={"n": 1}, queue="q", priority=1, tags=["x"], max_attempts=7)


async def _jobs(manager: JobManager) -> tuple[Job, ...]:
    return (await manager.find(limit=10_000)).jobs


async def _ticks(manager: JobManager) -> list[datetime]:
    return sorted(job.run_at for job in await _jobs(manager))


def _later(env: Env, **span: float) -> datetime:
    return env.clock.now() + timedelta(**span)


@suite.case("schedule", "a tick becomes a job as described, due at the tick, tagged with the name")
async def fires(env: Env) -> None:
    manager = await env.manager()
    first = _later(env, hours=1)
    schedule = await manager.schedule("nightly", HOURLY, JOB)
    assert await manager.schedules() == (schedule,)
    env.clock.advance(3599.9)
    fired = await manager.fire_schedules()
    assert (fired.jobs, fired.next_due) == ((), first)
    env.clock.advance(0.2)
    fired = await manager.fire_schedules()
    (job,) = fired.jobs
    assert fired.next_due == first + timedelta(hours=1)
    assert (job.type, job.payload, job.queue, job.priority) == ("report", {"n": 1}, "q", 1)
    assert (job.tags, job.max_attempts) == (("schedule=nightly", "x"), 7)
    assert (job.state, job.run_at, job.created_at) == (State.PENDING, first, env.clock.now())
    assert [one.id for one in await manager.claim("w")] == [job.id]
    (schedule,) = await manager.schedules()
    assert (schedule.last_tick, schedule.done_until) == (first, first)
    assert (await manager.fire_schedules()).jobs == ()


@suite.case("schedule", "an interval counts from its creation and does not fire at once")
async def interval(env: Env) -> None:
    manager = await env.manager()
    start = env.clock.now()
    await manager.schedule("often", Every(90), JOB)
    assert (await manager.fire_schedules()).next_due == start + timedelta(seconds=90)
    for _ in range(3):
        env.clock.advance(90)
        await manager.fire_schedules()
    assert await _ticks(manager) == [start + timedelta(seconds=90 * n) for n in (1, 2, 3)]


@suite.case("schedule", "of many that fire the same ticks, all together make one job of each")
async def many_hosts(env: Env) -> None:
    manager = await env.manager()
    for number in range(5):
        await manager.schedule(f"s{number}", Every(60), JOB)
    for _ in range(3):
        env.clock.advance(60)
        rounds = await asyncio.gather(*(manager.fire_schedules() for _ in range(8)))
        assert sum(len(one.jobs) for one in rounds) == 5
        assert not any(one.unfired for one in rounds)
    assert len(await _jobs(manager)) == 15
    assert {one.last_tick for one in await manager.schedules()} == {env.clock.now()}


async def _forget(manager: JobManager, before: Record) -> None:
    """Put the schedule back to where it was, as if its host had died before it moved on."""
    (record,) = await manager.store.records(KIND)
    assert await manager.store.put_record(
        Record(kind=KIND, name=record.name, version=record.version, body_json=before.body_json)
    )


@suite.case("schedule", "a crash after the submission makes no second job, whatever became of it")
async def crash(env: Env) -> None:
    for policy in (
        Policy(),
        Policy(ids=IdSource.SERVER),
        Policy(ids=IdSource.CLIENT),
        Policy(on_duplicate_id=OnDuplicateId.EXISTING),
    ):
        manager = await env.manager(policy)
        await manager.schedule("s", Every(60), JOB, misfire=Misfire.ALL)
        (before,) = await manager.store.records(KIND)
        env.clock.advance(120)
        jobs = (await manager.fire_schedules()).jobs
        assert len(jobs) == 2
        (claimed,) = await manager.claim("w")
        await manager.complete(claimed.id, claimed.token)
        await manager.cancel([job.id for job in jobs if job.id != claimed.id])
        await _forget(manager, before)
        env.clock.advance(60)
        (third,) = (await manager.fire_schedules()).jobs
        assert third.id not in {job.id for job in jobs}
        await manager.cancel([third.id])
        assert (await manager.fire_schedules()).jobs == ()
        assert await manager.unschedule("s")


@suite.case("schedule", "the same again changes nothing; another is refused, or replaces it")
async def again(env: Env) -> None:
    manager = await env.manager()
    first = await manager.schedule("s", Every(60), JOB)
    env.clock.advance(100)
    assert await manager.schedule("s", Every(60), JOB) == first
    with raises(errors.DuplicateSchedule):
        await manager.schedule("s", Every(60), JobSpec(type="other"))
    assert await manager.schedules() == (first,)
    await manager.pause_schedule("s")
    other = await manager.schedule("s", Every(60), JobSpec(type="other"), replace=True)
    assert (other.job.type, other.paused, other.created_at) == ("other", True, first.created_at)
    await manager.resume_schedule("s")
    (job,) = (await manager.fire_schedules()).jobs
    assert (job.type, job.run_at) == ("other", first.created_at + timedelta(seconds=60))
    timing = await manager.schedule("s", Every(90), JobSpec(type="other"), replace=True)
    assert timing.created_at == env.clock.now()
    assert (await manager.fire_schedules()).jobs == ()


@suite.case("schedule", "of many that add the same name, one wins and the others hear of it")
async def one_creator(env: Env) -> None:
    manager = await env.manager()
    answers = await asyncio.gather(
        *(manager.schedule("s", Every(60 + number % 2), JOB) for number in range(10)),
        return_exceptions=True,
    )
    (stored,) = await manager.schedules()
    assert answers.count(stored) == 5
    assert sum(isinstance(answer, errors.DuplicateSchedule) for answer in answers) == 5


@suite.case("schedule", "bad input is refused, and nothing is stored")
async def bad_input(env: Env) -> None:
    manager = await env.manager(Policy(timeout_seconds=10.0, payload_bytes_max=100))
    before = await unchanged(manager)
    bad: list[tuple[Any, ...]] = [
        ("", Every(60), JOB),
        ("s", "0 3 * * *", JOB),
        ("s", Every(60), "report"),
        ("s", Every(60), JobSpec(type="")),
        ("s", Every(60), JobSpec(type="t", id="x")),
        ("s", Every(60), JobSpec(type="t", priority=9)),
        ("s", Every(60), JobSpec(type="t", payload="x" * 200)),
        ("s", Every(60), JobSpec(type="t", timeout_seconds=60.0)),
        ("s", Every(60), JobSpec(type="t", tags=[f"t{n}" for n in range(64)])),
    ]
    for name, when, job in bad:
        with raises(errors.InvalidInput):
            await manager.schedule(name, when, job)
    with raises(errors.InvalidInput):
        await manager.fire_schedules(limit=0)
    assert await manager.schedules() == ()
    assert await unchanged(manager) == before


@suite.case("misfire", "skip: the last tick within its grace time, or none; never the others")
async def skip(env: Env) -> None:
    manager = await env.manager()
    start = env.clock.now()
    await manager.schedule("s", Every(60), JOB, misfire=Misfire.SKIP, grace_seconds=10)
    env.clock.advance(60 * 5 + 10)
    await manager.fire_schedules()
    env.clock.advance(60 * 5 + 1)
    await manager.fire_schedules()
    assert await _ticks(manager) == [start + timedelta(minutes=5)]
    (schedule,) = await manager.schedules()
    assert schedule.last_tick == start + timedelta(minutes=5)
    assert schedule.done_until == start + timedelta(minutes=10)


@suite.case("misfire", "once: one job for all that were missed, however late")
async def once(env: Env) -> None:
    manager = await env.manager()
    await manager.schedule("s", HOURLY, JOB)
    env.clock.advance(3600 * 24 * 3 + 1800)
    await manager.fire_schedules()
    await manager.fire_schedules()
    assert await _ticks(manager) == [_later(env, minutes=-30)]


@suite.case("misfire", "all: each tick that was missed, the last thousand at most, up to the limit")
async def every_one(env: Env) -> None:
    manager = await env.manager()
    start = env.clock.now()
    await manager.schedule("s", Every(60), JOB, misfire=Misfire.ALL)
    env.clock.advance(60 * 5)
    fired = await manager.fire_schedules(limit=2)
    assert [job.run_at for job in fired.jobs] == [start + timedelta(minutes=n) for n in (1, 2)]
    assert fired.next_due == env.clock.now()
    assert len((await manager.fire_schedules()).jobs) == 3
    env.clock.advance(60 * 1500)
    assert len((await manager.fire_schedules()).jobs) == 1000
    assert (await manager.fire_schedules()).jobs == ()
    ticks = await _ticks(manager)
    assert ticks[5] == start + timedelta(minutes=5 + 501)
    assert ticks[-1] == env.clock.now()


@suite.case("misfire", "all: many at once that were missed become one job each")
async def missed_together(env: Env) -> None:
    manager = await env.manager()
    await manager.schedule("s", Every(60), JOB, misfire=Misfire.ALL)
    env.clock.advance(60 * 20)
    rounds = await asyncio.gather(*(manager.fire_schedules() for _ in range(4)))
    assert sum(len(one.jobs) for one in rounds) == 20
    assert len(await _jobs(manager)) == 20


@suite.case("pause_schedule", "nothing is fired; resumed, what was missed follows the rule")
async def pause(env: Env) -> None:
    manager = await env.manager()
    for rule in Misfire:
        await manager.schedule(rule.value, Every(60), JobSpec(type=rule.value), misfire=rule)
        paused = await manager.pause_schedule(rule.value)
        assert paused.paused
        assert await manager.pause_schedule(rule.value) == paused
    env.clock.advance(60 * 3)
    fired = await manager.fire_schedules()
    assert (fired.jobs, fired.next_due) == ((), None)
    for rule in Misfire:
        assert not (await manager.resume_schedule(rule.value)).paused
    types = [job.type for job in (await manager.fire_schedules()).jobs]
    assert {rule: types.count(rule) for rule in Misfire} == {"skip": 0, "once": 1, "all": 3}
    env.clock.advance(60)
    assert len((await manager.fire_schedules()).jobs) == 3


@suite.case("unschedule", "no tick any more; its jobs stay; under its old name begins another")
async def unschedule(env: Env) -> None:
    manager = await env.manager()
    await manager.schedule("s", Every(60), JOB)
    env.clock.advance(60)
    await manager.fire_schedules()
    assert await manager.unschedule("s")
    assert not await manager.unschedule("s")
    env.clock.advance(60)
    assert (await manager.fire_schedules()).jobs == ()
    assert (await manager.stats()).total == 1
    await manager.schedule("s", Every(60), JOB)
    env.clock.advance(60)
    assert len((await manager.fire_schedules()).jobs) == 1
    for verb in (manager.pause_schedule, manager.resume_schedule):
        with raises(errors.ScheduleNotFound):
            await verb("nobody")


@suite.case("schedule", "one that cannot be fired does not hold up the others, and is tried again")
async def unfired(env: Env) -> None:
    manager = await env.manager()
    for name in ("a", "b", "c"):
        await manager.schedule(name, Every(60), JobSpec(type="t", payload="x" * 50, queue=name))
    assert await manager.store.put_record(Record(kind=KIND, name="default/bad", body_json=b"{}"))
    policies = Policies(queues={"b": Policy(payload_bytes_max=10)})
    strict = JobManager(manager.store, clock=env.clock, policies=policies)
    env.clock.advance(60)
    fired = await strict.fire_schedules()
    assert sorted(job.queue for job in fired.jobs) == ["a", "c"]
    assert {(one.name, type(one.error)) for one in fired.unfired} == {
        ("b", errors.PayloadTooLarge),
        ("bad", errors.StoreCorrupt),
    }
    assert fired.next_due == _later(env, seconds=60)
    assert [job.queue for job in (await manager.fire_schedules()).jobs] == ["b"]
    with raises(errors.StoreCorrupt):
        await manager.schedules()
    assert await manager.unschedule("bad")
    assert len(await manager.schedules()) == 3


@suite.case("isolation", "schedules: a tenant sees, changes and fires only its own")
async def tenants(env: Env) -> None:
    operator = await env.manager()
    acme, mallory = operator.scoped("acme"), operator.scoped("mallory")
    await acme.schedule("x/s", Every(60), JOB)
    await mallory.schedule("s", Every(120), JOB)
    # Neither tenant nor name can be made to look like another's.
    await operator.schedule("s", Every(60), JobSpec(type="t", tenant="acme/x"))
    assert [(one.tenant, one.name) for one in await acme.schedules()] == [("acme", "x/s")]
    assert [one.tenant for one in await operator.schedules()] == ["acme", "acme/x", "mallory"]
    with raises(errors.InvalidInput):
        await mallory.schedule("t", Every(60), JobSpec(type="t", tenant="acme"))
    for verb in (operator.pause_schedule, acme.pause_schedule, acme.resume_schedule):
        with raises(errors.ScheduleNotFound):
            await verb("s")
    assert not await operator.unschedule("s")
    assert not await acme.unschedule("s")
    await mallory.pause_schedule("s")
    assert not (await acme.schedules())[0].paused
    env.clock.advance(120)
    assert (await mallory.fire_schedules()).jobs == ()
    assert [job.tenant for job in (await acme.fire_schedules()).jobs] == ["acme"]
    assert [job.tenant for job in (await operator.fire_schedules()).jobs] == ["acme/x"]


@suite.case("isolation", "schedules: the same name and time in two tenants are two jobs")
async def same_name(env: Env) -> None:
    operator = await env.manager()
    for tenant in ("acme", "umbrella"):
        await operator.scoped(tenant).schedule("s", Every(60), JOB)
    env.clock.advance(60)
    fired = await operator.fire_schedules()
    assert [job.tenant for job in fired.jobs] == ["acme", "umbrella"]
    assert len({job.id for job in fired.jobs}) == 2


def _encrypted(function: CaseFunction) -> CaseFunction:
    """A case for whoever has the extra `crypto`."""
    if importlib.util.find_spec("cryptography") is None:
        return function
    return suite.case(
        "encryption", "schedules: only ciphertext is stored; keys are changed by firing"
    )(function)


@_encrypted
async def encryption(env: Env) -> None:
    manager = await env.manager()
    secret = JobSpec(type="t", payload="the-secret-word", on_failure=[JobSpec(type="alarm")])

    def holding(*names: str) -> JobManager:
        keys = KeyRing({name: name.encode() * 16 for name in names}, primary=names[0])
        return JobManager(manager.store, clock=env.clock, keys=keys)

    async def body() -> bytes:
        (record,) = await manager.store.records(KIND)
        return record.body_json

    await manager.schedule("s", Every(3600), secret)
    assert b"the-secret-word" in await body()
    await holding("k1").fire_schedules()
    assert b"the-secret-word" not in await body()
    with raises(errors.CannotDecrypt):
        await manager.schedules()
    (unfired,) = (await manager.fire_schedules()).unfired
    assert isinstance(unfired.error, errors.CannotDecrypt)
    await holding("k2", "k1").fire_schedules()
    (unfired,) = (await holding("k1").fire_schedules()).unfired
    assert isinstance(unfired.error, errors.CannotDecrypt)
    env.clock.advance(3600)
    (job,) = (await holding("k2").fire_schedules()).jobs
    assert job.payload == "the-secret-word"
    (schedule,) = await holding("k2").schedules()
    assert (schedule.job.payload, schedule.last_tick) == ("the-secret-word", env.clock.now())
    assert await manager.unschedule("s")
