"""heads: the lanes with due jobs, as a claim would see them, with nothing taken."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any

from headrace.lifecycle import Cancel, Complete, Expire, Fail, Release
from headrace.model import Category, Failure
from headrace.policy import CancelMode
from headrace.stores.base import Head, JobStore, Pause
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    LANE,
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

FAILING = Fail(token=None, failure=Failure("no", Category.TEMPORARY), retry_at=at(9))


def head(jobs: int, run_at: datetime = T0, **lane: Any) -> Head:
    """That of the lane of `job(…)`, or of one that differs from it as told."""
    return Head(jobs=jobs, run_at=run_at, **(LANE | lane))


async def _heads(store: JobStore, **fields: Any) -> list[Head]:
    """In an order of their own."""
    found = await store.heads(request(**fields))
    return sorted(found, key=repr)


def _in_order(*heads: Head) -> list[Head]:
    return sorted(heads, key=repr)


@suite.case("heads", "one per lane with due jobs: how many, and since when the first is due")
async def lanes(env: Env) -> None:
    store = await opened(env)
    assert not await store.heads(request())
    await insert(
        store,
        job("a", run_at=at(-3)),
        job("b", run_at=at(-9.000001)),
        job("c", run_at=at(-5)),
        job("d", limit_key="k"),
        job("e", limit_key="K"),
        job("f", priority=0, run_at=at(-1)),
        job("g", type="u"),
        job("h", queue="q"),
        job("i", tenant="acme"),
        job("j", tenant="acme", limit_key="k"),
    )
    assert await _heads(store) == _in_order(
        head(3, at(-9.000001)),
        head(1, limit_key="k"),
        head(1, limit_key="K"),
        head(1, at(-1), priority=0),
        head(1, type="u"),
        head(1, queue="q"),
        head(1, tenant="acme"),
        head(1, tenant="acme", limit_key="k"),
    )


@suite.case("heads", "a job counts from the very moment it is due")
async def due(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", run_at=at(n)) for n in range(1, 4)))
    assert not await _heads(store, now=at(0.999999))
    assert await _heads(store, now=at(1)) == [head(1, at(1))]
    assert await _heads(store, now=at(2.999999)) == [head(2, at(1))]
    assert await _heads(store, now=at(3)) == [head(3, at(1))]


@suite.case("heads", "counts up to the request's limit, in each lane")
async def limit(env: Env) -> None:
    store = await opened(env)
    await insert(
        store, *(job(f"{key}{n}", limit_key=key, run_at=at(-n)) for key in "ab" for n in range(20))
    )
    await insert(store, job("c0", limit_key="c"))
    for asked in (1, 7, 20, 50):
        assert await _heads(store, limit=asked) == _in_order(
            head(min(asked, 20), at(-19), limit_key="a"),
            head(min(asked, 20), at(-19), limit_key="b"),
            head(1, limit_key="c"),
        )


@suite.case("heads", "only jobs that match: tenant, queue, type and every tag")
async def filters(env: Env) -> None:
    store = await opened(env)
    grid = itertools.product(("n1", "n2"), ("q1", "q2"), ("t1", "t2"))
    await insert(
        store,
        *(job(f"{n}{q}{t}", tenant=n, queue=q, type=t, tags=("grid",)) for n, q, t in grid),
    )
    only = await _heads(store, tenant="n1", queues=("q2",), types=("t1",))
    assert only == [head(1, tenant="n1", queue="q2", type="t1")]
    assert len(await _heads(store, queues=("q1", "q9"))) == 4
    assert not await _heads(store, queues=())
    assert not await _heads(store, types=())
    assert not await _heads(store, tenant="n3")
    assert not await _heads(store, tags=("Grid",))
    assert len(await _heads(store, tags=("grid",))) == 8


@suite.case("heads", "with tags, the count and the first are of the jobs that have them all")
async def tags(env: Env) -> None:
    store = await opened(env)
    await insert(
        store,
        job("none", run_at=at(-9)),
        job("x", run_at=at(-8), tags=("x",)),
        *(job(f"xy{n}", run_at=at(-5 + n), tags=("x", "y")) for n in range(4)),
        job("y", run_at=at(-7), tags=("y",)),
        job("later", run_at=at(5), tags=("x", "y")),
        job("elsewhere", limit_key="k", tags=("y",)),
    )
    assert await _heads(store, tags=("y", "x")) == [head(4, at(-5))]
    assert await _heads(store, tags=("y", "x"), limit=2) == [head(2, at(-5))]
    assert await _heads(store, tags=("x",)) == [head(5, at(-8))]
    assert await _heads(store, tags=("y",)) == _in_order(head(5, at(-7)), head(1, limit_key="k"))


@suite.case("heads", "gates or not, but without paused queues")
async def gates_and_pauses(env: Env) -> None:
    store = await opened(env)
    for tenant in ("n1", "n2"):
        await insert(
            store, *(job(f"{tenant}{q}", tenant=tenant, queue=q) for q in ("q1", "q2", "q3"))
        )
    await gated(store, "q1", "q2")
    assert len(await _heads(store)) == 6
    await store.pause(Pause("q1", None, T0))
    await store.pause(Pause("q3", "n1", T0))
    assert await _heads(store) == _in_order(
        head(1, tenant="n1", queue="q2"),
        head(1, tenant="n2", queue="q2"),
        head(1, tenant="n2", queue="q3"),
    )


@suite.case("heads", "follows jobs as they go, end and come back, each counted once")
async def moving(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("blocked"), waits=True)
    await insert(store, *(job(f"j{n}", lease_seconds=10.0, tags=("x",)) for n in range(6)))
    rows = {row.id: row for row in await claim(store, limit=5)}
    assert await _heads(store) == [head(1)]
    await commit(store, [rows["j0"]], Release(token=None), now=at(1))
    await commit(store, [rows["j1"]], Expire(), now=at(1))
    await commit(store, [rows["j2"]], FAILING, now=at(1))
    await commit(store, [rows["j3"]], Complete(token=None), now=at(1))
    await commit(store, [rows["j4"]], Cancel(mode=CancelMode.COOPERATIVE), now=at(1))
    for asked in ((), ("x",)):
        assert await _heads(store, now=at(8), tags=asked) == [head(3)]
        assert await _heads(store, now=at(9), tags=asked) == [head(4)]
    for _ in range(3):  # lost again and again, by claims of either kind
        for asked in ((), ("x",)):
            taken = await claim(store, now=at(9), limit=4, tags=asked)
            assert len(taken) == 4
            await commit(store, taken, Expire(), now=at(9))
            assert await _heads(store, now=at(9)) == [head(4)]
            assert await _heads(store, now=at(9), tags=("x",)) == [head(4)]


@suite.case("heads", "takes nothing and writes nothing")
async def reads_only(env: Env) -> None:
    store = await opened(env)
    rows = await insert(store, *(job(f"j{n}", tags=("x", f"n{n}")) for n in range(5)))
    cursor = await store.tail()
    for _ in range(2):
        assert await _heads(store, tags=("x",)) == [head(5)]
        assert await _heads(store, limit=2) == [head(2)]
    assert await store.get([row.id for row in rows]) == {row.id: row for row in rows}
    assert await store.tail() == cursor
    assert [row.id for row in await claim(store, limit=9, tags=("x",))] == [r.id for r in rows]
