"""Limit keys: part of a job's lane, of no account to a plain claim."""

from __future__ import annotations

import itertools

from headrace.lifecycle import Expire
from headrace.model import State
from headrace.stores.base import Query, Tally
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    claim,
    commit,
    insert,
    job,
    opened,
    request,
    share,
    stored,
    suite,
)

ODD = ["k", "K", " ", "a:b", "a|b", "'", '"', "\\", "%", "*", "{k}", "ünï", "𝄞", "a\nb", "x" * 256]


@suite.case("limit keys", "come back as they went in, from every verb that returns jobs")
async def round_trip(env: Env) -> None:
    store = await opened(env)
    keys = dict(enumerate([None, "None", "null", *ODD]))
    rows = await insert(
        store, *(job(f"j{n}", limit_key=key, tags=("x",)) for n, key in keys.items())
    )
    wanted = {f"j{n}": key for n, key in keys.items()}
    assert {row.id: row.limit_key for row in rows} == wanted
    got = await store.get(list(wanted))
    assert {row.id: row.limit_key for row in got.values()} == wanted
    found = await store.find(Query(tags=("x",), limit=99))
    assert {row.id: row.limit_key for row in found} == wanted
    taken = await claim(store, limit=99)
    assert {row.id: row.limit_key for row in taken} == wanted
    await commit(store, taken, Expire(), now=at(1))
    assert {name: (await stored(store, name)).limit_key for name in wanted} == wanted
    again = await claim(store, limit=99, tags=("x",), now=at(1))
    assert {row.id: row.limit_key for row in again} == wanted


@suite.case("limit keys", "a plain claim keeps priority, run_at and seq across them")
async def order(env: Env) -> None:
    store = await opened(env)
    rows = await insert(
        store,
        *(
            job(
                f"j{n}",
                limit_key=(None, "a", "b", "c")[n * 5 % 4],
                priority=n * 7 % 3,
                run_at=at(-(n * 11 % 6)),
                tags=("x",) if n % 2 else (),
            )
            for n in range(60)
        ),
    )
    in_order = sorted(rows, key=lambda row: (row.priority, row.run_at, row.seq))
    tagged = [row.id for row in in_order if row.tags]
    assert [row.id for row in await claim(store, limit=10, tags=("x",))] == tagged[:10]
    rest = [row.id for row in in_order if row.id not in tagged[:10]]
    for start in range(0, 49, 7):
        page = [row.id for row in await claim(store, limit=7)]
        assert page == rest[start : start + 7]


@suite.case("limit keys", "each is a lane of its own, however odd")
async def lanes(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", limit_key=key) for n, key in enumerate([None, *ODD])))
    heads = await store.heads(request())
    assert {head.limit_key for head in heads} == {None, *ODD}
    assert [head.jobs for head in heads] == [1] * (1 + len(ODD))
    for number, key in enumerate([None, *ODD]):
        taken = await store.claim_shares(request(), [share(9, limit_key=key)], [])
        assert [row.id for row in taken or ()] == [f"j{number}"], key
    held = await store.held(T0, ["default"])
    assert {one.limit_key: one.jobs for one in held} == dict.fromkeys([None, *ODD], 1)


@suite.case("limit keys", "no lane is taken for another whose parts read alike when joined")
async def joined(env: Env) -> None:
    store = await opened(env)
    parts = ("a", "b", "a:b", "b:a", "a|b", "a/b", "a.b", "a,b")
    grid = list(itertools.product(parts[:3], parts[1:4], (*parts[2:6], None)))
    fields = ("queue", "type", "limit_key")
    lanes = [dict(zip(fields, lane, strict=True)) for lane in grid]
    await insert(store, *(job(f"j{n}", **lane) for n, lane in enumerate(lanes)))
    heads = await store.heads(request())
    assert {(head.queue, head.type, head.limit_key) for head in heads} == set(grid)
    for number, lane in enumerate(lanes):
        taken = await store.claim_shares(request(), [share(9, **lane)], [])
        assert [row.id for row in taken or ()] == [f"j{number}"], lane


@suite.case("limit keys", "many of them in one queue, claimed in order and counted as one queue")
async def many(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"j{n}", limit_key=f"customer {n}") for n in range(300)))
    tally = Tally(tenant="default", queue="default", state=State.PENDING, jobs=300)
    assert list(await store.count(T0)) == [tally]
    assert len(await store.heads(request())) == 300
    taken = await claim(store, limit=250)
    assert [row.id for row in taken] == [f"j{n}" for n in range(250)]
    assert len(await store.held(T0, ["default"])) == 250
    assert len(await store.heads(request())) == 50
