"""commit: compare and swap, with everything that goes with a change in the same step."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from headrace import lifecycle
from headrace.lifecycle import Abandon, Cancel, Complete, Expire, Fail, Release, Snooze
from headrace.model import Category, Failure, Job, State
from headrace.policy import CancelMode
from headrace.stores.base import Commit, EventQuery, Fence, KeyHold, KeyScope, Note
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    change,
    claim,
    commit,
    insert,
    job,
    opened,
    stored,
    suite,
    without_place,
)

DONE = Complete(token=None)
FAILURE = Failure("it broke – ünï", Category.TEMPORARY, "E42")


@suite.case("commit", "writes every field of the change, and its event")
async def every_field(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=5.0, max_attempts=4))
    cursor = await store.tail()
    events = []
    (row,) = await claim(store, now=at(1))
    for command, now in (
        (Fail(token=None, failure=FAILURE, retry_at=at(3.000001)), at(2)),
        (lifecycle.Claim(worker="w2", nonce="m"), at(4)),
        (Expire(), at(9.5)),
        (lifecycle.Claim(worker="w3", nonce="o"), at(10)),
        (Complete(token=None, result_json=b'{"ok":true}'), at(11)),
    ):
        made = change(row, command, now=now)
        answer = await store.commit(Commit(changes=[made]))
        assert list(answer.applied) == [True]
        row = await stored(store, "a")
        assert row == made.after
        events.append(made.event)
    assert (row.failures, row.losses, row.attempt, row.result) == (1, 1, 3, {"ok": True})
    log = (await store.events(EventQuery(after=cursor)))[1:]
    assert [without_place(event) for event in log] == events


@suite.case("commit", "a job that has moved on is left alone, with no event")
async def moved_on(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    (row,) = await claim(store)
    await commit(store, [row], DONE, now=at(1))
    cursor = await store.tail()
    answer = await commit(store, [row], Release(token=None), now=at(2))
    assert list(answer.applied) == [False]
    assert (await stored(store, "a")).state is State.COMPLETED
    assert await store.tail() == cursor


@suite.case("commit", "a job that is gone is left alone")
async def gone(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    (row,) = await claim(store)
    await commit(store, [row], DONE)
    ended = await stored(store, "a")
    assert await store.delete({"a": ended.version})
    answer = await commit(store, [row], Release(token=None))
    assert list(answer.applied) == [False]
    assert not await store.get(["a"])


@suite.case("commit", "each change stands or falls alone")
async def each_alone(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"), job("b"), job("c"))
    rows = await claim(store, limit=3)
    await commit(store, [rows[1]], Release(token=None))
    answer = await commit(store, rows, DONE)
    assert list(answer.applied) == [True, False, True]
    assert [(await stored(store, name)).state for name in "abc"] == [
        State.COMPLETED,
        State.RETRYING,
        State.COMPLETED,
    ]


@suite.case("commit", "together: all or nothing")
async def together(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"), job("b"), job("c"))
    rows = await claim(store, limit=3)
    await commit(store, [rows[1]], Release(token=None))
    cursor = await store.tail()
    answer = await commit(store, rows, DONE, together=True)
    assert list(answer.applied) == [False, False, False]
    assert not answer.touched
    assert await store.tail() == cursor
    assert (await stored(store, "a")).state is State.RUNNING
    answer = await commit(store, [rows[0], rows[2]], DONE, together=True)
    assert list(answer.applied) == [True, True]


@suite.case("commit", "notes and a newer heartbeat survive a change computed from an older read")
async def notes_survive(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0))
    (row,) = await claim(store)
    assert row.token is not None
    fence = Fence("a", row.token)
    await store.extend({fence: 100.0}, at(5))
    note = Note(progress=0.5, progress_note="half", checkpoint_json=b"[1]", log_json=b"[2]")
    assert await store.annotate(fence, note, at(5))
    await commit(store, [row], Cancel(mode=CancelMode.COOPERATIVE), now=at(6))
    now_row = await stored(store, "a")
    assert now_row.state is State.CANCELLING
    assert now_row.lease_until == at(105)
    assert (now_row.progress, now_row.progress_note, now_row.checkpoint) == (0.5, "half", [1])
    await commit(
        store, [replace(row, state=State.CANCELLING, version=row.version + 1)], DONE, now=at(7)
    )
    ended = await stored(store, "a")
    assert (ended.state, ended.lease_until, ended.token) == (State.COMPLETED, None, None)
    assert (ended.progress, ended.checkpoint, ended.log) == (0.5, [1], [2])


@suite.case("commit", "leases_as_read: a heartbeat in between keeps the lease")
async def leases_as_read(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0), job("b"))
    rows = await claim(store, limit=2)
    assert rows[0].token is not None
    await store.extend({Fence("a", rows[0].token): 50.0}, at(9))
    answer = await commit(store, rows, Expire(), now=at(11), leases_as_read=True)
    assert list(answer.applied) == [False, True]
    assert (await stored(store, "a")).state is State.RUNNING
    (again,) = (await store.get(["a"])).values()
    answer = await commit(store, [again], Expire(), now=at(60), leases_as_read=True)
    assert list(answer.applied) == [True]


@suite.case("commit", "the end of a job gives up its key if it is released when terminal")
async def key_released(env: Env) -> None:
    store = await opened(env)
    scopes = {name: KeyScope("default", "default", "t", name) for name in ("released", "kept")}
    for name, scope in scopes.items():
        hold = KeyHold(scope, name, None, released_when_terminal=name == "released")
        await insert(store, job(name, key=name), keys=[hold])
    rows = await claim(store, limit=2)
    assert len(await store.keyed(list(scopes.values()), T0)) == 2
    await commit(store, rows, DONE)
    assert await store.keyed(list(scopes.values()), T0) == {scopes["kept"]: "kept"}


@suite.case("commit", "of many writers with the same read, one wins")
async def one_winner(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    (row,) = await claim(store)
    answers = await asyncio.gather(
        *(commit(store, [row], Complete(token=None, result_json=b"%d" % n)) for n in range(20))
    )
    assert sum(answer.applied[0] for answer in answers) == 1
    winner = next(n for n, answer in enumerate(answers) if answer.applied[0])
    assert (await stored(store, "a")).result == winner
    assert len(await store.events(EventQuery(job_id="a"))) == 3


@suite.case("commit", "an abandoned job may still complete")
async def late_result(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    (row,) = await claim(store)
    await commit(store, [row], Abandon(), now=at(1))
    abandoned = await stored(store, "a")
    answer = await commit(store, [abandoned], DONE, now=at(2))
    assert list(answer.applied) == [True]
    assert (await stored(store, "a")).finalized_at == at(2)


@suite.case("commit", "a large group of changes is written whole")
async def large_group(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", tags=("x",)) for n in range(500)))
    rows = await claim(store, limit=500)
    answer = await commit(store, rows, Snooze(token=None, until=at(10)))
    assert all(answer.applied)
    assert not await claim(store, limit=1, tags=("x",), now=at(9))
    assert len(await claim(store, limit=999, tags=("x",), now=at(10))) == 500


@suite.case("delete", "all or, when one has moved on, none; gone ids do not count")
async def delete(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", tags=("x",)), job("b", tags=("x",)))
    await commit(store, await claim(store, limit=2), DONE)
    rows = await store.get(["a", "b"])
    assert not await store.delete({"a": rows["a"].version, "b": rows["b"].version - 1})
    assert len(await store.get(["a", "b"])) == 2
    assert await store.delete({"a": rows["a"].version, "b": rows["b"].version, "never": 1})
    assert not await store.get(["a", "b"])
    assert not await store.count(T0)
    assert not await store.count(T0, tags=("x",))
    assert len(await store.events(EventQuery())) == 6


@suite.case("delete", "gives up the key, even one that is kept, and the id")
async def delete_frees(env: Env) -> None:
    store = await opened(env)
    scope = KeyScope("default", "default", "t", "k")
    hold = KeyHold(scope, "a", None, released_when_terminal=False)
    await insert(store, job("a", key="k"), keys=[hold])
    await commit(store, await claim(store), DONE)
    assert await store.delete({"a": (await stored(store, "a")).version})
    assert await store.keyed([scope], T0) == {}
    (again,) = await insert(store, job("a", key="k"), keys=[hold])
    assert isinstance(again, Job)
