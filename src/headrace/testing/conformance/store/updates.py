"""update: what a user says of a job, with the lane, the tags and the event that go with it."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from headrace import history
from headrace.lifecycle import Cancel, Expire, Fail, Release, Unblock, Update
from headrace.model import Category, EventKind, Failure, Job, State
from headrace.policy import CancelMode
from headrace.stores.base import EventQuery, Fence, JobStore, Note, Query
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    at,
    change,
    claim,
    commit,
    insert,
    job,
    opened,
    request,
    stored,
    suite,
    without_place,
)

FAIL = Fail(token=None, failure=Failure("no", Category.TEMPORARY), retry_at=at(5))
ALL: dict[str, Any] = {
    "tags": ("new", "kept"),
    "priority": 0,
    "correlation_id": "trace \u00fc",
    "callback_url": "https://example.org/x",
    "depth": 7,
}


async def _update(store: JobStore, job_id: str, **said: Any) -> Job:
    """As an update of the job as it is now writes it."""
    wanted = change(await stored(store, job_id), Update(**said), now=at(1))
    assert list(await store.update([wanted])) == [True]
    assert await stored(store, job_id) == wanted.after
    return wanted.after


async def _in_state(store: JobStore, state: State, **fields: Any) -> Job:
    """The only job of the store, in a state that has not ended."""
    waits = state is State.BLOCKED
    await insert(store, job("a", **fields), waits=waits)
    if state not in (State.BLOCKED, State.PENDING):
        (leased,) = await claim(store)
        if state is State.CANCELLING:
            await commit(store, [leased], Cancel(mode=CancelMode.COOPERATIVE))
        elif state is State.RETRYING:
            await commit(store, [leased], Release(token=None))
        elif state is State.LOST:
            await commit(store, [leased], Expire())
    row = await stored(store, "a")
    assert row.state is state
    return row


WAITING_OR_LEASED = (
    State.BLOCKED,
    State.PENDING,
    State.RUNNING,
    State.CANCELLING,
    State.RETRYING,
    State.LOST,
)


@suite.case("update", "writes what is given, in every state, and leaves every other field as it is")
async def every_field(env: Env) -> None:
    store = await opened(env)
    for state in WAITING_OR_LEASED:
        before = await _in_state(store, state, tags=("old", "kept"), key="k", payload_json=b"[1]")
        await _update(store, "a", **ALL)
        await _update(store, "a", correlation_id=None, callback_url=None, tags=(), priority=4)
        after = await _update(store, "a", **{**ALL, "tags": ("old", "kept")})
        undone = {name: getattr(before, name) for name in history.UPDATED}
        assert replace(after, version=before.version, **undone) == before
        assert after.version == before.version + 3
        (tally,) = await store.count(at(0))
        assert (tally.state, tally.jobs) == (state, 1)
        assert await store.delete({"a": after.version}) is True
        assert list(await store.count(at(0))) == []
        assert list(await store.find(Query(tags=("kept",)))) == []


@suite.case("update", "its event says what was changed, and comes back as the lifecycle made it")
async def event(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", tags=("old",), correlation_id="c"))
    (leased,) = await claim(store)
    wanted = change(leased, Update(**ALL), now=at(7))
    await store.update([wanted])
    *_, logged = await store.events(EventQuery(limit=100))
    assert without_place(logged) == wanted.event
    assert (logged.kind, logged.priority, logged.at) == (EventKind.UPDATED, 0, at(7))
    assert (logged.before, logged.after) == (State.RUNNING, State.RUNNING)
    assert b"example.org" not in (logged.detail_json or b""), "a url may hold a secret"
    of_job = await store.events(EventQuery(job_id="a"))
    assert [one.kind for one in of_job] == ["enqueued", "leased", "updated"]
    assert [one.priority for one in of_job] == [2, 2, 0]
    folded = history.fold(of_job)
    row = await stored(store, "a")
    assert {name: getattr(row, name) for name in folded} == folded


@suite.case("update", "moves a waiting job to its place in the line of its new priority")
async def order(env: Env) -> None:
    store = await opened(env)
    ids = [f"j{n}" for n in range(6)]
    await insert(store, *(job(name, run_at=at(n)) for n, name in enumerate(ids)))
    await _update(store, "j4", priority=1)
    await _update(store, "j1", priority=1)
    await _update(store, "j0", priority=3)
    await _update(store, "j5", priority=0)
    heads = await store.heads(request(now=at(4)))
    assert {(head.priority, head.jobs) for head in heads} == {(1, 2), (2, 2), (3, 1)}
    taken = await store.claim(request(now=at(4)))
    assert [row.id for row in taken] == ["j1", "j4", "j2", "j3", "j0"]
    assert [row.priority for row in taken] == [1, 1, 2, 2, 3]
    assert [row.id for row in await store.claim(request(now=at(5)))] == ["j5"]


@suite.case(
    "update", "a job that is blocked or leased comes back into the line of its new priority"
)
async def later_order(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("released"), job("failed"), job("lost"))
    rows = {row.id: row for row in await claim(store, limit=3)}
    await insert(store, job("blocked"), waits=True)
    await insert(store, job("plain"))
    for priority, name in enumerate(("lost", "failed")):
        rows[name] = await _update(store, name, priority=priority, tags=("moved",))
    rows["released"] = await _update(store, "released", priority=4)
    rows["blocked"] = await _update(store, "blocked", priority=3, tags=("moved",))
    await commit(store, [rows["released"]], Release(token=None))
    await commit(store, [rows["failed"]], FAIL)
    await commit(store, [rows["lost"]], Expire())
    await commit(store, [rows["blocked"]], Unblock())
    by_tag = await store.claim(request(now=at(5), tags=("moved",), limit=2))
    assert [row.id for row in by_tag] == ["lost", "failed"]
    assert [row.id for row in await store.claim(request(now=at(5)))] == [
        "plain",
        "blocked",
        "released",
    ]


@suite.case("update", "tags: claims, searches and counts know the new ones, and not the old")
async def tags(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", tags=("old", "kept")), job("b", tags=("old",)))
    await insert(store, job("c", tags=("old", "kept")), waits=True)
    for name in ("a", "c"):
        await _update(store, name, tags=("kept", "new"))
    for wanted, ids in ((("old",), "b"), (("kept", "new"), "ac"), (("old", "kept"), "")):
        assert [row.id for row in await store.find(Query(tags=wanted))] == list(ids)
        counted = await store.count(at(0), tags=wanted)
        assert sum(tally.jobs for tally in counted) == len(ids)
    assert list(await store.claim(request(tags=("old", "kept")))) == []
    heads = await store.heads(request(tags=("new",)))
    assert [head.jobs for head in heads] == [1]
    assert [row.id for row in await store.claim(request(tags=("new",)))] == ["a"]
    assert [row.id for row in await store.claim(request(tags=("old",)))] == ["b"]
    assert list(await store.claim(request(tags=("new",)))) == []
    await commit(store, [await stored(store, "c")], Unblock())
    assert [row.id for row in await store.claim(request(tags=("new", "kept")))] == ["c"]


@suite.case("update", "of a job that has moved on, writes nothing; the others stand")
async def stale(env: Env) -> None:
    store = await opened(env)
    rows = await insert(store, job("a"), job("b"), job("c"))
    said = [change(row, Update(priority=0)) for row in rows]
    await claim(store)  # a
    cursor = await store.tail()
    twice = [*said, change(rows[2], Update(tags=("x",)))]
    assert list(await store.update(twice)) == [False, True, True, False]
    assert [(await stored(store, name)).priority for name in "abc"] == [2, 0, 0]
    events = await store.events(EventQuery(after=cursor))
    assert [(one.job_id, one.kind) for one in events] == [("b", "updated"), ("c", "updated")]
    await store.delete({"b": 2})
    assert list(await store.update([said[1]])) == [False]
    assert list(await store.update([])) == []


@suite.case("update", "a lease and its notes go on, and a change read before it is refused")
async def leases(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (leased,) = await claim(store)
    fence = Fence("a", leased.token or "")
    wanted = change(leased, Update(tags=("x",), priority=1))
    await store.extend({fence: 60.0}, at(5))
    await store.annotate(fence, Note(progress=0.5, checkpoint_json=b"1"), at(5))
    assert list(await store.update([wanted])) == [True]
    row = await stored(store, "a")
    assert (row.lease_until, row.progress, row.checkpoint_json) == (at(65), 0.5, b"1")
    assert (row.token, row.tags, row.priority) == (leased.token, ("x",), 1)
    assert list((await commit(store, [leased], Release(token=leased.token))).applied) == [False]
    assert list((await commit(store, [row], Release(token=leased.token))).applied) == [True]
    assert [one.id for one in await claim(store, tags=("x",))] == ["a"]


@suite.case("update", "a limit key goes along to the lane of the new priority")
async def limit_keys(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", limit_key="k"), job("b", limit_key="k"))
    await _update(store, "a", priority=0)
    heads = await store.heads(request())
    assert {(head.limit_key, head.priority, head.jobs) for head in heads} == {
        ("k", 0, 1),
        ("k", 2, 1),
    }
    (leased,) = await claim(store)
    assert leased.id == "a"
    await _update(store, "a", priority=3)
    (held,) = await store.held(at(0), ["default"])
    assert (held.limit_key, held.jobs) == ("k", 1)
    await _update(store, "b", priority=1)
    assert [(head.priority, head.jobs) for head in await store.heads(request())] == [(1, 1)]


@suite.case("update", "beside claims and other updates: each stands whole, or not at all")
async def races(env: Env) -> None:
    store = await opened(env)
    ids = [f"j{n:02}" for n in range(20)]
    await insert(store, *(job(name, tags=("a",)) for name in ids))

    async def say(priority: int) -> None:
        for name in ids:
            row = await stored(store, name)
            await store.update([change(row, Update(priority=priority, tags=(f"p{priority}",)))])

    async def take() -> list[str]:
        return [row.id for _ in range(10) for row in await store.claim(request(limit=3))]

    *_, first, second = await asyncio.gather(say(0), say(4), say(1), take(), take())
    taken = [*first, *second, *(row.id for row in await store.claim(request()))]
    assert sorted(taken) == ids
    for name in ids:
        row = await stored(store, name)
        events = await store.events(EventQuery(job_id=name))
        assert [one.version for one in events] == list(range(1, row.version + 1))
        folded = history.fold(events)
        assert {name: getattr(row, name) for name in folded} == folded
        assert row.tags in (("a",), (f"p{row.priority}",))
        assert row in await store.find(Query(tags=row.tags))
