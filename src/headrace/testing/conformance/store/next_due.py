"""next_due: when the next job that a claim would take is due, with nothing taken."""

from __future__ import annotations

from headrace.lifecycle import Complete, Fail, Snooze
from headrace.model import Category, Failure
from headrace.stores.base import Pause
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    claim,
    commit,
    gated,
    insert,
    job,
    opened,
    request,
    suite,
)


@suite.case("next_due", "the first time after now at which a waiting job becomes due, of all lanes")
async def first(env: Env) -> None:
    store = await opened(env)
    assert await store.next_due(request()) is None
    await insert(store, job("due"), job("due for long", run_at=at(-60), type="u"))
    assert await store.next_due(request()) is None
    await insert(
        store,
        job("a", run_at=at(30.000001)),
        job("b", run_at=at(20), priority=4),
        job("c", run_at=at(10.000002), tenant="acme", queue="q", limit_key="k"),
        job("d", run_at=at(40), type="u", priority=0),
    )
    for now, due_at in ((0, 10.000002), (10.000001, 10.000002), (10.000002, 20), (20, 30.000001)):
        assert await store.next_due(request(now=at(now))) == at(due_at)
    assert await store.next_due(request(now=at(30.000001))) == at(40)
    assert await store.next_due(request(now=at(40))) is None
    assert len(await store.claim(request(now=at(40)))) == 6


@suite.case("next_due", "only of lanes that match: tenant, queue and type")
async def filters(env: Env) -> None:
    store = await opened(env)
    seconds = 0
    for tenant in ("n1", "n2"):
        for queue in ("q1", "q2"):
            for type_ in ("t1", "t2"):
                seconds += 1
                row = job(f"j{seconds}", tenant=tenant, queue=queue, type=type_, run_at=at(seconds))
                await insert(store, row)
    assert await store.next_due(request()) == at(1)
    assert await store.next_due(request(tenant="n2")) == at(5)
    assert await store.next_due(request(queues=("q2", "q9"))) == at(3)
    assert await store.next_due(request(types=("t2",))) == at(2)
    assert await store.next_due(request(tenant="n2", queues=("q2",), types=("t2",))) == at(8)
    for none in ({"tenant": "n3"}, {"queues": ()}, {"types": ()}, {"types": ("T1",)}):
        assert await store.next_due(request(**none)) is None


@suite.case("next_due", "with tags: not later than the first that has them all")
async def tags(env: Env) -> None:
    store = await opened(env)
    await insert(
        store,
        job("a", run_at=at(10)),
        job("b", run_at=at(20), tags=("x",)),
        job("c", run_at=at(30), tags=("x", "y")),
    )
    for wanted, latest in ((("x",), 20), (("x", "y"), 30)):
        due_at = await store.next_due(request(tags=wanted))
        assert due_at is not None
        assert T0 < due_at <= at(latest)
    assert await store.next_due(request(now=at(30), tags=("x",))) is None


@suite.case("next_due", "paused queues are left out; queues with a gate are not")
async def closed(env: Env) -> None:
    store = await opened(env)
    for number, (queue, tenant) in enumerate((("p", "a"), ("r", "a"), ("g", "a"), ("r", "b"))):
        row = job(f"j{number}", queue=queue, tenant=tenant, run_at=at(number + 1))
        await insert(store, row)
    await gated(store, "g")
    assert await store.next_due(request()) == at(1)
    await store.pause(Pause("p", None, T0))
    assert await store.next_due(request()) == at(2)
    await store.pause(Pause("r", "a", T0))
    assert await store.next_due(request()) == at(3)
    assert await store.next_due(request(queues=("r",))) == at(4)
    assert await store.resume("p", None)
    assert await store.next_due(request()) == at(1)


@suite.case("next_due", "follows the jobs: retries and snoozes come, what is leased or ended goes")
async def follows(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"), job("b"), job("c", run_at=at(50)))
    a, b = await store.claim(request(limit=2))
    assert await store.next_due(request()) == at(50)
    failing = Fail(
        token=a.token, failure=Failure("no", Category.TEMPORARY), retry_at=at(5), retry=True
    )
    await commit(store, [a], failing)
    assert await store.next_due(request()) == at(5)
    await commit(store, [b], Snooze(token=b.token, until=at(3)))
    assert await store.next_due(request()) == at(3)
    (b,) = await claim(store, now=at(3))
    assert await store.next_due(request()) == at(5)
    await commit(store, [b], Complete(token=b.token), now=at(4))
    (a,) = await claim(store, now=at(5))
    assert a.id == "a"
    assert await store.next_due(request()) == at(50)


@suite.case(
    "next_due", "however many are due, and wait behind a gate or a limit, it looks past them"
)
async def behind(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", run_at=at(-n), priority=n % 5) for n in range(500)))
    await insert(store, *(job(f"k{n}", run_at=at(100 + n), priority=n % 5) for n in range(50)))
    await gated(store, "default")
    assert await store.next_due(request(limit=1)) == at(100)
    assert await store.next_due(request(now=at(148.5))) == at(149)
