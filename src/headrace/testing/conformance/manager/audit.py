"""Who has done what: a row for each administrative act; and what workers wrote too late, noted."""

from __future__ import annotations

from datetime import timedelta

from headrace import errors
from headrace.limits import QueueLimits
from headrace.manager import AuditRow, Completed, JobManager, Matching
from headrace.policy import Policy
from headrace.schedules import Every
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take

POLICY = Policy(lease_seconds=10.0, max_attempts=None)


async def rows(manager: JobManager) -> list[AuditRow]:
    """Oldest first."""
    since = manager.clock.now() - timedelta(days=1)
    return list(reversed(await manager.audit(since)))


def told(found: list[AuditRow]) -> list[tuple[str | None, str, str]]:
    return [(row.actor, row.act, row.target) for row in found]


@suite.case("audit", "each administrative act leaves a row: who, what, before and after")
async def acts(env: Env) -> None:
    manager = await env.manager(POLICY)
    ann = manager.acting_as("ann")
    await ann.pause("q")
    await ann.resume("q")
    await ann.set_limits("q", QueueLimits(concurrency=2))
    await ann.set_limits("q", QueueLimits(concurrency=3))
    await ann.remove_limits("q")
    await ann.schedule("s", Every(60.0), JobSpec(type="t", payload={"secret": 1}))
    await ann.schedule("s", Every(60.0), JobSpec(type="t", payload={"secret": 1}))
    await ann.pause_schedule("s")
    await ann.run_schedule("s")
    await ann.unschedule("s")
    made = await ann.create_token("ci", ["read"])
    await ann.revoke_token(made.token.id)
    act = await ann.start_bulk("cancel", Matching(queues=["q"]))
    await ann.cancel_bulk(act.id)
    found = await rows(manager)
    assert told(found) == [
        ("ann", "pause", "q"),
        ("ann", "resume", "q"),
        ("ann", "set_limits", "q"),
        ("ann", "set_limits", "q"),
        ("ann", "remove_limits", "q"),
        ("ann", "schedule", "s"),
        ("ann", "pause_schedule", "s"),
        ("ann", "run_schedule", "s"),
        ("ann", "unschedule", "s"),
        ("ann", "create_token", "ci"),
        ("ann", "revoke_token", made.token.id),
        ("ann", "start_bulk", "cancel"),
        ("ann", "cancel_bulk", act.id),
    ]
    first, second, removed = found[2:5]
    assert (first.before, first.after) == (None, {"concurrency": 2})
    assert (second.before, second.after) == ({"concurrency": 2}, {"concurrency": 3})
    assert removed.before == {"concurrency": 3}
    assert "secret" not in str(found)
    assert made.secret not in str(found)
    assert act.actor == "ann"
    assert {row.error for row in found} == {None}


@suite.case("audit", "what programs do all the time is noted only where somebody acts")
async def of_people(env: Env) -> None:
    manager = await env.manager(POLICY)
    ann = manager.acting_as("ann")
    for name in "abc":
        await submit(manager, name)
    for who, names in ((manager, "ab"), (ann, "c")):
        for name in names:
            await who.update(name, priority=0)
            await who.cancel([name], reason="no")
            await who.redrive([name])
            await who.delete([name])
    await manager.cancel_matching(Matching(states=["pending"]))
    await ann.delete_matching(Matching(states=["cancelled"]))
    await ann.delete_matching(Matching(states=["cancelled"]), dry_run=True)
    found = await rows(manager)
    assert told(found) == [
        ("ann", "update", "c"),
        ("ann", "cancel", "c"),
        ("ann", "redrive", "c"),
        ("ann", "delete", "c"),
        ("ann", "delete_matching", "*"),
    ]
    assert found[0].after == {"priority": 0}
    assert found[1].after["reason"] == "no"


@suite.case("audit", "an act that is refused says so in its row; a bad name leaves none")
async def refused(env: Env) -> None:
    manager = await env.manager(POLICY)
    with raises(errors.ScheduleNotFound):
        await manager.pause_schedule("none")
    with raises(errors.InvalidName):
        await manager.pause("")
    (row,) = await rows(manager)
    assert (row.act, row.target, row.error) == ("pause_schedule", "none", "SCHEDULE_NOT_FOUND")


@suite.case("audit", "a tenant sees its own, filters narrow, and what is old is forgotten")
async def found(env: Env) -> None:
    manager = await env.manager(POLICY)
    acme = manager.scoped("acme").acting_as("bob")
    await acme.pause("q")
    await manager.acting_as("ann").pause("r")
    since = env.clock.now() - timedelta(seconds=1)
    assert told(list(await acme.audit(since))) == [("bob", "pause", "q")]
    assert await manager.scoped("other").audit(since) == ()
    assert [row.target for row in await manager.audit(since)] == ["r", "q"]
    assert [row.target for row in await manager.audit(since, limit=1)] == ["r"]
    assert [row.target for row in await manager.audit(since, actor="bob")] == ["q"]
    assert [row.target for row in await manager.audit(since, target="r", act="pause")] == ["r"]
    assert await manager.audit(since, since) == ()
    env.clock.advance(91 * 86_400)
    await manager.resume("r")
    assert len(await manager.store.records("audit")) == 1
    assert [row.act for row in await manager.audit(since)] == ["resume"]


@suite.case("refused writes", "what a worker writes too late is noted with the job, and bounded")
async def late(env: Env) -> None:
    manager = await env.manager(POLICY)
    since = env.clock.now()
    await submit(manager, "j")
    old, token = await take(manager, "j", "w-1")
    env.clock.advance(11)
    await manager.reap()
    await take(manager, "j", "w-2")
    with raises(errors.StaleToken):
        await manager.complete("j", token)
    with raises(errors.StaleToken):
        await manager.progress("j", token, 0.5)
    assert old.lease is not None
    await manager.heartbeat([old.lease])
    found = await manager.refused_writes(since, job_id="j")
    assert [one.verb for one in found.writes] == ["heartbeat", "progress", "complete"]
    first = found.writes[-1]
    assert (first.code, first.held_by, first.held_attempt) == ("STALE_TOKEN", "w-2", 2)
    assert (first.at, first.tenant, first.queue) == (env.clock.now(), "default", "default")
    for _ in range(30):
        await manager.heartbeat([old.lease])
    assert (await manager.refused_writes(since)).total == 20
    assert len((await manager.refused_writes(since, limit=3)).writes) == 3
    assert (await manager.scoped("other").refused_writes(since)).total == 0
    assert (await manager.refused_writes(since, job_id="other")).writes == ()
    job = await manager.get("j")
    await manager.complete("j", job.token)
    with raises(errors.JobNotFound):
        await manager.complete("none", "x")
    assert (await manager.refused_writes(since)).total == 20


@suite.case("refused writes", "of an outcome that brings the job as claimed, the attempt is known")
async def late_outcome(env: Env) -> None:
    manager = await env.manager(POLICY)
    since = env.clock.now()
    await submit(manager, "j")
    old, token = await take(manager, "j", "w-1")
    env.clock.advance(11)
    await manager.reap()
    await take(manager, "j", "w-2")
    await manager.settle([Completed(job_id="j", token=token, known=old)])
    (one,) = (await manager.refused_writes(since)).writes
    assert (one.attempt, one.worker, one.held_attempt, one.held_by) == (1, "w-1", 2, "w-2")
