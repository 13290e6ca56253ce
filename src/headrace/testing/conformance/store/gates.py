"""Gates: plain claims pass over exactly the queues that have one."""

from __future__ import annotations

import asyncio
import itertools

from msgspec.structs import replace

from headrace.lifecycle import Release
from headrace.stores.base import GATE, Record
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
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


@suite.case("gates", "hide their queue from plain claims, for every tenant and type, and no other")
async def hidden(env: Env) -> None:
    store = await opened(env)
    grid = itertools.product(("n1", "n2"), ("q", "Q", "qq", "open"), ("t1", "t2"))
    await insert(
        store,
        *(
            job(f"{tenant} {queue} {type_}", tenant=tenant, queue=queue, type=type_, tags=("x",))
            for tenant, queue, type_ in grid
        ),
    )
    await gated(store, "q")
    assert not await claim(store, queues=("q",), limit=9)
    assert not await claim(store, queues=("q",), tenant="n1", types=("t1",), limit=9)
    assert not await claim(store, queues=("q",), tags=("x",), limit=9)
    taken = await claim(store, limit=99)
    assert {row.queue for row in taken} == {"Q", "qq", "open"}
    assert len(taken) == 12


@suite.case("gates", "do not hold up what comes behind them, and leave the order as it is")
async def behind(env: Env) -> None:
    store = await opened(env)
    await insert(store, *(job(f"g{n}", queue="shut", priority=0) for n in range(150)))
    rows = await insert(
        store, *(job(f"o{n}", queue=f"q{n % 3}", priority=n % 5) for n in range(20))
    )
    await gated(store, "shut")
    wanted = sorted(rows, key=lambda row: (row.priority, row.run_at, row.seq))
    assert [row.id for row in await claim(store, limit=5)] == [row.id for row in wanted[:5]]
    assert [row.id for row in await claim(store, limit=99)] == [row.id for row in wanted[5:]]


@suite.case("gates", "only records of that kind, and with the very name of the queue")
async def other_records(env: Env) -> None:
    store = await opened(env)
    names = ["a*", "a", "A", "a:b", "%", "a%"]
    await insert(store, *(job(f"j{n}", queue=name) for n, name in enumerate(names)))
    assert await store.put_record(Record(kind="schedule", name="a"))
    await gated(store, "a*", "%", "nothing here")
    taken = await claim(store, limit=9)
    assert {row.queue for row in taken} == {"a", "A", "a:b", "a%"}


@suite.case("gates", "a queue opens again when its gate is deleted, not when it is replaced")
async def opened_again(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", queue="q"), job("b", queue="q"))
    (gate,) = await gated(store, "q")
    assert await store.put_record(replace(gate, body_json=b"null"))
    assert not await claim(store, limit=9)
    assert not await store.delete_record(gate)
    assert not await claim(store, limit=9)
    (gate,) = await store.records(GATE)
    assert await store.delete_record(gate)
    assert [row.id for row in await claim(store)] == ["a"]
    await gated(store, "q")
    assert not await claim(store)


@suite.case("gates", "hold for jobs that come or come back after them")
async def later_jobs(env: Env) -> None:
    store = await opened(env)
    await gated(store, "q")
    await insert(store, job("a", queue="q"), job("b", queue="open"))
    assert [row.id for row in await claim(store, limit=9)] == ["b"]
    taken = await store.claim_shares(request(), [share(9, queue="q")], [])
    assert [row.id for row in taken or ()] == ["a"]
    await commit(store, taken or (), Release(token=None))
    assert not await claim(store, limit=9)


@suite.case("gates", "many queues with and without them, each as it should be")
async def many(env: Env) -> None:
    store = await opened(env)
    queues = [f"q{number}" for number in range(120)]
    await insert(store, *(job(queue, queue=queue) for queue in queues))
    await gated(store, *queues[::2])
    answers = await asyncio.gather(
        *(claim(store, f"w{number}", limit=15, nonce=f"n{number}") for number in range(8))
    )
    taken = [row.id for rows in answers for row in rows]
    assert sorted(taken) == sorted(queues[1::2])
