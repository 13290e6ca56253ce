"""held: the leases that hold now, counted by tenant, queue and limit key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headrace.lifecycle import Cancel, Command, Complete, Expire, Release
from headrace.policy import CancelMode
from headrace.stores.base import Fence, Held, JobStore, Pause
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
    share,
    suite,
)

Counts = dict[tuple[str, str, str | None], int]


async def _held(
    store: JobStore, now: datetime = T0, queues: Sequence[str] = ("default",)
) -> Counts:
    found = await store.held(now, queues)
    assert all(isinstance(one, Held) for one in found)
    counts = {(one.tenant, one.queue, one.limit_key): one.jobs for one in found}
    assert len(counts) == len(found)
    return counts


@suite.case("held", "counts by tenant, queue and limit key, on the queues that are asked for")
async def counted(env: Env) -> None:
    store = await opened(env)
    lanes = [("n1", "q1", None), ("n1", "q1", "k"), ("n2", "q1", "k"), ("n1", "q2", "K")]
    for number, (tenant, queue, key) in enumerate(lanes, start=1):
        await insert(
            store,
            *(
                job(f"{number}-{n}", tenant=tenant, queue=queue, limit_key=key, type=f"t{n}")
                for n in range(number)
            ),
        )
    assert await _held(store, queues=("q1", "q2")) == {}
    await claim(store, limit=99)
    everything = {lane: number for number, lane in enumerate(lanes, start=1)}
    assert await _held(store, queues=("q1", "q2", "q1", "none")) == everything
    assert await _held(store, queues=("q2",)) == {("n1", "q2", "K"): 4}
    assert await _held(store, queues=("Q1",)) == {}
    assert await _held(store, queues=()) == {}


@suite.case("held", "a lease holds until just before its end, and without end for ever")
async def lapsing(env: Env) -> None:
    store = await opened(env)
    await insert(
        store,
        job("ten", lease_seconds=10.0, limit_key="ten"),
        job("twenty", lease_seconds=20.0, limit_key="twenty"),
        job("endless", limit_key="endless"),
    )
    rows = {row.id: row for row in await claim(store, limit=9)}

    async def keys(now: datetime) -> set[str | None]:
        return {key for _, _, key in await _held(store, now)}

    assert await keys(at(9.999999)) == {"ten", "twenty", "endless"}
    assert await keys(at(10)) == {"twenty", "endless"}
    await store.extend({Fence("twenty", rows["twenty"].token or ""): 100.0}, at(15))
    assert await keys(at(114.999999)) == {"twenty", "endless"}
    assert await keys(at(1e6)) == {"endless"}
    await store.extend({Fence("endless", rows["endless"].token or ""): 1.0}, at(1e6))
    assert await keys(at(1e6)) == {"endless"}
    assert await keys(at(1e6 + 1)) == set()


@suite.case("held", "a job that is being cancelled still holds; one that left its lease does not")
async def leaving(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", lease_seconds=10.0) for n in range(6)))
    rows = await claim(store, limit=5)
    everyone = ("default", "default", None)
    assert await _held(store) == {everyone: 5}
    await commit(store, [rows[0]], Cancel(mode=CancelMode.COOPERATIVE))
    assert await _held(store) == {everyone: 5}
    endings: list[Command] = [Complete(token=None), Expire(), Release(token=None)]
    endings.append(Cancel(mode=CancelMode.IMMEDIATE))
    for left, (row, command) in enumerate(zip(rows[1:], endings, strict=True), start=1):
        await commit(store, [row], command)
        assert await _held(store) == {everyone: 5 - left}
    assert await _held(store, at(10)) == {}


@suite.case("held", "claims by shares count, gates and pauses do not matter")
async def of_shares(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", limit_key=f"k{n % 2}") for n in range(10)))
    (gate,) = await gated(store, "default")
    shares = [share(3, limit_key="k0"), share(1, limit_key="k1")]
    assert await store.claim_shares(request(), shares, [gate])
    await store.pause(Pause("default", None, T0))
    assert await _held(store) == {("default", "default", "k0"): 3, ("default", "default", "k1"): 1}


@suite.case("held", "reads from the jobs: nothing is left behind by jobs that are deleted")
async def deleted(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"), job("b"))
    rows = await claim(store, limit=2)
    assert await store.delete({"a": rows[0].version})
    assert await _held(store) == {("default", "default", None): 1}
    await insert(store, job("a"))
    assert await _held(store) == {("default", "default", None): 1}
