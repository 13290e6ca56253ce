"""Files of an older schema: upgraded with all that is in them, or left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from headrace.errors import SchemaTooOld, StoreError, StoreUnavailable
from headrace.stores.base import EventQuery, Query, Record, WorkerSeen
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.conftest import SECOND
from tests.stores.sqlite.samples import NOW, complete, insert, new_job, request, rows

SecondStep = Callable[..., None]


async def make_old(path: Path) -> None:
    """A file as the first version leaves it, with jobs in several states, a worker and a gate."""
    store = await SqliteStore.open(path)
    await insert(store, *(new_job(id=f"job-{number}", tags=("x",)) for number in range(1, 6)))
    await complete(store, await store.claim(request(1)))
    await store.announce(WorkerSeen(worker="w1", seen_at=NOW))
    await store.put_record(Record(kind="gate", name="other", body_json=b"{}"))
    await store.close()
    assert rows(path, "PRAGMA user_version") == [(1,)]


async def contents(store: SqliteStore) -> list[object]:
    return [
        await store.find(Query(tags=["x"])),
        await store.events(EventQuery()),
        await store.count(NOW),
        await store.workers(NOW),
        await store.records("gate"),
    ]


async def test_an_old_file_is_upgraded_with_everything_in_it(
    path: Path, second_step: SecondStep
) -> None:
    await make_old(path)
    old = await SqliteStore.open(path)
    before = await contents(old)
    await old.close()
    second_step()
    store = await SqliteStore.open(path, migrate=True)
    assert await store.schema_version() == 2
    assert await contents(store) == before
    assert rows(path, "SELECT worker, made_up FROM workers") == [("w1", 7)]
    await complete(store, await store.claim(request(5)))
    assert [tally.jobs for tally in await store.count(NOW)] == [5]
    await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


async def test_it_is_upgraded_once(path: Path, second_step: SecondStep) -> None:
    await make_old(path)
    second_step()
    for _ in range(2):
        store = await SqliteStore.open(path, migrate=True)
        await store.close()


async def test_the_error_tells_the_version(path: Path, second_step: SecondStep) -> None:
    await make_old(path)
    second_step()
    with pytest.raises(SchemaTooOld) as caught:
        await SqliteStore.open(path)
    assert caught.value.version == 1


async def test_a_file_in_use_is_not_upgraded(path: Path, second_step: SecondStep) -> None:
    """Whoever has it open works by the old schema."""
    await make_old(path)
    second_step()
    with closing(sqlite3.connect(path)) as user:
        user.execute("SELECT * FROM jobs").fetchone()
        with pytest.raises(StoreUnavailable, match="stop every process"):
            await SqliteStore.open(path, migrate=True, busy_timeout_seconds=0.1)
    assert rows(path, "PRAGMA user_version") == [(1,)]
    store = await SqliteStore.open(path, migrate=True)
    await store.close()


async def test_an_upgrade_that_fails_changes_nothing(path: Path, second_step: SecondStep) -> None:
    await make_old(path)
    tables = rows(path, "SELECT name, sql FROM sqlite_schema")
    second_step(f"{SECOND} CREATE TABLE jobs (a);")
    with pytest.raises(StoreError):
        await SqliteStore.open(path, migrate=True)
    assert rows(path, "PRAGMA user_version") == [(1,)]
    assert rows(path, "SELECT name, sql FROM sqlite_schema") == tables
    second_step()
    store = await SqliteStore.open(path, migrate=True)
    assert len(await store.find(Query())) == 5
    await store.close()


async def test_an_upgraded_file_equals_a_new_one(tmp_path: Path, second_step: SecondStep) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    await make_old(old)
    second_step()
    for path in (old, new):
        await (await SqliteStore.open(path, migrate=True)).close()
    upgraded, made = [
        rows(path, "SELECT name, sql FROM sqlite_schema ORDER BY name") for path in (old, new)
    ]
    assert upgraded == made != []
