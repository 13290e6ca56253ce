"""claim: the right jobs, in the right order, to one worker each."""

from __future__ import annotations

import asyncio
import itertools

from msgspec.structs import replace

from headrace import lifecycle
from headrace.lifecycle import Cancel, Claim, Expire, Fail, Release
from headrace.model import Category, Failure, Job, State
from headrace.policy import CancelMode
from headrace.stores.base import EventQuery, Pause
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    claim,
    commit,
    insert,
    job,
    opened,
    stored,
    suite,
    without_place,
)

FAILING = Fail(token=None, failure=Failure("no", Category.TEMPORARY))


@suite.case("claim", "writes exactly what lifecycle.apply says, event included")
async def as_the_lifecycle(env: Env) -> None:
    store = await opened(env)
    rows = await insert(
        store,
        job("a", lease_seconds=10.5, tags=("x",), payload_json=b'{"n":1}', max_attempts=3),
        job("b", run_at=at(-5)),
        job("c", priority=0, run_at=at(3.5), lease_seconds=1.0),
    )
    cursor = await store.tail()
    taken = await claim(store, "w1", now=at(4), limit=10, nonce="xyz")
    command = Claim(worker="w1", nonce="xyz")
    by_id = {row.id: row for row in rows}
    wanted = [lifecycle.apply(by_id[job_id], command, at(4)) for job_id in ("c", "b", "a")]
    assert list(taken) == [change.after for change in wanted]
    assert [await stored(store, change.after.id) for change in wanted] == [c.after for c in wanted]
    log = await store.events(EventQuery(after=cursor))
    assert [without_place(event) for event in log] == [change.event for change in wanted]


@suite.case("claim", "writes what lifecycle.apply says for retried and lost jobs too")
async def as_the_lifecycle_again(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0), job("b", lease_seconds=10.0))
    taken = await claim(store, limit=2)
    await commit(store, [taken[0]], FAILING, now=at(1))
    await commit(store, [taken[1]], Expire(), now=at(2))
    before = await store.get(["a", "b"])
    after = await claim(store, "w2", now=at(50), nonce="m", limit=2, lease_seconds=7.0)
    command = Claim(worker="w2", nonce="m", lease_seconds=7.0)
    assert {row.id: row for row in after} == {
        job_id: lifecycle.apply(row, command, at(50)).after for job_id, row in before.items()
    }
    assert [row.attempt for row in after] == [2, 2]


@suite.case("claim", "a job's own time never runs back: a late claim counts from its last change")
async def never_back(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0), job("b", lease_seconds=10.0))
    await commit(store, await claim(store, limit=2), Release(token=None), now=at(9))
    before = await store.get(["a", "b"])
    cursor = await store.tail()
    taken = [
        *await claim(store, "w2", now=at(8), nonce="m"),
        *await claim(store, "w2", now=at(8), nonce="m", lease_seconds=5.0),
    ]
    commands = [
        Claim(worker="w2", nonce="m"),
        Claim(worker="w2", nonce="m", lease_seconds=5.0),
    ]
    wanted = [
        lifecycle.apply(before[row.id], command, at(8))
        for row, command in zip(taken, commands, strict=True)
    ]
    assert taken == [change.after for change in wanted]
    assert [await stored(store, row.id) for row in taken] == taken
    assert [(row.assigned_at, row.lease_until) for row in taken] == [
        (at(9), at(19)),
        (at(9), at(14)),
    ]
    log = await store.events(EventQuery(after=cursor))
    assert [without_place(event) for event in log] == [change.event for change in wanted]
    assert [event.wait_us for event in log] == [0, 0]


@suite.case("claim", "order is priority, then run_at, then seq")
async def order(env: Env) -> None:
    store = await opened(env)
    shuffled = [(2, 0), (0, 3), (4, -9), (1, 1), (0, 3), (2, -1), (3, 0), (1, -4), (2, 0)]
    rows = await insert(
        store, *(job(f"j{n}", priority=p, run_at=at(r)) for n, (p, r) in enumerate(shuffled))
    )
    wanted = sorted(rows, key=lambda row: (row.priority, row.run_at, row.seq))
    taken: list[Job] = []
    for _ in range(3):
        taken += await claim(store, now=at(10), limit=3)
    assert [row.id for row in taken] == [row.id for row in wanted]


@suite.case("claim", "order holds across types, queues and tenants")
async def order_across(env: Env) -> None:
    store = await opened(env)
    mixed = itertools.product(("q1", "q2"), ("t1", "t2"), ("n1", "n2"), (2, 1))
    rows = await insert(
        store,
        *(
            job(f"j{n}", queue=q, type=t, tenant=tenant, priority=p, run_at=at(-(n * 7 % 5)))
            for n, (q, t, tenant, p) in enumerate(mixed)
        ),
    )
    wanted = sorted(rows, key=lambda row: (row.priority, row.run_at, row.seq))
    taken = await claim(store, limit=100)
    assert [row.id for row in taken] == [row.id for row in wanted]


@suite.case("claim", "nothing before it is due, at the very moment it is")
async def due(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", run_at=at(5)))
    assert not await claim(store, now=at(4.999999))
    (row,) = await claim(store, now=at(5))
    assert row.id == "a"


@suite.case("claim", "jobs that are not due do not hide those that are")
async def future_in_front(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"f{n}", priority=0, run_at=at(1000 + n)) for n in range(200)))
    await insert(store, job("now", priority=4))
    assert [row.id for row in await claim(store, limit=10)] == ["now"]


@suite.case("claim", "only waiting jobs: none that is blocked, leased or ended")
async def only_waiting(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("blocked"), waits=True)
    await insert(store, job("running"), job("cancelled"))
    await claim(store)
    row = await stored(store, "cancelled")
    await commit(store, [row], Cancel(mode=CancelMode.IMMEDIATE))
    assert not await claim(store, now=at(1e6), limit=10)


@suite.case("claim", "a job that came back is claimable again, a lost one at once")
async def back_again(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("released"), job("lost"), job("failed"))
    rows = {row.id: row for row in await claim(store, limit=3)}
    await commit(store, [rows["released"]], Release(token=None), now=at(1))
    await commit(store, [rows["lost"]], Expire(), now=at(1))
    await commit(store, [rows["failed"]], replace(FAILING, retry_at=at(9)), now=at(1))
    again = await claim(store, "w2", now=at(2), limit=10)
    assert [row.id for row in again] == ["released", "lost"]
    assert [row.id for row in await claim(store, "w2", now=at(9), limit=10)] == ["failed"]


@suite.case("claim", "filters by tenant, queue and type")
async def filters(env: Env) -> None:
    store = await opened(env)
    grid = list(itertools.product(("n1", "n2"), ("q1", "q2"), ("t1", "t2")))
    await insert(
        store, *(job(f"{tenant}{q}{t}", tenant=tenant, queue=q, type=t) for tenant, q, t in grid)
    )
    assert _ids(await claim(store, tenant="n1", queues=("q1",), types=("t2",), limit=9)) == {
        "n1q1t2"
    }
    assert _ids(await claim(store, tenant="n2", queues=("q1", "q2"), limit=9)) == {
        "n2q1t1",
        "n2q1t2",
        "n2q2t1",
        "n2q2t2",
    }
    assert not await claim(store, queues=(), limit=9)
    assert not await claim(store, types=("t9",), limit=9)
    assert _ids(await claim(store, types=("t1",), limit=9)) == {"n1q1t1", "n1q2t1"}


@suite.case("claim", "a tag filter takes jobs that have every tag, and only those")
async def tags(env: Env) -> None:
    store = await opened(env)
    await insert(
        store,
        job("none"),
        job("a", tags=("a",)),
        job("ab", tags=("a", "b")),
        job("abc", tags=("a", "b", "c")),
        job("A", tags=("A",)),
    )
    assert _ids(await claim(store, tags=("b", "a"), limit=9)) == {"ab", "abc"}
    assert not await claim(store, tags=("a", "zzz"), limit=9)
    assert _ids(await claim(store, tags=("A",), limit=9)) == {"A"}
    assert _ids(await claim(store, limit=9)) == {"none", "a"}


@suite.case("claim", "a tag filter keeps the order and sees jobs that came back")
async def tags_order(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", tags=("x", f"n{n}"), priority=4 - n) for n in range(5)))
    taken = await claim(store, tags=("x",), limit=2)
    assert [row.id for row in taken] == ["j4", "j3"]
    await commit(store, [taken[0]], Release(token=None), now=at(1))
    assert [row.id for row in await claim(store, tags=("x",), now=at(1), limit=2)] == ["j4", "j2"]
    assert [row.id for row in await claim(store, tags=("n1",), now=at(1))] == ["j1"]


@suite.case("claim", "a paused queue is passed over, for all tenants or for one")
async def paused(env: Env) -> None:
    store = await opened(env)
    for tenant in ("n1", "n2"):
        await insert(store, *(job(f"{tenant}{q}", tenant=tenant, queue=q) for q in ("q1", "q2")))
    await store.pause(Pause("q1", None, T0))
    await store.pause(Pause("q2", "n1", T0))
    assert _ids(await claim(store, limit=9)) == {"n2q2"}
    assert await store.resume("q1", None)
    assert not await store.resume("q1", None)
    assert _ids(await claim(store, limit=9)) == {"n1q1", "n2q1"}
    assert await store.resume("q2", "n1")
    assert _ids(await claim(store, limit=9)) == {"n1q2"}


@suite.case("claim", "never more than the limit, and each job to one claim only")
async def concurrent(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}") for n in range(100)))
    answers = await asyncio.gather(
        *(claim(store, f"w{n}", limit=7, nonce=f"n{n}") for n in range(20))
    )
    assert all(len(rows) <= 7 for rows in answers)
    taken = [row.id for rows in answers for row in rows]
    assert len(taken) == len(set(taken)) == 100
    assert all(row.assignee == f"w{n}" for n, rows in enumerate(answers) for row in rows)


@suite.case("claim", "a heartbeat or a note does not hide or change what comes next")
async def state_of_claimed(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    (row,) = await claim(store)
    assert row.state is State.RUNNING
    assert not await claim(store, now=at(1e6), limit=9)


def _ids(rows: object) -> set[str]:
    assert isinstance(rows, list | tuple)
    found = [row.id for row in rows if isinstance(row, Job)]
    assert len(found) == len(set(found))
    return set(found)
