"""Lanes with limit keys come and go, in whichever process; lanes without one, and the log, stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from headrace.errors import StoreError
from headrace.model import Job
from headrace.stores.base import EventQuery, Query
from headrace.stores.sqlite import SqliteStore, lanes
from tests.stores.sqlite.samples import NOW, complete, insert, insertion, new_job, request, rows


@pytest.fixture
async def other(store: SqliteStore) -> AsyncIterator[SqliteStore]:
    """A second store on the same file, as another process would have it."""
    opened = await SqliteStore.open(store.path, synchronous="normal")
    yield opened
    await opened.close()


def keys_of(path: Path) -> list[str | None]:
    return [key for (key,) in rows(path, "SELECT limit_key FROM lanes ORDER BY id")]


async def delete(store: SqliteStore, *jobs: Job) -> None:
    assert await store.delete({job.id: job.version for job in jobs})


async def test_a_lane_goes_with_its_last_job(store: SqliteStore, path: Path) -> None:
    first, second, third = await insert(
        store, new_job(limit_key="a"), new_job(limit_key="a"), new_job(limit_key="b")
    )
    assert keys_of(path) == ["a", "b", None]  # None: the one that events name
    await delete(store, first, third)
    assert keys_of(path) == ["a", None]
    await delete(store, second)
    assert keys_of(path) == [None]
    (again,) = await insert(store, new_job(limit_key="a"))
    assert rows(path, "SELECT id FROM lanes WHERE limit_key = 'a'") == [(4,)]
    await delete(store, again)
    (plain,) = await insert(store, new_job())
    await delete(store, plain)
    assert keys_of(path) == [None]


async def test_what_was_known_of_a_lane_is_not_taken_for_another(store: SqliteStore) -> None:
    await insert(store, new_job(run_at=NOW + timedelta(days=1)))
    for key in ("a", "b"):
        (job,) = await insert(store, new_job(limit_key=key))
        for _ in range(4):  # whichever reader answers
            assert [head.limit_key for head in await store.heads(request())] == [key]
        await delete(store, job)


async def test_events_outlive_the_lane_of_their_job(store: SqliteStore) -> None:
    await insert(store, new_job(id="a", limit_key="k", tenant="t1"), new_job(id="b", tenant="t2"))
    done = await store.claim(request(2))
    await complete(store, done)
    await delete(store, *(await store.find(Query())))
    events = await store.events(EventQuery(tenant="t1"))
    assert [(event.job_id, event.tenant, event.kind) for event in events] == [
        ("a", "t1", "enqueued"),
        ("a", "t1", "leased"),
        ("a", "t1", "completed"),
    ]
    assert await store.events(EventQuery(job_id="a")) == events


async def test_a_lane_that_another_store_removed_is_made_anew(
    store: SqliteStore, other: SqliteStore
) -> None:
    (job,) = await insert(store, new_job(limit_key="k"))
    await delete(other, job)
    await insert(store, new_job(id="again", limit_key="k"))
    assert [tally.jobs for tally in await store.count(NOW)] == [1]
    for opened in (store, other):
        assert [head.limit_key for head in await opened.heads(request())] == ["k"]
    assert [job.id for job in await store.claim(request())] == ["again"]


async def test_a_lane_that_another_store_replaced_is_found(
    store: SqliteStore, other: SqliteStore, path: Path
) -> None:
    (job,) = await insert(store, new_job(limit_key="k"))
    await delete(other, job)
    await insert(other, new_job(id="again", limit_key="k"))
    taken = await store.claim(request())
    assert [(job.id, job.limit_key) for job in taken] == [("again", "k")]
    await complete(store, taken)
    assert rows(path, "SELECT limit_key, pending, completed FROM lanes WHERE id = 3") == [
        ("k", 0, 1)
    ]


async def test_in_a_group_what_is_rolled_back_is_not_remembered(
    store: SqliteStore, path: Path
) -> None:
    (job,) = await insert(store, new_job(limit_key="a"))
    lane = rows(path, "SELECT id FROM lanes WHERE limit_key = 'a'")
    wrong = insertion([new_job(limit_key="b"), new_job(limit_key="a")])

    async def fail() -> None:
        with pytest.raises(StoreError, match="nothing of this call was written"):
            await store.insert(replace(wrong, events=wrong.events[:1]))

    await asyncio.gather(
        delete(store, job),
        fail(),
        insert(store, new_job(limit_key="a")),
        fail(),
        insert(store, new_job(limit_key="b")),
    )
    assert {job.limit_key for job in await store.claim(request(9))} == {"a", "b"}
    assert rows(path, "SELECT id FROM lanes WHERE limit_key = 'a'") != lane
    assert rows(path, "SELECT sum(running) FROM lanes") == [(2,)]


async def test_more_lanes_than_are_remembered(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "_KEYS_MAX", 3)
    await insert(store, *(new_job(limit_key=f"k{n % 10}", queue=f"q{n % 2}") for n in range(30)))
    assert len(await store.heads(request(9))) == 10
    assert [job.limit_key for job in await store.find(Query())] == [f"k{n % 10}" for n in range(30)]
    assert len(await store.claim(request(30))) == 30
    assert {(held.limit_key, held.jobs) for held in await store.held(NOW, ["q0"])} == {
        (f"k{n}", 3) for n in (0, 2, 4, 6, 8)
    }
