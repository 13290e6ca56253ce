"""Edges, joins and what a crash leaves unseen."""

from __future__ import annotations

import random

from msgspec.structs import replace

from headrace import graph
from headrace.lifecycle import Cancel, Complete, Fail, Unblock
from headrace.model import Category, DependencyKind, Edge, Failure, Job, State
from headrace.policy import CancelMode
from headrace.stores.base import Commit, JobStore
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    change,
    claim,
    commit,
    insert,
    job,
    opened,
    stored,
    suite,
)

AFTER, ANY = DependencyKind.AFTER, DependencyKind.AFTER_ANY
FAILED = Fail(token=None, failure=Failure("no", Category.PERMANENT), retry=False)


async def _child(
    store: JobStore, child_id: str, *parents: tuple[str, DependencyKind]
) -> list[Edge]:
    edges = [Edge(parent, child_id, kind) for parent, kind in parents]
    await insert(
        store, job(child_id), waits=True, edges=edges, parents=dict.fromkeys(dict(parents), None)
    )
    return edges


@suite.case("edges", "from a parent and into a child, in the order they were stored")
async def edges(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p1"), job("p2"))
    first = await _child(store, "c1", ("p2", AFTER), ("p1", ANY))
    second = await _child(store, "c2", ("p2", DependencyKind.FAN_IN))
    assert list(await store.edges(child_id="c1")) == first
    assert list(await store.edges(parent_id="p2")) == [first[0], *second]
    assert list(await store.edges(parent_id="nobody")) == []
    assert list(await store.edges(child_id="nobody")) == []


@suite.case("commit", "the end of a parent gives every open edge its outcome, and tells which")
async def settling(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p1"), job("p2"))
    made = await _child(store, "c1", ("p1", AFTER), ("p2", AFTER))
    made += await _child(store, "c2", ("p1", ANY))
    rows = {row.id: row for row in await claim(store, limit=2)}
    assert list((await commit(store, [rows["p2"]], FAILED)).applied) == [True]
    answer = await commit(store, [rows["p1"]], Complete(token=None))
    touched = sorted(answer.touched, key=lambda edge: edge.child_id)
    assert touched == [
        replace(made[0], outcome=State.COMPLETED),
        replace(made[2], outcome=State.COMPLETED),
    ]
    assert [edge.outcome for edge in await store.edges(child_id="c1")] == [
        State.COMPLETED,
        State.FAILED,
    ]
    assert not (await store.commit(Commit(changes=()))).touched


@suite.case("commit", "edges into a child whose own change is not written stay unseen")
async def seen_with_its_change(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"))
    for name in ("moved", "judged", "waiting"):
        await _child(store, name, ("p", AFTER))
    await commit(store, await claim(store), Complete(token=None))
    stale = replace(await stored(store, "moved"), version=7)
    changes = [change(stale, Unblock()), change(await stored(store, "judged"), Unblock())]
    pairs = [("p", name) for name in ("moved", "judged", "waiting")]
    answer = await store.commit(Commit(changes=changes, seen=pairs))
    assert list(answer.applied) == [False, True]
    assert [edge.child_id for edge in await store.unseen(9)] == ["moved"]


@suite.case("commit", "a change that is not applied settles nothing")
async def not_settled(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"))
    await _child(store, "c", ("p", AFTER))
    (row,) = await claim(store)
    stale = replace(row, version=row.version - 1)
    answer = await store.commit(Commit(changes=[change(stale, Complete(token=None))]))
    assert not answer.touched
    assert [edge.outcome for edge in await store.edges(child_id="c")] == [None]


@suite.case("unseen", "outcomes wait for the sweep until they are seen")
async def unseen(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p1"), job("p2"))
    await _child(store, "c", ("p1", AFTER), ("p2", AFTER))
    assert not await store.unseen(10)
    rows = await claim(store, limit=2)
    await commit(store, rows, Complete(token=None))
    assert {(edge.parent_id, edge.child_id) for edge in await store.unseen(10)} == {
        ("p1", "c"),
        ("p2", "c"),
    }
    assert len(await store.unseen(1)) == 1
    await store.commit(Commit(changes=(), seen=[("p1", "c"), ("nobody", "c")]))
    assert [edge.parent_id for edge in await store.unseen(10)] == ["p2"]
    child = await stored(store, "c")
    answer = await store.commit(Commit(changes=[change(child, Unblock())], seen=[("p2", "c")]))
    assert list(answer.applied) == [True]
    assert not await store.unseen(10)
    assert all(edge.seen for edge in await store.edges(child_id="c"))


@suite.case("unseen", "an open edge cannot be seen before it has an outcome")
async def not_seen_early(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"))
    await _child(store, "c", ("p", AFTER))
    await store.commit(Commit(changes=(), seen=[("p", "c")]))
    await commit(store, await claim(store), Complete(token=None))
    assert [edge.parent_id for edge in await store.unseen(10)] == ["p"]


@suite.case("joins", "equal graph.join_of over the edges, whatever the mix of kinds and outcomes")
async def joins(env: Env) -> None:
    store = await opened(env)
    dice = random.Random(7)
    names = [f"p{n}" for n in range(12)]
    await insert(store, *(job(name) for name in names))
    children = []
    for n in range(20):
        parents = dice.sample(names, dice.randint(1, 5))
        await _child(
            store, f"c{n}", *((name, dice.choice(list(DependencyKind))) for name in parents)
        )
        children.append(f"c{n}")
    ends = [Complete(token=None), FAILED, Cancel(mode=CancelMode.IMMEDIATE), None]
    for row in await claim(store, limit=12):
        end = dice.choice(ends)
        if end is not None:
            await commit(store, [row], end)
        found = await store.joins([*children, "nobody"])
        for child in (*children, "nobody"):
            facts = [(edge.kind, edge.outcome) for edge in await store.edges(child_id=child)]
            assert found[child] == graph.join_of(facts), (child, facts)


@suite.case("delete", "forgets the edges into a child, and keeps those of a parent that is gone")
async def deleting(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"))
    await _child(store, "c1", ("p", AFTER))
    await _child(store, "c2", ("p", AFTER))
    await commit(store, await claim(store), FAILED)
    child = await stored(store, "c1")
    await commit(store, [child], Cancel(mode=CancelMode.IMMEDIATE))
    ended: Job = await stored(store, "c1")
    parent = await stored(store, "p")
    assert await store.delete({"c1": ended.version, "p": parent.version})
    assert not await store.edges(child_id="c1")
    assert [edge.child_id for edge in await store.unseen(10)] == ["c2"]
    assert (await store.joins(["c2"]))["c2"].needs_broken is State.FAILED


@suite.case("insert", "an edge may lead into a stored, blocked child")
async def edge_into_stored(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"))
    await _child(store, "c", ("p", DependencyKind.FAN_IN))
    await insert(store, job("spawned"), edges=[Edge("spawned", "c", DependencyKind.FAN_IN)])
    rows = {row.id: row for row in await claim(store, limit=2)}
    await commit(store, [rows["p"]], Complete(token=None))
    assert (await store.joins(["c"]))["c"].needs_open
    await commit(store, [rows["spawned"]], Complete(token=None))
    assert not (await store.joins(["c"]))["c"].needs_open


@suite.case("spawned", "the jobs of one parent, in order, until they are deleted")
async def spawned(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"), job("c2", parent_id="p"), job("other", parent_id="q"))
    await insert(store, job("c1", parent_id="p"))
    assert [row.id for row in await store.spawned("p")] == ["c2", "c1"]
    assert not await store.spawned("nobody")
    rows = {row.id: row for row in await claim(store, limit=9)}
    await commit(store, [rows["c2"]], Complete(token=None))
    assert await store.delete({"c2": (await stored(store, "c2")).version})
    assert [row.state for row in await store.spawned("p")] == [State.RUNNING]


@suite.case("edges", "the same edge stored twice is one edge, and the last word stands")
async def twice(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("p"))
    await _child(store, "c", ("p", AFTER))
    await insert(store, job("q"), edges=[Edge("p", "c", DependencyKind.FAN_IN)])
    assert [edge.kind for edge in await store.edges(child_id="c")] == [DependencyKind.FAN_IN]
    await commit(store, [(await claim(store))[0]], Complete(token=None))
    assert (await store.joins(["c"]))["c"] == graph.join_of([(AFTER, State.COMPLETED)])
