"""Admission: how much may wait on a queue, and what is told to who comes when it is full."""

from __future__ import annotations

import asyncio

from headrace import errors
from headrace.limits import QueueLimits
from headrace.manager import JobManager
from headrace.policy import OnDuplicateId, Policy
from headrace.spec import JobSpec
from headrace.stores.base import GATE
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.limits import LEASE, claim, fill, limited
from headrace.testing.conformance.manager.limits_races import slow
from headrace.testing.conformance.manager.suite import submit, suite, unchanged


@suite.case(
    "admission",
    "a queue takes as many waiting jobs as it may hold, and a batch whole or not at all",
)
async def jobs(env: Env) -> None:
    manager = await limited(env, QueueLimits(waiting_jobs_max=5))
    await fill(manager, 3)
    before = await unchanged(manager)
    with raises(errors.QueueFull) as caught:
        await fill(manager, 3)
    assert isinstance(caught.error, errors.QueueFull)
    assert (caught.error.queue, caught.error.tenant) == ("q", None)
    assert "nothing was stored" in caught.error.message
    assert await unchanged(manager) == before
    await fill(manager, 2)
    with raises(errors.QueueFull):
        await submit(manager, "one", queue="q")
    await submit(manager, "elsewhere", queue="open")
    assert not await manager.store.records(GATE)


@suite.case("admission", "what starts makes room at once; what comes back is never refused")
async def room(env: Env) -> None:
    manager = await limited(env, QueueLimits(waiting_jobs_max=2))
    await fill(manager, 2)
    first, second = await claim(manager)
    await fill(manager, 2)
    await manager.release(first.id, first.token)
    await manager.fail(second.id, second.token, "no")
    assert (await manager.store.backlog(queue="q")).jobs == 4
    with raises(errors.QueueFull):
        await fill(manager, 1)
    await claim(manager)
    await fill(manager, 1)


@suite.case("admission", "delayed and blocked jobs wait, too")
async def waiting(env: Env) -> None:
    manager = await limited(env, QueueLimits(waiting_jobs_max=3))
    await submit(manager, "a", queue="q")
    await submit(manager, "b", queue="q", delay_seconds=600)
    await submit(manager, "c", queue="q", after=["b"])
    with raises(errors.QueueFull):
        await fill(manager, 1)


@suite.case("admission", "payloads are measured in bytes")
async def payloads(env: Env) -> None:
    manager = await limited(env, QueueLimits(waiting_bytes_max=100))
    await submit(manager, "a", queue="q", payload="x" * 58)  # 60 bytes as JSON
    with raises(errors.QueueFull):
        await submit(manager, "b", queue="q", payload="x" * 39)
    await submit(manager, "c", queue="q", payload="x" * 38)
    with raises(errors.QueueFull):
        await submit(manager, "d", queue="q")
    with raises(errors.QueueFull) as caught:
        await submit(manager, "e", queue="q", payload="x" * 100)
    assert "never" in str(caught.error)


@suite.case("admission", "each tenant has room of its own")
async def tenants(env: Env) -> None:
    manager = await limited(
        env, QueueLimits(tenant_waiting_jobs_max=2, tenant_waiting_bytes_max=50, waiting_jobs_max=5)
    )
    await fill(manager, 2, tenant="a")
    with raises(errors.QueueFull) as caught:
        await fill(manager, 1, tenant="a")
    assert isinstance(caught.error, errors.QueueFull)
    assert caught.error.tenant == "a"
    with raises(errors.QueueFull):
        await manager.scoped("b").submit(JobSpec(type="t", queue="q", payload="x" * 50))
    await fill(manager, 2, tenant="b")
    with raises(errors.QueueFull):
        await manager.submit_many(
            [JobSpec(type="t", queue="q", tenant=tenant) for tenant in ("c", "d")]
        )
    await fill(manager, 1, tenant="c")


@suite.case("admission", "a repeat that gives the job there is is not refused")
async def repeats(env: Env) -> None:
    manager = await limited(
        env,
        QueueLimits(waiting_jobs_max=2),
        Policy(on_duplicate_id=OnDuplicateId.EXISTING),
    )
    keyed = JobSpec(type="t", queue="q", key="k")
    named = JobSpec(type="t", queue="q", id="named")
    first, second = await manager.submit(keyed), await manager.submit(named)
    again = await manager.submit_many([keyed, named])
    assert again.created == (False, False)
    assert [job.id for job in again.jobs] == [first.job.id, second.job.id]
    with raises(errors.QueueFull):
        await manager.submit_many([keyed, named, JobSpec(type="t", queue="q")])


@suite.case("admission", "spawned and redriven jobs count")
async def spawned(env: Env) -> None:
    manager = await limited(env, QueueLimits(waiting_jobs_max=2))
    await submit(manager, "ended", queue="q")
    await submit(manager, "parent", queue="q")
    await manager.cancel(["ended"])
    (parent,) = await claim(manager)
    assert parent.token is not None
    children = [JobSpec(type="t", queue="q")] * 2
    with raises(errors.QueueFull):
        await manager.spawn("parent", parent.token, [*children, JobSpec(type="t", queue="q")])
    await manager.spawn("parent", parent.token, children)
    with raises(errors.QueueFull):
        await manager.redrive(["ended"])
    assert (await manager.stats(queues=["q"])).total == 4


@suite.case("admission", "many submissions of one process at once do not pass the limit together")
async def at_once(env: Env) -> None:
    manager = await limited(env, QueueLimits(waiting_jobs_max=10, tenant_waiting_bytes_max=1000))
    busy = slow(manager)
    answers = await asyncio.gather(*(fill(busy, 3) for _ in range(8)), return_exceptions=True)
    refused = [answer for answer in answers if answer is not None]
    assert all(isinstance(answer, errors.QueueFull) for answer in refused), refused
    assert len(refused) == 5
    assert (await manager.store.backlog(queue="q")).jobs == 9
    await fill(manager, 1)


@suite.case("admission", "another process is seen within a second")
async def processes(env: Env) -> None:
    manager = await limited(env, QueueLimits(waiting_jobs_max=10), LEASE)
    other = JobManager(manager.store, clock=env.clock)
    await fill(manager, 1)
    await fill(other, 9)
    env.clock.advance(1)
    with raises(errors.QueueFull):
        await fill(manager, 1)
    await other.remove_limits("q")
    env.clock.advance(1)
    await fill(manager, 1)
