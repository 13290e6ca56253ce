"""Limits of queues: so many at a time, so fast, of a queue, a tenant and a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from headrace import errors
from headrace.limits import QueueLimits, Rate
from headrace.manager import JobManager, Why
from headrace.model import Job, Lease, State
from headrace.policy import CancelMode, Policy
from headrace.spec import JobSpec
from headrace.stores.base import GATE, Fence, Query
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, unchanged

LEASE = Policy(lease_seconds=10.0, max_attempts=None)


async def limited(env: Env, limits: QueueLimits, policy: Policy = LEASE) -> JobManager:
    """A manager whose queue "q" has these limits."""
    manager = await env.manager(policy)
    await manager.set_limits("q", limits)
    return manager


async def fill(manager: JobManager, jobs: int, **fields: Any) -> None:
    given: dict[str, Any] = {"type": "t", "queue": "q"}
    await manager.submit_many([JobSpec(**(given | fields)) for _ in range(jobs)])


async def claim(manager: JobManager, limit: int = 100, **fields: Any) -> Sequence[Job]:
    return await manager.claim("w", limit=limit, **fields)


@suite.case("limits", "a queue's concurrency holds over claims, workers and tenants")
async def concurrency(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=3))
    await fill(manager, 4, tenant="acme")
    await fill(manager, 4, tenant="other", limit_key="k")
    assert len(await claim(manager, 2)) == 2
    assert len(await manager.scoped("other").claim("w2", limit=100)) == 1
    assert not await claim(manager)
    assert not await manager.scoped("acme").claim("w2")


Ending = Callable[[JobManager, Job], Awaitable[Any]]

ENDINGS: dict[str, Ending] = {
    "complete": lambda m, job: m.complete(job.id, job.token),
    "fail": lambda m, job: m.fail(job.id, job.token, "no"),
    "snooze": lambda m, job: m.snooze(job.id, job.token, seconds=60),
    "stop": lambda m, job: m.stop(job.id, job.token),
    "cancel": lambda m, job: m.cancel([job.id], mode=CancelMode.IMMEDIATE),
    "abandon": lambda m, job: m.abandon(job.id),
    "expire_worker": lambda m, _: m.expire_worker("w"),
}


def _register(name: str, end: Ending) -> None:
    @suite.case("limits", f"{name}: frees the slot at once")
    async def freed(env: Env) -> None:
        manager = await limited(env, QueueLimits(concurrency=1))
        await fill(manager, 2)
        (job,) = await claim(manager)
        assert not await claim(manager)
        await end(manager, job)
        assert len(await claim(manager)) == 1
        assert not await claim(manager)


for _name, _end in ENDINGS.items():
    _register(_name, _end)


@suite.case(
    "limits",
    "a worker that vanished gives up its slot a second after its lease lapses, and no reap is needed",
)
async def crash(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=2))
    await fill(manager, 4)
    lost = await claim(manager)
    env.clock.advance(10.999)
    assert not await claim(manager)
    env.clock.advance(0.001)
    taken = await claim(manager)
    assert len(taken) == 2
    assert not {job.id for job in lost} & {job.id for job in taken}
    assert not await claim(manager)
    await manager.reap()  # what was lost waits again, and the slots stay taken by the others
    assert not await claim(manager)
    env.clock.advance(11)
    assert {job.id for job in await claim(manager)} == {job.id for job in lost}


@suite.case(
    "limits", "a heartbeat that is on its way while its lease lapses finds the slot not given on"
)
async def late_heartbeat(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1))
    await fill(manager, 2)
    (job,) = await claim(manager)
    env.clock.advance(9.5)
    assert job.token is not None
    fence, sent_at = Fence(job.id, job.token), env.clock.now()
    env.clock.advance(1)
    assert not await claim(manager)
    assert await manager.store.extend({fence: 10.0}, sent_at)
    env.clock.advance(5)
    assert not await claim(manager)


@suite.case("limits", "reaping frees the slots of vanished workers at once")
async def reaped(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1))
    await fill(manager, 2)
    await claim(manager)
    env.clock.advance(10)
    assert not await claim(manager)
    await manager.reap()
    assert len(await claim(manager)) == 1
    assert not await claim(manager)


@suite.case("limits", "a heartbeat keeps the slot, as it keeps the lease")
async def heartbeat(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1))
    await fill(manager, 2)
    (job,) = await claim(manager)
    env.clock.advance(8)
    assert job.token is not None
    await manager.heartbeat([Lease(job.id, job.token, 10.0)])
    env.clock.advance(10)
    assert not await claim(manager)
    env.clock.advance(1)
    assert len(await claim(manager)) == 1


@suite.case("limits", "a cancellation that its worker has not answered holds the slot")
async def cancelling(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1))
    await fill(manager, 2)
    (job,) = await claim(manager)
    await manager.cancel([job.id])
    assert (await manager.get(job.id)).state is State.CANCELLING
    assert not await claim(manager)
    await manager.acknowledge_cancel(job.id, job.token, was_executing=True)
    assert len(await claim(manager)) == 1


@suite.case(
    "limits", "each key has slots of its own, within its tenant; jobs without a key need none"
)
async def keys(env: Env) -> None:
    manager = await limited(env, QueueLimits(key_concurrency=2))
    for tenant in ("a", "b"):
        for key in ("k", "l", None):
            await fill(manager, 3, tenant=tenant, limit_key=key)
            await fill(manager, 1, tenant=tenant, limit_key=key, type="u", priority=0)
    taken = await claim(manager)
    assert Counter((job.tenant, job.limit_key) for job in taken) == {
        ("a", "k"): 2,
        ("a", "l"): 2,
        ("a", None): 4,
        ("b", "k"): 2,
        ("b", "l"): 2,
        ("b", None): 4,
    }
    first = next(job for job in taken if job.limit_key == "l")
    await manager.complete(first.id, first.token)
    (next_one,) = await claim(manager)
    assert (next_one.tenant, next_one.limit_key) == (first.tenant, "l")


@suite.case("limits", "each tenant has slots of its own")
async def tenants(env: Env) -> None:
    manager = await limited(env, QueueLimits(tenant_concurrency=2, concurrency=5))
    for tenant in ("a", "b", "c"):
        await fill(manager, 4, tenant=tenant)
    taken = Counter(job.tenant for job in await claim(manager))
    assert (taken.total(), max(taken.values())) == (5, 2)


@suite.case("limits", "a rate allows its burst, then so many as time brings, over all who claim")
async def rate(env: Env) -> None:
    manager = await limited(env, QueueLimits(rate=Rate(2, 10.0)))
    other = JobManager(manager.store, clock=env.clock)
    await fill(manager, 20)
    assert len(await claim(manager)) == 2
    assert not await claim(other)
    env.clock.advance(4.999)
    assert not await claim(manager)
    env.clock.advance(0.001)
    assert len(await claim(other)) == 1
    assert not await claim(manager)
    env.clock.advance(1000)
    assert len(await claim(manager)) == 2


@suite.case("limits", "a claim tells when the next token comes, if jobs wait for it")
async def next_token(env: Env) -> None:
    manager = await limited(env, QueueLimits(rate=Rate(4, burst=1), concurrency=2))

    async def next_seconds(limit: int = 10) -> float | None:
        answer = await manager.claim_ahead("w", limit=limit, look_ahead=False)
        if answer.next_at is None:
            return None
        return (answer.next_at - env.clock.now()).total_seconds()

    assert await next_seconds() is None
    await fill(manager, 4)
    assert await next_seconds() == 0.25
    env.clock.advance(0.1)
    assert await next_seconds() == 0.15
    env.clock.advance(0.15)
    assert await next_seconds() is None  # that took the last slot: no time gives one back
    env.clock.advance(0.25)
    assert await next_seconds() is None
    for job in await manager.store.find(Query(states=[State.RUNNING])):
        await manager.complete(job.id, job.token)
    assert await next_seconds() == 0.25
    env.clock.advance(0.25)
    assert await next_seconds() is None  # and that the last job


@suite.case("limits", "a start that is a little late puts off none of those behind it")
async def late_start(env: Env) -> None:
    manager = await limited(env, QueueLimits(rate=Rate(50, burst=1)))
    await fill(manager, 20)
    begin = env.clock.now()
    for number in range(20):
        env.clock.set(begin + timedelta(seconds=number * 0.02 + number % 2 * 0.009))
        assert len(await claim(manager)) == 1
        assert not await claim(manager)


@suite.case("limits", "a claim that looks ahead tells when the next job is due, or the next token")
async def looks_ahead(env: Env) -> None:
    manager = await limited(env, QueueLimits(rate=Rate(1, 10.0)))
    await submit(manager, "later", delay_seconds=4)
    await submit(manager, "elsewhere", delay_seconds=2, type="other")
    await fill(manager, 3)
    begin = env.clock.now()

    async def seconds(**how: Any) -> float | None:
        answer = await manager.claim_ahead("w", types=["t"], limit=1, **how)
        return None if answer.next_at is None else (answer.next_at - begin).total_seconds()

    await seconds()
    assert await seconds(look_ahead=False) == 10
    assert await seconds() == 4
    env.clock.advance(4)
    answer = await manager.claim_ahead("w", types=["t"], limit=5)
    assert [job.id for job in answer.jobs] == ["later"]
    assert answer.next_at == begin + timedelta(seconds=10)
    other = await manager.scoped("other").claim_ahead("w", types=["t"])
    assert (other.jobs, other.next_at) == ((), begin + timedelta(seconds=10))


@suite.case("limits", "each key has a rate of its own, and every attempt is a start")
async def key_rate(env: Env) -> None:
    manager = await limited(env, QueueLimits(key_rate=Rate(1, 60.0)))
    await fill(manager, 2, limit_key="k")
    await fill(manager, 2, limit_key="l")
    await fill(manager, 2)
    taken = await claim(manager)
    assert Counter(job.limit_key for job in taken) == {"k": 1, "l": 1, None: 2}
    for job in taken:
        await manager.release(job.id, job.token)
    assert [job.limit_key for job in await claim(manager)] == [None, None]
    env.clock.advance(60)
    assert Counter(job.limit_key for job in await claim(manager)) == {"k": 1, "l": 1}


@suite.case(
    "limits", "priority, then age, decides among what may start; filters hold as without limits"
)
async def order_and_filters(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=3))
    await submit(manager, "old", queue="q", type="a")
    env.clock.advance(1)
    await submit(manager, "tagged", queue="q", type="b", tags=["x", "y"])
    await submit(manager, "urgent", queue="q", type="c", priority=0)
    await submit(manager, "later", queue="q", delay_seconds=60, priority=0)
    assert [job.id for job in await claim(manager, tags=["x"])] == ["tagged"]
    assert not await claim(manager, types=["nobody's"])
    assert not await claim(manager, queues=["elsewhere"])
    assert not await claim(manager, queues=[])
    assert [job.id for job in await claim(manager, 1)] == ["urgent"]
    assert [job.id for job in await claim(manager, queues=["q"])] == ["old"]


@suite.case("limits", "a paused queue stays paused, a resumed one stays limited")
async def paused(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1))
    await fill(manager, 2)
    await manager.pause("q")
    assert not await claim(manager)
    await manager.resume("q")
    assert len(await claim(manager)) == 1


@suite.case("limits", "several limited queues are claimed from at once, each within its own limits")
async def several(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=2))
    await manager.set_limits("r", QueueLimits(rate=Rate(3)))
    await fill(manager, 5)
    await fill(manager, 5, queue="r", priority=0)
    await fill(manager, 5, queue="open", priority=4)
    taken = await claim(manager)
    assert [job.queue for job in taken] == ["r"] * 3 + ["q"] * 2 + ["open"] * 5


@suite.case("limits", "neither limited nor other queues starve each other")
async def turns(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=50))
    await fill(manager, 20)
    await fill(manager, 20, queue="open")
    queues = [job.queue for _ in range(10) for job in await claim(manager, 1)]
    assert Counter(queues) == {"q": 5, "open": 5}


@suite.case("limits", "a claim that takes nothing writes nothing")
async def idle(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1, rate=Rate(5), fair=True))
    before = await manager.store.records(GATE)
    assert not await claim(manager)
    await fill(manager, 2)
    assert not await claim(manager, types=["nobody's"])
    assert await manager.store.records(GATE) == before
    assert len(await claim(manager)) == 1
    full = await manager.store.records(GATE)
    assert full != before
    assert not await claim(manager)
    assert await manager.store.records(GATE) == full


@suite.case(
    "limits", "can be set while jobs run, which count, and be changed and removed at any time"
)
async def changing(env: Env) -> None:
    manager = await env.manager(LEASE)
    await fill(manager, 10)
    assert len(await claim(manager, 3)) == 3
    assert await manager.limits() == {}
    await manager.set_limits("q", QueueLimits(concurrency=4))
    assert len(await claim(manager)) == 1
    await manager.set_limits("q", QueueLimits(concurrency=6, waiting_jobs_max=100))
    assert len(await claim(manager)) == 2
    await manager.set_limits("q", QueueLimits(concurrency=2))
    assert await manager.limits() == {"q": QueueLimits(concurrency=2)}
    assert not await claim(manager)
    assert await manager.remove_limits("q")
    assert not await manager.remove_limits("q")
    assert await manager.limits("q") == {}
    assert len(await claim(manager)) == 4


@suite.case("limits", "what is set is what is read, by queue or all")
async def reading(env: Env) -> None:
    manager = await env.manager()
    whole = QueueLimits(
        concurrency=1,
        key_concurrency=2,
        tenant_concurrency=3,
        rate=Rate(4),
        key_rate=Rate(5, 0.25, 7),
        fair=True,
        weights={"acme": 2.5, "other": 1},
        waiting_jobs_max=9,
        waiting_bytes_max=10,
        tenant_waiting_jobs_max=11,
        tenant_waiting_bytes_max=12,
    )
    admission = QueueLimits(waiting_jobs_max=5)
    await manager.set_limits("whole", whole)
    await manager.set_limits("admission", admission)
    assert list((await manager.limits()).items()) == [("admission", admission), ("whole", whole)]
    assert await manager.limits("whole") == {"whole": whole}
    assert [record.name for record in await manager.store.records(GATE)] == ["whole"]


@suite.case(
    "limits", "are the operator's: a tenant cannot change them, nor learn of other tenants by them"
)
async def operator(env: Env) -> None:
    manager = await limited(env, QueueLimits(fair=True, weights={"acme": 2, "secret": 3}))
    acme = manager.scoped("acme")
    with raises(errors.InvalidInput):
        await acme.set_limits("q", QueueLimits(concurrency=1))
    with raises(errors.InvalidInput):
        await acme.remove_limits("q")
    assert await acme.limits() == {"q": QueueLimits(fair=True, weights={"acme": 2})}
    assert "secret" in (await manager.limits())["q"].weights


@suite.case("limits", "what cannot be is refused, and changes nothing")
async def refused(env: Env) -> None:
    manager = await limited(env, QueueLimits(concurrency=1))
    before = await unchanged(manager)
    with raises(errors.InvalidLimit):
        await manager.set_limits("q", QueueLimits())
    with raises(errors.InvalidInput):
        await manager.set_limits("q", 5)  # type: ignore[arg-type]
    with raises(errors.InvalidName):
        await manager.set_limits("", QueueLimits(concurrency=1))
    assert await manager.limits() == {"q": QueueLimits(concurrency=1)}
    assert await unchanged(manager) == before


@suite.case("limits", "explain names the limits that are reached, and when the next token comes")
async def explaining(env: Env) -> None:
    rules = QueueLimits(
        concurrency=1, key_concurrency=1, tenant_concurrency=1, key_rate=Rate(1, 60.0)
    )
    manager = await limited(env, rules)
    await fill(manager, 1, limit_key="k", priority=0)
    await submit(manager, "next", queue="q", limit_key="k")
    await submit(manager, "delayed", queue="q", limit_key="k", delay_seconds=5)
    (first,) = await claim(manager)
    told = (await manager.explain("next")).reasons
    next_at = env.clock.now() + timedelta(seconds=60)
    assert [(reason.why, reason.facts["scope"]) for reason in told] == [
        (Why.CONCURRENCY_LIMIT, "queue"),
        (Why.CONCURRENCY_LIMIT, "tenant"),
        (Why.CONCURRENCY_LIMIT, "key"),
        (Why.RATE_LIMIT, "key"),
    ]
    assert told[3].facts["next_at"] == next_at
    assert next_at.isoformat() in told[3].message
    assert [reason.why for reason in (await manager.explain("delayed")).reasons] == [Why.NOT_DUE]
    await manager.complete(first.id, first.token)
    env.clock.advance(30)
    await claim(manager)
    assert [one.why for one in (await manager.explain("next")).reasons] == [Why.RATE_LIMIT]
    env.clock.set(next_at)
    assert [job.id for job in await claim(manager, 1)] == ["next"]


@suite.case("limits", "a redriven job keeps its key")
async def redriven(env: Env) -> None:
    manager = await limited(env, QueueLimits(key_concurrency=1))
    await fill(manager, 2, limit_key="k")
    (job,) = await claim(manager)
    await manager.stop(job.id, job.token)
    again = (await manager.redrive([job.id])).job
    assert again.limit_key == "k"
    assert len(await claim(manager)) == 1
