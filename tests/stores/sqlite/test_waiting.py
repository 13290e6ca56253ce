"""Waiting for the log to grow."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from headrace.stores.base import EventQuery, Pause
from headrace.stores.sqlite import SqliteStore, log, wait
from headrace.stores.sqlite.session import Snapshot
from tests.stores.sqlite.samples import NOW, insert, new_job, request


def no_hints(path: Path) -> None:
    raise OSError("no inotify")


@pytest.fixture(params=["hints", "looks alone"])
def _with_and_without_hints(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.param == "looks alone":
        monkeypatch.setattr(wait, "FileChanges", no_hints)


async def seconds(store: SqliteStore, after: str, timeout_seconds: float) -> float:
    loop = asyncio.get_running_loop()
    start = loop.time()
    await store.wait(after, timeout_seconds)
    return loop.time() - start


async def test_it_returns_at_once_when_there_is_more_already(store: SqliteStore) -> None:
    await insert(store, new_job())
    assert await seconds(store, "", 10) < 1


async def test_it_returns_after_the_timeout(store: SqliteStore) -> None:
    await insert(store, new_job())
    assert 0.1 <= await seconds(store, await store.tail(), 0.1) < 1
    assert await seconds(store, await store.tail(), 0) < 0.1


async def test_a_write_through_the_same_store_wakes_everyone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "FileChanges", no_hints)
    monkeypatch.setattr(wait, "_POLL_SECONDS_MIN", 60)  # whoever is woken was told
    store = await SqliteStore.open(path)
    waiting = [asyncio.create_task(seconds(store, "", 10)) for _ in range(20)]
    await asyncio.sleep(0.05)
    await insert(store, new_job())
    assert max(await asyncio.gather(*waiting)) < 1
    tail = await store.tail()
    waiting = [asyncio.create_task(seconds(store, tail, 10)) for _ in range(3)]
    await asyncio.sleep(0.05)
    assert len(await store.claim(request())) == 1
    assert max(await asyncio.gather(*waiting)) < 1
    await store.close()


async def test_a_write_without_events_wakes_nobody(store: SqliteStore) -> None:
    waiting = asyncio.create_task(seconds(store, "", 0.3))
    await asyncio.sleep(0.05)
    await store.pause(Pause("a", None, NOW))
    assert await waiting >= 0.3


@pytest.mark.usefixtures("_with_and_without_hints")
async def test_a_write_through_another_store_on_the_file_is_noticed(
    store: SqliteStore, path: Path
) -> None:
    other = await SqliteStore.open(path)
    for _ in range(3):
        waiting = asyncio.create_task(seconds(store, await store.tail(), 10))
        await asyncio.sleep(0.3)  # by now it looks as seldom as it ever does
        await insert(other, new_job())
        assert await waiting < 2
    await other.close()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
async def test_the_kernel_tells_of_a_write_through_another_store(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between hints there is next to no look: waiting costs nothing."""
    looks = 0
    data_version = wait.Watch._data_version

    def counted(self: wait.Watch) -> int:
        nonlocal looks
        looks += 1
        return data_version(self)

    monkeypatch.setattr(wait.Watch, "_data_version", counted)
    monkeypatch.setattr(wait, "_LOOK_SECONDS", 60.0)
    other = await SqliteStore.open(path)
    waiting = asyncio.create_task(seconds(store, "", 10))
    before = -1
    while looks > before:  # until it comes to rest
        before = looks
        await asyncio.sleep(0.5)
    assert looks < 40
    await insert(other, new_job())
    assert await waiting < 5
    await other.close()


async def test_a_commit_that_takes_its_time_is_noticed(store: SqliteStore, path: Path) -> None:
    """The hint comes with the first page that is written, long before the commit shows."""
    waiting = asyncio.create_task(seconds(store, "", 10))
    await asyncio.sleep(0.7)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA cache_size = 1")  # pages are written before the commit
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE large (a)")
        for _ in range(200):
            other.execute("INSERT INTO large VALUES (randomblob(4000))")
        await asyncio.sleep(0.3)
        other.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', 7)")
        other.execute("COMMIT")
    assert await waiting < 5


async def test_cancelling_a_wait_leaves_nothing_behind(store: SqliteStore) -> None:
    tasks = [asyncio.create_task(store.wait("", 60)) for _ in range(10)]
    await asyncio.sleep(0.02)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert store._watch._waiters == {}


async def test_a_reader_that_waits_and_reads_on_misses_nothing(store: SqliteStore) -> None:
    async def read() -> list[int]:
        seen: list[int] = []
        cursor = ""
        while len(seen) < 200:
            for event in await store.events(EventQuery(after=cursor, limit=7)):
                seen.append(event.seq)
                cursor = event.cursor
            if len(seen) < 200:
                await store.wait(cursor, 1)
        return seen

    reading = asyncio.create_task(read())
    for _ in range(20):
        await asyncio.gather(*(insert(store, new_job()) for _ in range(10)))
    assert await reading == list(range(1, 201))


async def test_a_log_that_cannot_be_read_ends_the_wait(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint comes early, and the read that follows tells what is wrong."""

    def fail(view: Snapshot) -> int:
        raise sqlite3.DatabaseError("database disk image is malformed")

    with monkeypatch.context() as patched:
        patched.setattr(log, "tail", fail)
        assert await seconds(store, "", 10) < 5
    assert await seconds(store, "", 0.1) >= 0.1
