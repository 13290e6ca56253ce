"""Files of an older schema: upgraded with all that is in them, or left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace.errors import SchemaTooOld, StoreError, StoreUnavailable
from headrace.stores.base import EventQuery, Pause, Query, WorkerSeen
from headrace.stores.sqlite import LATEST_SCHEMA_VERSION, SqliteStore, insertions, schema
from headrace.stores.sqlite.snapshot import Transaction
from tests.stores.sqlite.samples import NOW, complete, insertion, new_job, request, rows


def make_first_version(path: Path, jobs: int = 5) -> list[str]:
    """A file as the first version left it: in WAL mode, with jobs in it. Their ids."""
    wanted = insertion([new_job(tags=("x",)) for _ in range(jobs)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        schema.upgrade(connection, to_version=1)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        insertions.insert(Transaction(connection), wanted)
        connection.execute("COMMIT")
    assert rows(path, "PRAGMA user_version") == [(1,)]
    return [job.id for job in wanted.jobs]


async def test_an_old_file_is_upgraded_with_everything_in_it(path: Path) -> None:
    ids = make_first_version(path)
    store = await SqliteStore.open(path, migrate=True)
    assert await store.schema_version() == LATEST_SCHEMA_VERSION
    assert [job.id for job in await store.find(Query(tags=["x"]))] == ids
    assert len(await store.events(EventQuery())) == 5

    await store.pause(Pause("default", None, NOW))
    assert await store.claim(request(5)) == []
    await store.resume("default", None)
    await store.announce(WorkerSeen(worker="w1", seen_at=NOW))
    assert [worker.worker for worker in await store.workers(NOW)] == ["w1"]
    await complete(store, await store.claim(request(5)))
    assert [tally.jobs for tally in await store.count(NOW)] == [5]
    await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


async def test_it_is_upgraded_once(path: Path) -> None:
    make_first_version(path)
    for _ in range(2):
        store = await SqliteStore.open(path, migrate=True)
        await store.close()


async def test_the_error_tells_the_version(path: Path) -> None:
    make_first_version(path)
    with pytest.raises(SchemaTooOld) as caught:
        await SqliteStore.open(path)
    assert caught.value.version == 1


async def test_a_file_in_use_is_not_upgraded(path: Path) -> None:
    """Whoever has it open works by the old schema."""
    make_first_version(path)
    with closing(sqlite3.connect(path)) as user:
        user.execute("SELECT * FROM jobs").fetchone()
        with pytest.raises(StoreUnavailable, match="stop every process"):
            await SqliteStore.open(path, migrate=True, busy_timeout_seconds=0.1)
    assert rows(path, "PRAGMA user_version") == [(1,)]
    store = await SqliteStore.open(path, migrate=True)
    await store.close()


async def test_an_upgrade_that_fails_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_first_version(path)
    tables = rows(path, "SELECT name, sql FROM sqlite_schema")
    broken = (*schema._MIGRATIONS[:2], "CREATE TABLE more (a); CREATE TABLE jobs (a);")
    with monkeypatch.context() as patched:
        patched.setattr(schema, "_MIGRATIONS", broken)
        patched.setattr(schema.upgrade, "__defaults__", (3,))
        with pytest.raises(StoreError):
            await SqliteStore.open(path, migrate=True)
    assert rows(path, "PRAGMA user_version") == [(1,)]
    assert rows(path, "SELECT name, sql FROM sqlite_schema") == tables
    store = await SqliteStore.open(path, migrate=True)
    assert len(await store.find(Query())) == 5
    await store.close()


def test_every_step_leads_to_the_schema_that_a_new_file_gets() -> None:
    def schema_of(*steps: int) -> list[tuple[str, str]]:
        with closing(sqlite3.connect(":memory:")) as connection:
            for version in steps:
                schema.upgrade(connection, to_version=version)
            return connection.execute(
                "SELECT name, sql FROM sqlite_schema ORDER BY name"
            ).fetchall()

    assert schema_of(LATEST_SCHEMA_VERSION) == schema_of(*range(1, LATEST_SCHEMA_VERSION + 1))
