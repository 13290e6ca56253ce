"""Trimming the log: from the front only, never past a reader, and nobody skips what is gone unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from headrace.errors import InvalidCursor, LogTrimmed
from headrace.lifecycle import Complete
from headrace.model import Event
from headrace.stores.base import EventQuery, JobStore, Query
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.store.suite import at, claim, commit, insert, job, opened, suite

LATER = at(1_000_000)
"""A time that every event of a case is from before."""


async def _work(store: JobStore, count: int = 4, first: int = 0) -> None:
    """So many jobs from start to end, one after the other, at one second each: three events a job."""
    for n in range(first, first + count):
        tenant = "other" if n % 2 else "default"
        await insert(store, job(f"j{n}", tenant=tenant, created_at=at(n), updated_at=at(n)))
        await commit(store, await claim(store, now=at(n)), Complete(token=None), now=at(n))


async def _log(store: JobStore, **query: Any) -> list[Event]:
    return list(await store.events(EventQuery(**query)))


async def _delete(store: JobStore, *ids: str) -> None:
    rows = await store.get(ids)
    assert await store.delete({row.id: row.version for row in rows.values()})


async def _check_gone(store: JobStore, log: Sequence[Event], gone: int) -> None:
    """The log is as it was, without so many events at its front."""
    assert await _log(store) == list(log[gone:])
    assert await store.tail() == log[-1].cursor
    for n, event in enumerate(log, start=1):
        if n < gone:
            with raises(LogTrimmed) as told:
                await store.events(EventQuery(after=event.cursor))
            assert isinstance(told.error, LogTrimmed)
            assert (told.error.cursor, told.error.start) == (event.cursor, log[gone - 1].cursor)
        else:
            assert await _log(store, after=event.cursor) == list(log[n:])


@suite.case("trim", "takes the oldest first, up to the limit; the rest is read as before")
async def oldest_first(env: Env) -> None:
    store = await opened(env)
    await _work(store)
    log = await _log(store)
    for limit, gone in ((0, 0), (1, 1), (4, 5), (100, 12), (100, 12)):
        before = 12 - len(await _log(store))
        assert await store.trim([log[-1].cursor], LATER, limit) == gone - before
        await _check_gone(store, log, gone)


@suite.case("trim", "goes past none of the cursors; without any it takes all there is")
async def no_further(env: Env) -> None:
    store = await opened(env)
    assert await store.trim([], LATER, 100) == 0
    assert await store.trim([""], LATER, 100) == 0
    await _work(store)
    log = await _log(store)
    assert await store.trim(["", log[-1].cursor], LATER, 100) == 0
    assert await store.trim([log[7].cursor, log[2].cursor, log[5].cursor], LATER, 100) == 3
    assert await store.trim([log[1].cursor], LATER, 100) == 0
    await _check_gone(store, log, 3)
    assert await store.trim([], LATER, 100) == 9
    await _check_gone(store, log, 12)


@suite.case(
    "trim", "stops at the first event that is not from before the time, whatever comes after it"
)
async def by_age(env: Env) -> None:
    store = await opened(env)
    await _work(store)
    await insert(store, job("late", created_at=at(1), updated_at=at(1)))
    log = await _log(store)
    assert await store.trim([log[-1].cursor], at(0), 100) == 0
    assert await store.trim([log[-1].cursor], at(2), 100) == 6
    await _check_gone(store, log, 6)
    assert await store.trim([log[-1].cursor], at(2.000001), 100) == 3
    assert await store.trim([log[-1].cursor], at(3), 100) == 0
    await _check_gone(store, log, 9)
    assert await store.trim([log[-1].cursor], at(3.000001), 100) == 4


@suite.case("trim", "of everything: the end stays where it is, and the log goes on from there")
async def everything(env: Env) -> None:
    store = await opened(env)
    await _work(store, 2)
    log = await _log(store)
    assert await store.trim([], LATER, 100) == 6
    tail = await store.tail()
    assert tail == log[-1].cursor
    assert await _log(store) == await _log(store, after=tail) == []
    assert await _log(store, tenant="other") == []
    await store.wait(tail, 0.01)
    await _work(store, 1, first=2)
    new = await _log(store, after=tail)
    assert [event.job_id for event in new] == ["j2"] * 3
    assert await _log(store) == new
    assert min(event.seq for event in new) > max(event.seq for event in log)
    with raises(LogTrimmed):
        await store.events(EventQuery(after=log[-2].cursor, tenant="other"))


@suite.case("trim", "of one job's events leaves the others of it, and reading them is no error")
async def of_one_job(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"), job("b"))
    for row in await claim(store, limit=2):
        await commit(store, [row], Complete(token=None))
    log = await _log(store)
    assert await store.trim([log[2].cursor], LATER, 100) == 3
    for name in ("a", "b"):
        left = [event for event in log[3:] if event.job_id == name]
        assert await _log(store, job_id=name) == left
        assert await _log(store, job_id=name, after=log[0].cursor) == left
        assert [event.version for event in left] == ([3] if name == "a" else [2, 3])


@suite.case("trim", "leaves every job as it is: it runs, ends and is deleted like any other")
async def jobs_stay(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a"), job("b"), job("c"))
    await commit(store, await claim(store), Complete(token=None))
    rows = list(await store.find(Query()))
    assert await store.trim([], LATER, 100) == 5
    assert list(await store.find(Query())) == rows
    taken = await claim(store, limit=5)
    assert [row.id for row in taken] == ["b", "c"]
    await commit(store, taken, Complete(token=None))
    assert [event.version for event in await _log(store)] == [2, 2, 3, 3]
    assert [event.version for event in await _log(store, job_id="b")] == [2, 3]
    await _delete(store, "a", "b", "c")
    assert not await store.find(Query())


@suite.case("trim", "forgets a deleted job with its last event: its id begins a history of its own")
async def of_deleted_jobs(env: Env) -> None:
    store = await opened(env)
    await _work(store, 3)
    await _delete(store, "j0")
    log = await _log(store)
    assert await store.trim([log[1].cursor], LATER, 100) == 2
    assert await _log(store, job_id="j0") == [log[2]]
    assert await store.trim([log[5].cursor], LATER, 100) == 4
    await _delete(store, "j1", "j2")  # the first has no event left, the second has all of its three
    assert await _log(store, job_id="j0") == await _log(store, job_id="j1") == []
    assert await _log(store, job_id="j2") == log[6:9]
    await _work(store, 3)
    for n in range(3):
        found = await _log(store, job_id=f"j{n}")
        assert [event.version for event in found] == ([1, 2, 3, 1, 2, 3] if n == 2 else [1, 2, 3])


@suite.case("trim", "up to a cursor that is none raises InvalidCursor, and takes nothing")
async def bad_cursor(env: Env) -> None:
    store = await opened(env)
    await _work(store, 1)
    log = await _log(store)
    with raises(InvalidCursor):
        await store.trim([log[-1].cursor, "x"], LATER, 100)
    assert await _log(store) == log


@suite.case(
    "trim", "by many at once, behind a reader that reads on: each event goes once, none unread"
)
async def behind_a_reader(env: Env) -> None:
    store = await opened(env)
    seen: list[Event] = []
    cursor = ""
    writing = True

    async def write(name: str) -> None:
        for n in range(10):
            await insert(store, job(f"{name}{n}", queue=name))
            await commit(store, await claim(store, name, queues=(name,)), Complete(token=None))

    async def read() -> None:
        nonlocal cursor
        while True:
            last_round = not writing
            page = await store.events(EventQuery(after=cursor, limit=7))
            seen.extend(page)
            cursor = page[-1].cursor if page else cursor
            if last_round and not page:
                return
            await asyncio.sleep(0)

    async def trim() -> int:
        gone = 0
        while writing:
            gone += await store.trim([cursor], LATER, 5)
            await asyncio.sleep(0)
        return gone

    reader = asyncio.create_task(read())
    trimmers = [asyncio.create_task(trim()) for _ in range(2)]
    await asyncio.gather(*(write(f"w{n}") for n in range(3)))
    writing = False
    gone = sum(await asyncio.gather(*trimmers))
    await asyncio.wait_for(reader, 20)
    assert sorted((event.job_id, event.version) for event in seen) == sorted(
        (f"w{w}{n}", v) for w in range(3) for n in range(10) for v in (1, 2, 3)
    )
    assert await _log(store) == seen[gone:]
