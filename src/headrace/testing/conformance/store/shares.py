"""claim_shares: as a claim, but so many from each lane, and only if the gates are as they were read."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

from msgspec.structs import replace

from headrace import lifecycle
from headrace.lifecycle import Claim, Expire, Release
from headrace.model import Job, State
from headrace.stores.base import (
    GATE,
    ClaimRequest,
    EventQuery,
    Head,
    JobStore,
    Pause,
    Record,
    Share,
)
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
    stored,
    suite,
    without_place,
)


async def _ids(
    store: JobStore, shares: list[Share], gates: tuple[Record, ...] = (), **fields: Any
) -> list[str]:
    taken = await store.claim_shares(request(**fields), shares, gates)
    assert taken is not None
    return [row.id for row in taken]


def _share_of(head: Head) -> Share:
    lane = {name: getattr(head, name) for name in Share.__struct_fields__}
    return Share(**lane)


@suite.case("claim_shares", "writes exactly what lifecycle.apply says, event included")
async def as_the_lifecycle(env: Env) -> None:
    store = await opened(env)
    rows = await insert(
        store,
        job("a", lease_seconds=10.5, tags=("x",), payload_json=b'{"n":1}', max_attempts=3),
        job("b", run_at=at(-5), priority=4),
        job("c", limit_key="k", run_at=at(3.5), lease_seconds=1.0, tenant="acme", queue="q"),
    )
    cursor = await store.tail()
    shares = [share(1, priority=4), share(9, limit_key="k", tenant="acme", queue="q"), share(1)]
    taken = await store.claim_shares(request("w1", now=at(4), nonce="xyz"), shares, [])
    by_id = {row.id: row for row in rows}
    command = Claim(worker="w1", nonce="xyz")
    wanted = [lifecycle.apply(by_id[job_id], command, at(4)) for job_id in ("b", "c", "a")]
    assert list(taken or ()) == [change.after for change in wanted]
    assert [await stored(store, change.after.id) for change in wanted] == [c.after for c in wanted]
    log = await store.events(EventQuery(after=cursor))
    assert [without_place(event) for event in log] == [change.event for change in wanted]


@suite.case("claim_shares", "writes what lifecycle.apply says for retried and lost jobs too")
async def as_the_lifecycle_again(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", lease_seconds=10.0), job("b", lease_seconds=10.0))
    first = await claim(store, limit=2)
    await commit(store, [first[0]], Release(token=None), now=at(1))
    await commit(store, [first[1]], Expire(), now=at(2))
    before = await store.get(["a", "b"])
    wish = request("w2", now=at(50), nonce="m", lease_seconds=7.0)
    taken = await store.claim_shares(wish, [share(9)], [])
    command = Claim(worker="w2", nonce="m", lease_seconds=7.0)
    assert {row.id: row for row in taken or ()} == {
        job_id: lifecycle.apply(row, command, at(50)).after for job_id, row in before.items()
    }


@suite.case("claim_shares", "up to so many from each lane, and nothing from any other")
async def limits(env: Env) -> None:
    store = await opened(env)
    grid = list(itertools.product(("n1", "n2"), ("q1", "q2"), ("t1", "t2"), (1, 2), (None, "k")))
    await insert(
        store,
        *(
            job(f"{n}-{i}", tenant=n[0], queue=n[1], type=n[2], priority=n[3], limit_key=n[4])
            for i in range(4)
            for n in grid
        ),
    )
    fields = ("tenant", "queue", "type", "priority", "limit_key")
    wanted = {lane: index % 4 for index, lane in enumerate(grid) if index % 3}
    shares = [share(jobs, **dict(zip(fields, lane, strict=True))) for lane, jobs in wanted.items()]
    taken = await _ids(store, shares)
    assert taken == [f"{lane}-{i}" for lane, jobs in wanted.items() for i in range(jobs)]
    left = await claim(store, limit=999)
    assert len(left) == 128 - len(taken)


@suite.case("claim_shares", "in the order of the shares, and of run_at and seq within one")
async def order(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"a{n}", run_at=at(-(n * 7 % 5)), limit_key="a") for n in range(6)))
    await insert(store, *(job(f"b{n}", run_at=at(-99), priority=0) for n in range(3)))
    taken = await _ids(store, [share(5, limit_key="a"), share(2, priority=0)])
    assert taken == ["a2", "a4", "a1", "a3", "a0", "b0", "b1"]
    assert await _ids(store, [share(9, priority=0), share(9, limit_key="a")]) == ["b2", "a5"]


@suite.case("claim_shares", "never more than the request's limit over all shares")
async def request_limit(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"{key}{n}", limit_key=key) for n in range(5) for key in "abc"))
    shares = [share(3, limit_key=key) for key in "abc"]
    assert await _ids(store, shares, limit=4) == ["a0", "a1", "a2", "b0"]
    assert await _ids(store, shares, limit=3) == ["a3", "a4", "b1"]


@suite.case("claim_shares", "every filter of the request holds, tags above all")
async def filters(env: Env) -> None:
    store = await opened(env)
    await insert(
        store,
        job("plain"),
        job("x", tags=("x",)),
        job("xy", tags=("x", "y")),
        job("xyz", tags=("x", "y", "z")),
        job("XY", tags=("X", "Y")),
        job("other", tags=("x", "y"), tenant="acme", queue="q", type="u"),
    )
    other = share(9, tenant="acme", queue="q", type="u")
    both = [other, share(9)]
    assert await _ids(store, both, tenant="acme", tags=("z",)) == []
    assert await _ids(store, both, queues=()) == []
    assert await _ids(store, both, types=()) == []
    assert await _ids(store, both, tags=("x", "nothing")) == []
    assert await _ids(store, [share(1)], tags=("y", "x")) == ["xy"]
    assert await _ids(store, both, tags=("y",), types=("t",)) == ["xyz"]
    assert await _ids(store, both, queues=("q",), tenant="default") == []
    assert await _ids(store, both, queues=("default",)) == ["plain", "x", "XY"]
    assert await _ids(store, both, queues=("q",), types=("u",), tenant="acme") == ["other"]


@suite.case("claim_shares", "only what is due: not before run_at, nothing blocked, leased or ended")
async def only_due(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("blocked"), waits=True)
    await insert(store, job("running"))
    await claim(store)
    await insert(store, job("later", run_at=at(5)), job("now"))
    assert await _ids(store, [share(9)], now=at(4.999999)) == ["now"]
    assert await _ids(store, [share(9)], now=at(4.999999)) == []
    assert await _ids(store, [share(9)], now=at(5)) == ["later"]


@suite.case("claim_shares", "a paused queue is passed over, for all tenants or for one")
async def paused(env: Env) -> None:
    store = await opened(env)
    for tenant in ("n1", "n2"):
        await insert(store, *(job(f"{tenant}{q}", tenant=tenant, queue=q) for q in ("q1", "q2")))
    await store.pause(Pause("q1", None, T0))
    await store.pause(Pause("q2", "n1", T0))
    grid = itertools.product(("n1", "n2"), ("q1", "q2"))
    shares = [share(1, tenant=tenant, queue=queue) for tenant, queue in grid]
    assert await _ids(store, shares) == ["n2q2"]
    assert await store.resume("q1", None)
    assert await _ids(store, shares) == ["n1q1", "n2q1"]


@suite.case("claim_shares", "a lane that is not there gives nothing; no shares take nothing")
async def nothing_there(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    assert await _ids(store, []) == []
    assert await _ids(store, [share(0)]) == []
    for lane in ({"limit_key": "k"}, {"priority": 1}, {"type": "T"}, {"tenant": "x"}):
        assert await _ids(store, [share(9, **lane)]) == []
    assert (await stored(store, "a")).state is State.PENDING


@suite.case("claim_shares", "gates or not: takes from a gated queue, with or without its gate")
async def through_gates(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", queue="q"), job("b", queue="q"), job("c"))
    gate = (await gated(store, "q"))[0]
    shares = [share(1, queue="q"), share(1)]
    assert await _ids(store, shares, (gate,)) == ["a", "c"]
    assert await _ids(store, shares) == ["b"]


@suite.case("claim_shares", "each gate gets its new body and the next version")
async def gates_written(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", queue="q1"))
    one, two, three = await gated(store, "q1", "q2", "q3")
    given = (replace(one, body_json=b'{"n":1}'), replace(two, body_json='"é"'.encode()))
    assert await _ids(store, [share(1, queue="q1")], given) == ["a"]
    assert list(await store.records(GATE)) == [
        replace(given[0], version=2),
        replace(given[1], version=2),
        three,
    ]


@suite.case("claim_shares", "the gates are written even if no job was taken")
async def gates_without_jobs(env: Env) -> None:
    store = await opened(env)
    (gate,) = await gated(store, "q")
    for version in range(2, 5):
        body = b"%d" % version
        assert await _ids(store, [], (replace(gate, body_json=body),)) == []
        (gate,) = await store.records(GATE)
        assert (gate.version, gate.body_json) == (version, body)


@suite.case("claim_shares", "None if a gate has moved on: nothing is claimed, nothing written")
async def stale_gate(env: Env) -> None:
    store = await opened(env)
    rows = await insert(store, job("a", queue="q"), job("b"))
    old, fresh = await gated(store, "q", "r")
    assert await store.put_record(replace(old, body_json=b'"newer"'))
    before = await store.records(GATE)
    cursor = await store.tail()
    shares = [share(1), share(1, queue="q")]
    for gates in ([old], [fresh, old], [old, fresh], [replace(old, version=9)]):
        given = [replace(gate, body_json=b'"late"') for gate in gates]
        assert await store.claim_shares(request(), shares, given) is None
    assert list(await store.records(GATE)) == list(before)
    assert await store.get(["a", "b"]) == {row.id: row for row in rows}
    assert await store.tail() == cursor


@suite.case("claim_shares", "None if a gate is gone, or there though it was read as not there")
async def gate_gone(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", queue="q"))
    (gate,) = await gated(store, "q")
    absent = Record(kind=GATE, name="q", body_json=b'"mine"')
    assert await store.claim_shares(request(), [share(1, queue="q")], [absent]) is None
    assert await store.delete_record(gate)
    assert await store.claim_shares(request(), [share(1, queue="q")], [gate]) is None
    assert not await store.records(GATE)
    assert (await stored(store, "a")).state is State.PENDING
    assert await _ids(store, [share(1, queue="q")], (absent,)) == ["a"]
    assert list(await store.records(GATE)) == [replace(absent, version=1)]


@suite.case("claim_shares", "of many at once with the same gate version, exactly one wins")
async def one_winner(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", queue="q") for n in range(60)))
    gates = await gated(store, "q", "r")
    answers = await asyncio.gather(
        *(
            store.claim_shares(
                request(f"w{n}", nonce=f"n{n}"),
                [share(2, queue="q")],
                [replace(gate, body_json=b"%d" % n) for gate in gates[:: 1 if n % 2 else -1]],
            )
            for n in range(20)
        )
    )
    (winner,) = [n for n, taken in enumerate(answers) if taken is not None]
    assert [row.id for row in answers[winner] or ()] == ["j0", "j1"]
    assert {(one.version, one.body_json) for one in await store.records(GATE)} == {
        (2, b"%d" % winner)
    }
    (running,) = [row for row in await store.count(T0) if row.state is State.RUNNING]
    assert running.jobs == 2


@suite.case("claim_shares", "claimers that read the gate and try again take every job once")
async def drained_together(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", queue="q", limit_key=f"k{n % 3}") for n in range(30)))
    await gated(store, "q", body=b"0")
    taken: list[Job] = []
    wins = 0

    async def work(worker: str) -> None:
        nonlocal wins
        wish = request(worker, nonce=worker, limit=4)
        while heads := await store.heads(wish):
            (gate,) = await store.records(GATE, ["q"])
            spent = replace(gate, body_json=b"%d" % (int(gate.body_json) + 1))
            rows = await store.claim_shares(wish, [_share_of(head) for head in heads], [spent])
            if rows is not None:
                wins += 1
                taken.extend(rows)

    await asyncio.gather(*(work(f"w{n}") for n in range(5)))
    assert sorted(row.id for row in taken) == sorted(f"j{n}" for n in range(30))
    (gate,) = await store.records(GATE, ["q"])
    assert (gate.version, int(gate.body_json)) == (1 + wins, wins)


@suite.case("claim_shares", "next to plain claims, each job goes to one of them")
async def beside_claims(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", limit_key=f"k{n % 2}") for n in range(60)))
    shares = [share(3, limit_key="k0"), share(3, limit_key="k1")]
    taken: list[str] = []

    async def work(number: int) -> None:
        while True:
            wish = request(f"w{number}", nonce=f"n{number}", limit=6)
            rows = await (store.claim_shares(wish, shares, []) if number % 2 else store.claim(wish))
            taken.extend(row.id for row in rows or ())
            if not rows and not await store.heads(wish):
                return

    await asyncio.gather(*(work(number) for number in range(6)))
    assert sorted(taken) == sorted(f"j{n}" for n in range(60))


@suite.case("claim_shares", "shares of all there is take what a plain claim takes")
async def everything(env: Env) -> None:
    store = await opened(env)
    dice = random.Random(7)
    tags = ((), ("x",), ("x", "y"))
    rows = await insert(
        store,
        *(
            job(
                f"j{n}",
                tenant=dice.choice(("n1", "n2")),
                queue=dice.choice(("q1", "q2")),
                type=dice.choice(("t1", "t2")),
                priority=dice.randrange(5),
                limit_key=dice.choice((None, "k1", "k2")),
                tags=dice.choice(tags),
                run_at=at(dice.randrange(-5, 5)),
            )
            for n in range(150)
        ),
    )
    wishes: list[dict[str, Any]] = [
        {"tenant": "n1", "queues": ("q1",), "tags": ("x",)},
        {"types": ("t1",), "queues": ("q2", "q1")},
        {"tags": ("y", "x")},
        {},
    ]
    for number, fields in enumerate(wishes):
        wish = request(now=at(1), limit=999, nonce=f"n{number}", **fields)
        shares = [_share_of(head) for head in await store.heads(wish)]
        taken = await store.claim_shares(wish, shares, [])
        assert {row.id for row in taken or ()} == {
            row.id for row in rows if row.is_due(at(1)) and _matches(row, wish)
        }
        assert not await store.claim(wish)
        assert not await store.heads(wish)
        await commit(store, taken or (), Release(token=None), now=at(1))
        again = await store.claim(wish)
        assert {row.id for row in again} == {row.id for row in taken or ()}
        await commit(store, again, Release(token=None), now=at(1))


def _matches(row: Job, wish: ClaimRequest) -> bool:
    return (
        wish.tenant in (None, row.tenant)
        and (wish.queues is None or row.queue in wish.queues)
        and (wish.types is None or row.type in wish.types)
        and set(wish.tags) <= set(row.tags)
    )
