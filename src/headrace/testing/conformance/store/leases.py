"""extend and annotate: fenced, without event or version. lapsed and outlived: what is due."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.lifecycle import Cancel, Complete, Expire
from headrace.model import State
from headrace.policy import CancelMode
from headrace.stores.base import Extended, Fence, Note
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    at,
    claim,
    commit,
    insert,
    job,
    opened,
    stored,
    suite,
)


@suite.case("extend", "a lease that holds lasts so long from now; version and log are as before")
async def extend(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0), job("b", lease_seconds=10.0))
    rows = {row.id: row for row in await claim(store, limit=2)}
    cursor = await store.tail()
    leases = {Fence(row.id, row.token or ""): 30.0 for row in rows.values()}
    extended = await store.extend(leases, at(9))
    assert {one.job_id: one for one in extended} == {
        name: Extended(name, State.RUNNING, at(39)) for name in ("a", "b")
    }
    assert (await stored(store, "a")).lease_until == at(39)
    assert (await stored(store, "a")).version == rows["a"].version
    assert await store.tail() == cursor


@suite.case(
    "extend", "a wrong token, a lapsed lease, an ended or unknown job: left alone, left out"
)
async def extend_refused(env: Env) -> None:
    store = await opened(env)
    await insert(
        store, *(job(name, lease_seconds=10.0) for name in ("good", "wrong", "ended", "lost"))
    )
    rows = {row.id: row for row in await claim(store, limit=4)}
    await commit(store, [rows["ended"]], Complete(token=None))
    await commit(store, [rows["lost"]], Expire())
    leases: dict[Fence, float | None] = {
        Fence("good", rows["good"].token or ""): 5.0,
        Fence("wrong", "x"): 5.0,
        Fence("ended", rows["ended"].token or ""): 5.0,
        Fence("lost", rows["lost"].token or ""): 5.0,
        Fence("unknown", "x"): 5.0,
    }
    assert [one.job_id for one in await store.extend(leases, at(9.999999))] == ["good"]
    assert (await stored(store, "wrong")).lease_until == at(10)
    assert not await store.extend({Fence("wrong", rows["wrong"].token or ""): 5.0}, at(10))


@suite.case("extend", "tells of a cancellation; may end the lease now or make it endless")
async def extend_states(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (row,) = await claim(store)
    fence = Fence("a", row.token or "")
    await commit(store, [row], Cancel(mode=CancelMode.COOPERATIVE))
    assert list(await store.extend({fence: None}, at(1))) == [Extended("a", State.CANCELLING, None)]
    assert list(await store.extend({fence: 0.0}, at(1e6))) == [
        Extended("a", State.CANCELLING, at(1e6))
    ]
    assert not await store.extend({fence: 5.0}, at(1e6))


@suite.case("annotate", "writes what is given, leaves the rest, and only while the lease holds")
async def annotate(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (row,) = await claim(store)
    fence = Fence("a", row.token or "")
    cursor = await store.tail()
    assert await store.annotate(fence, Note(progress=0.25, progress_note="q"), at(1))
    assert await store.annotate(fence, Note(checkpoint_json=b'{"at":7}'), at(2))
    assert await store.annotate(fence, Note(progress=0.75), at(3))
    now_row = await stored(store, "a")
    assert (now_row.progress, now_row.progress_note, now_row.checkpoint) == (0.75, "q", {"at": 7})
    assert now_row.version == row.version
    assert await store.tail() == cursor
    assert not await store.annotate(fence, Note(progress=1.0), at(10))
    assert not await store.annotate(Fence("a", "x"), Note(progress=1.0), at(3))
    assert not await store.annotate(Fence("nobody", "x"), Note(progress=1.0), at(3))
    assert (await stored(store, "a")).progress == 0.75


DEADLINES: dict[str, dict[str, Any]] = {
    "lifetime": {"expires_at": at(10)},
    "timeout": {"timeout_seconds": 10.0},
}
"""The lifetime is over when it is reached, the execution timeout when it is passed."""


@suite.case("extend and annotate", "no lease outlasts its job's lifetime or execution timeout")
async def deadlines(env: Env) -> None:
    store = await opened(env)
    for name, deadline in DEADLINES.items():
        await insert(store, job(name, **deadline), job(f"{name}-endless", lease_seconds=None))
        rows = {row.id: row for row in await claim(store, limit=2)}
        fence = Fence(name, rows[name].token or "")
        endless = Fence(f"{name}-endless", rows[f"{name}-endless"].token or "")
        last = at(9.999999) if name == "lifetime" else at(10)
        assert len(await store.extend({fence: 100.0, endless: 100.0}, last)) == 2
        assert await store.annotate(fence, Note(progress=0.5), last)
        late = at(10) if name == "lifetime" else at(10.000001)
        held = await store.extend({fence: 100.0, endless: 100.0}, late)
        assert [one.job_id for one in held] == [endless.job_id], name
        assert not await store.annotate(fence, Note(progress=0.9), late)
        row = await stored(store, name)
        assert (row.progress, row.lease_until) == (0.5, last + timedelta(seconds=100))


@suite.case("extend and annotate", "the execution timeout counts from the present claim")
async def deadline_of_each_claim(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", timeout_seconds=10.0))
    for start in (0, 100, 200):
        (row,) = await claim(store, now=at(start))
        fence = Fence("a", row.token or "")
        assert await store.extend({fence: None}, at(start + 10))
        assert not await store.extend({fence: None}, at(start + 11))
        await commit(store, [row], Expire(), now=at(start + 50))


@suite.case("annotate", "a checkpoint is there for the next claim")
async def checkpoint_kept(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (row,) = await claim(store)
    await store.annotate(Fence("a", row.token or ""), Note(checkpoint_json=b"42"), at(1))
    await commit(store, [row], Expire(), now=at(11))
    (again,) = await claim(store, "w2", now=at(12))
    assert again.checkpoint == 42


@suite.case("lapsed", "leases that ended by now, the longest lapsed first, up to the limit")
async def lapsed(env: Env) -> None:
    store = await opened(env)
    await insert(
        store,
        job("c", lease_seconds=30.0),
        job("a", lease_seconds=10.0),
        job("b", lease_seconds=20.0, tenant="other"),
        job("never"),
        job("cancelling", lease_seconds=25.0),
        job("waiting", run_at=at(999), lease_seconds=1.0),
    )
    rows = {row.id: row for row in await claim(store, limit=9)}
    await commit(store, [rows["cancelling"]], Cancel(mode=CancelMode.COOPERATIVE))
    assert not await store.lapsed(at(9.999999), 10)
    assert [row.id for row in await store.lapsed(at(10), 10)] == ["a"]
    assert [row.id for row in await store.lapsed(at(99), 10)] == ["a", "b", "cancelling", "c"]
    assert [row.id for row in await store.lapsed(at(99), 2)] == ["a", "b"]
    assert [row.id for row in await store.lapsed(at(99), 10, tenant="other")] == ["b"]
    await store.extend({Fence("a", rows["a"].token or ""): 1000.0}, at(5))
    assert [row.id for row in await store.lapsed(at(99), 1)] == ["b"]
    await commit(store, [rows["b"]], Complete(token=None))
    assert [row.id for row in await store.lapsed(at(99), 9)] == ["cancelling", "c"]


@suite.case("outlived", "live jobs past their lifetime, the oldest first, in whatever state")
async def outlived(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("blocked", expires_at=at(30)), waits=True)
    await insert(
        store,
        job("ended", expires_at=at(5)),
        job("running", expires_at=at(20), tenant="other"),
        job("waiting", expires_at=at(10), run_at=at(999)),
        job("endless"),
    )
    rows = {row.id: row for row in await claim(store, limit=9)}
    await commit(store, [rows["ended"]], Complete(token=None))
    assert not await store.outlived(at(9.999999), 9)
    for _ in range(2):  # reading takes nothing away
        found = await store.outlived(at(30), 9)
        assert [row.id for row in found] == ["waiting", "running", "blocked"]
    assert [row.id for row in await store.outlived(at(30), 1)] == ["waiting"]
    assert [row.id for row in await store.outlived(at(30), 9, tenant="other")] == ["running"]
