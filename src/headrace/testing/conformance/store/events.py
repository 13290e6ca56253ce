"""The log: ordered, gap-free, resumable anywhere, and a hint when it grows."""

from __future__ import annotations

import asyncio
import time

from headrace import history
from headrace.errors import InvalidCursor
from headrace.lifecycle import Complete
from headrace.model import Event
from headrace.stores.base import EventQuery, JobStore
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.store.suite import (
    claim,
    commit,
    insert,
    job,
    opened,
    suite,
)


async def _busy(store: JobStore) -> None:
    """Some twenty changes of two tenants' jobs."""
    for n in range(5):
        await insert(store, job(f"a{n}"), job(f"b{n}", tenant="other"))
        await commit(store, await claim(store, limit=1), Complete(token=None))


@suite.case("events", "resuming after any event gives exactly the rest")
async def resume(env: Env) -> None:
    store = await opened(env)
    await _busy(store)
    log = await store.events(EventQuery())
    assert len(log) == 20
    assert len({event.seq for event in log}) == 20
    for n, event in enumerate(log):
        rest = await store.events(EventQuery(after=event.cursor))
        assert list(rest) == list(log[n + 1 :])
    assert await store.tail() == log[-1].cursor


@suite.case("events", "small pages give the same log")
async def pages(env: Env) -> None:
    store = await opened(env)
    await _busy(store)
    seen: list[Event] = []
    cursor = ""
    while page := await store.events(EventQuery(after=cursor, limit=3)):
        assert len(page) <= 3
        seen += page
        cursor = page[-1].cursor
    assert seen == list(await store.events(EventQuery()))


@suite.case("events", "by tenant and by job, in log order")
async def filters(env: Env) -> None:
    store = await opened(env)
    await _busy(store)
    log = await store.events(EventQuery())
    assert list(await store.events(EventQuery(tenant="other"))) == [
        e for e in log if e.tenant == "other"
    ]
    assert list(await store.events(EventQuery(job_id="a0"))) == [e for e in log if e.job_id == "a0"]
    assert not await store.events(EventQuery(job_id="a0", tenant="other"))
    middle = log[7].cursor
    assert list(await store.events(EventQuery(job_id="b4", after=middle))) == [
        e for e in log[8:] if e.job_id == "b4"
    ]


@suite.case("events", "folding a job's events gives the lifecycle part of its row")
async def folding(env: Env) -> None:
    store = await opened(env)
    await _busy(store)
    rows = await store.get([f"{name}{n}" for name in "ab" for n in range(5)])
    for row in rows.values():
        folded = history.fold(await store.events(EventQuery(job_id=row.id)))
        assert folded == {name: getattr(row, name) for name in folded}


@suite.case("tail", "of an empty log is a cursor from which everything is read")
async def empty(env: Env) -> None:
    store = await opened(env)
    cursor = await store.tail()
    assert not await store.events(EventQuery(after=cursor))
    await insert(store, job("a"))
    assert len(await store.events(EventQuery(after=cursor))) == 1


@suite.case("events", "a cursor that is none of the store's raises InvalidCursor")
async def bad_cursor(env: Env) -> None:
    store = await opened(env)
    for cursor in ("x", "1 OR 1=1", "-", "é"):
        with raises(InvalidCursor):
            await store.events(EventQuery(after=cursor))


@suite.case("events", "written by many at once: none missing, none twice, each job's in order")
async def concurrent(env: Env) -> None:
    store = await opened(env)
    seen: list[tuple[str, int]] = []
    writing = True

    async def read() -> None:
        cursor = ""
        while True:
            last_round = not writing
            page = await store.events(EventQuery(after=cursor, limit=7))
            seen.extend((event.job_id, event.version) for event in page)
            cursor = page[-1].cursor if page else cursor
            if last_round and not page:
                return
            await asyncio.sleep(0)

    async def write(name: str) -> None:
        for n in range(10):
            await insert(store, job(f"{name}{n}", queue=name))
            await commit(store, await claim(store, name, queues=(name,)), Complete(token=None))

    reader = asyncio.create_task(read())
    await asyncio.gather(*(write(f"w{n}") for n in range(5)))
    writing = False
    await asyncio.wait_for(reader, 20)
    assert sorted(seen) == sorted(
        (f"w{w}{n}", v) for w in range(5) for n in range(10) for v in (1, 2, 3)
    )
    for w in range(5):
        assert [v for name, v in seen if name == f"w{w}0"] == [1, 2, 3]


@suite.case("wait", "returns at once when the log is past the cursor, and soon after it grows")
async def wait(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"))
    start = time.monotonic()
    await store.wait("", 5)
    tail = await store.tail()
    waiting = asyncio.create_task(store.wait(tail, 5))
    await asyncio.sleep(0.02)
    await insert(store, job("b"))
    await waiting
    assert time.monotonic() - start < 4


@suite.case("wait", "returns after the timeout when nothing happens")
async def wait_timeout(env: Env) -> None:
    store = await opened(env)
    start = time.monotonic()
    await store.wait(await store.tail(), 0.05)
    assert time.monotonic() - start < 4
