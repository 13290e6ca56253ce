"""Tenants: one reads and changes nothing of another, and cannot tell a foreign id from an unknown one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from headrace import errors, lifecycle
from headrace.lifecycle import token_of
from headrace.manager import Completed, JobManager
from headrace.model import Job, Lease, State
from headrace.policy import Policy
from headrace.spec import JobSpec
from headrace.stores.base import Commit
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take

INVENTED = token_of(1, "invented")

Call = Callable[[JobManager, str, str], Awaitable[Any]]

CALLS: dict[str, Call] = {
    "get": lambda m, job_id, _: m.get(job_id),
    "explain": lambda m, job_id, _: m.explain(job_id),
    "complete": lambda m, job_id, token: m.complete(job_id, token),
    "fail": lambda m, job_id, token: m.fail(job_id, token, "no"),
    "snooze": lambda m, job_id, token: m.snooze(job_id, token, seconds=1),
    "release": lambda m, job_id, token: m.release(job_id, token),
    "stop": lambda m, job_id, token: m.stop(job_id, token),
    "acknowledge_cancel": lambda m, job_id, token: m.acknowledge_cancel(
        job_id, token, was_executing=True
    ),
    "abandon": lambda m, job_id, _: m.abandon(job_id),
    "progress": lambda m, job_id, token: m.progress(job_id, token, 0.5),
    "checkpoint": lambda m, job_id, token: m.checkpoint(job_id, token, 1),
    "spawn": lambda m, job_id, token: m.spawn(job_id, token, [JobSpec(type="t")]),
    "redrive": lambda m, job_id, _: m.redrive([job_id]),
}


def _register(name: str, call: Call) -> None:
    @suite.case("isolation", f"{name}: a foreign id answers exactly as an unknown one")
    async def foreign(env: Env) -> None:
        manager = await env.manager()
        job, token = await _running(manager)
        mallory = manager.scoped("mallory")
        with raises(errors.JobNotFound) as of_foreign:
            await call(mallory, "secret", token)
        with raises(errors.JobNotFound) as of_unknown:
            await call(mallory, "absent", token)
        assert str(of_foreign.error).replace("secret", "absent") == str(of_unknown.error)
        assert await manager.get("secret") == job


async def _running(manager: JobManager) -> tuple[Job, str]:
    await submit(manager, "secret", tenant="acme", tags=["x"], key="k", queue="q")
    return await take(manager, "secret")


for _name, _call in CALLS.items():
    _register(_name, _call)


@suite.case("isolation", "heartbeat: a foreign lease answers as an unknown one and is not extended")
async def heartbeat(env: Env) -> None:
    manager = await env.manager()
    job, token = await _running(manager)
    beats = await manager.scoped("mallory").heartbeat([Lease("secret", token, 999.0)])
    assert isinstance(beats.refused["secret"], errors.JobNotFound)
    assert await manager.get("secret") == job


@suite.case(
    "isolation", "cancel and delete by id and tag: not found, nothing matched, nothing changed"
)
async def bulk(env: Env) -> None:
    manager = await env.manager()
    job, token = await _running(manager)
    mallory = manager.scoped("mallory")
    report = await mallory.cancel(["secret"], tags=["x"])
    assert (report.jobs, report.not_found) == ((), ("secret",))
    assert await manager.get("secret") == job
    await manager.complete("secret", token)
    assert await mallory.delete(["secret"], tags=["x"]) == ()
    assert (await manager.get("secret")).state is State.COMPLETED


@suite.case("isolation", "reads: find, stats, events, pauses and workers show only one's own")
async def reads(env: Env) -> None:
    manager = await env.manager()
    await _running(manager)
    mallory, acme = manager.scoped("mallory"), manager.scoped("acme")
    await acme.pause("q")
    await acme.claim("acme-worker", queues=["q"])
    assert (await mallory.find()).jobs == ()
    assert (await mallory.find(tags=["x"])).jobs == ()
    assert (await mallory.stats()).total == 0
    assert (await mallory.stats(tags=["x"])).total == 0
    assert await mallory.events() == ()
    assert await mallory.events(job_id="secret") == ()
    assert await mallory.pauses() == ()
    assert await mallory.workers(env.clock.now()) == ()
    assert [event async for event in mallory.follow(idle_seconds=0.02)] == []
    assert len((await acme.find()).jobs) == 1
    assert (await acme.stats()).total == 1
    assert len(await acme.events()) == 2
    assert len(await acme.pauses()) == 1


@suite.case("isolation", "claims: only one's own jobs; a pause of one's own queue stops no other")
async def claims(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "a", tenant="acme")
    await submit(manager, "b", tenant="mallory")
    mallory = manager.scoped("mallory")
    assert await mallory.claim("w", tenant="acme") == ()
    await mallory.pause("default")
    assert [job.id for job in await manager.claim("w", limit=9)] == ["a"]
    assert await mallory.claim("w") == ()
    assert await mallory.resume("default")
    assert [job.id for job in await mallory.claim("w", limit=9)] == ["b"]


@suite.case("isolation", "the operator's pause holds for every tenant and no tenant can lift it")
async def operator_pause(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "a", tenant="acme")
    await manager.pause("default")
    acme = manager.scoped("acme")
    assert not await acme.resume("default")
    assert await acme.claim("w") == ()
    assert [pause.tenant for pause in await acme.pauses()] == [None]


@suite.case("isolation", "maintenance of one tenant leaves the others alone")
async def maintenance(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=1.0, lifetime_seconds=100.0))
    await _running(manager)
    env.clock.advance(1000)
    mallory = manager.scoped("mallory")
    assert (await mallory.reap()).jobs == ()
    assert (await mallory.end_lifetimes()).jobs == ()
    assert (await mallory.expire_worker("w")).jobs == ()
    assert (await mallory.reset_running()).jobs == ()
    assert (await manager.get("secret")).state is State.RUNNING
    assert len((await manager.scoped("acme").reap()).jobs) == 1


@suite.case("isolation", "submit: another tenant cannot be named, depended on, or met by key")
async def submitting(env: Env) -> None:
    manager = await env.manager()
    await _running(manager)
    mallory = manager.scoped("mallory")
    with raises(errors.InvalidInput):
        await mallory.submit(JobSpec(type="t", tenant="acme"))
    with raises(errors.DependencyNotFound):
        await mallory.submit(JobSpec(type="t", after=["secret"]))
    answer = await mallory.submit(JobSpec(type="t", key="k", queue="q"))
    assert (answer.job.tenant, answer.created) == ("mallory", (True,))
    with raises(errors.DependencyNotFound):
        await manager.submit(JobSpec(type="t", tenant="mallory", after=["secret"]))


@suite.case("isolation", "a manager bound to one tenant cannot be bound to another")
async def bound(env: Env) -> None:
    manager = await env.manager()
    acme = manager.scoped("acme")
    assert acme.scoped("acme").tenant == "acme"
    with raises(errors.InvalidInput):
        acme.scoped("mallory")


@suite.case("isolation", "cleanup of one tenant deletes only its own")
async def cleanup(env: Env) -> None:
    manager = await env.manager()
    _, token = await _running(manager)
    await manager.complete("secret", token)
    env.clock.advance(10)
    assert await manager.scoped("mallory").cleanup({State.COMPLETED: 0.0}) == {}
    assert await manager.scoped("acme").cleanup({State.COMPLETED: 0.0}) == {State.COMPLETED: 1}


@suite.case("isolation", "the sweep of one tenant leaves the others' children alone")
async def sweeping(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "p", tenant="acme")
    await submit(manager, "c", tenant="acme", after=["p"])
    (row,) = await manager.claim("w")
    change = lifecycle.apply(row, lifecycle.Complete(token=row.token), env.clock.now())
    await manager.store.commit(Commit(changes=[change]))
    assert await manager.scoped("mallory").sweep() == 0
    assert (await manager.get("c")).state is State.BLOCKED
    assert await manager.scoped("acme").sweep() == 1


@suite.case("isolation", "settle: what the caller says it knows opens no other tenant's job")
async def made_up_rows(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "waiting", tenant="acme", queue="waits")
    await submit(manager, "running", tenant="acme", queue="runs")
    await manager.claim("acme-worker", queues=["runs"])
    before = {name: await manager.get(name) for name in ("waiting", "running")}
    mallory = manager.scoped("mallory")
    cursor = await manager.tail()
    for row in before.values():
        lie = replace(
            row, tenant="mallory", state=State.RUNNING, token=INVENTED, attempt=1, assignee="w"
        )
        for known in (lie, replace(row, tenant="mallory")):
            settled = await mallory.settle(
                [Completed(job_id=row.id, token=known.token or INVENTED, result=1, known=known)]
            )
            assert isinstance(settled.outcomes[0], errors.JobNotFound), settled
            assert settled.freed == {}
        assert await manager.get(row.id) == row
    assert await manager.tail() == cursor


@suite.case("isolation", "settle: an invented token of one's own job is stale, not believed")
async def made_up_token(env: Env) -> None:
    manager = await env.manager()
    job, token = await _running(manager)
    known = replace(job, token=INVENTED)
    settled = await manager.settle([Completed(job_id="secret", token=INVENTED, known=known)])
    assert isinstance(settled.outcomes[0], errors.StaleToken)
    unclaimed = await submit(manager, "unclaimed")
    known = replace(unclaimed, state=State.RUNNING, token=INVENTED, attempt=1, assignee="w")
    settled = await manager.settle([Completed(job_id="unclaimed", token=INVENTED, known=known)])
    assert isinstance(settled.outcomes[0], errors.StaleToken)
    assert await manager.get("unclaimed") == unclaimed
    assert (await manager.complete("secret", token)).job.state is State.COMPLETED
