"""Files of an older schema: upgraded with all that is in them, or left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.errors import SchemaTooOld, StoreError, StoreUnavailable
from headrace.stores.base import (
    Backlog,
    EventQuery,
    Fence,
    Held,
    Note,
    Pause,
    Query,
    Record,
    WorkerSeen,
)
from headrace.stores.sqlite import LATEST_SCHEMA_VERSION, SqliteStore, schema
from tests.stores.sqlite.samples import NOW, complete, insert, new_job, request, rows

FILES = Path(__file__).parent / "files"


def make_old(path: Path, version: int = 1) -> None:
    """A file as that version left it: in WAL mode, with what that Headrace had written into it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        schema.upgrade(connection, to_version=version)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript((FILES / f"version_{version}.sql").read_text("utf-8"))
    assert rows(path, "PRAGMA user_version") == [(version,)]


async def test_an_old_file_is_upgraded_with_everything_in_it(path: Path) -> None:
    make_old(path)
    store = await SqliteStore.open(path, migrate=True)
    assert await store.schema_version() == LATEST_SCHEMA_VERSION
    ids = [f"job-{number}" for number in range(1, 6)]
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


async def test_jobs_of_the_second_version_go_on_where_they_stood(path: Path) -> None:
    make_old(path, version=2)
    store = await SqliteStore.open(path, migrate=True)
    jobs = {job.id: job for job in await store.find(Query())}
    states = {job_id: str(job.state) for job_id, job in jobs.items()}
    assert (states.pop("urgent"), states.pop("delayed")) == ("pending", "pending")
    assert states == {name: name for name in states}
    assert states.keys() == {"completed", "retrying", "running", "blocked", "pending"}
    assert {(job.limit_key, job.log_json) for job in jobs.values()} == {(None, None)}
    assert (jobs["running"].checkpoint, jobs["completed"].result) == ({"page": 3}, 1)
    assert len(await store.events(EventQuery())) == 15
    assert len(await store.events(EventQuery(job_id="deleted"))) == 3
    assert {event.job_id for event in await store.events(EventQuery(tenant="acme"))} == {
        "running",
        "urgent",
    }
    assert len(rows(path, "SELECT * FROM event_log")) == 15
    assert {tally.state: tally.jobs for tally in await store.count(NOW, tenant="default")} == {
        "blocked": 1,
        "completed": 1,
        "pending": 2,
        "retrying": 1,
    }
    assert await store.backlog() == Backlog(5, 60)
    assert await store.held(NOW, ["default"]) == [
        Held(tenant="acme", queue="default", limit_key=None, jobs=1)
    ]
    assert await store.pauses() == [Pause("other", None, NOW)]
    (worker,) = await store.workers(NOW.replace(year=2000))
    assert (worker.worker, worker.slots, worker.busy) == ("w1", None, None)

    await insert(store, new_job(id="keyed", limit_key="k"), new_job(id="old lane"))
    heads = await store.heads(request(9))
    assert {(head.tenant, head.priority, head.limit_key): head.jobs for head in heads} == {
        ("acme", 0, None): 1,
        ("default", 2, None): 2,
        ("default", 2, "k"): 1,
    }
    taken = await store.claim(request(9))
    assert [job.id for job in taken] == ["urgent", "pending", "keyed", "old lane"]
    await complete(store, [*taken, jobs["running"]])
    token = jobs["running"].token or ""
    assert not await store.annotate(Fence("running", token), Note(log_json=b"[]"), NOW)
    assert rows(path, "SELECT id, limit_key FROM lanes ORDER BY id") == [
        (1, None),
        (2, None),
        (3, None),
        (4, "k"),
    ]
    await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


async def test_the_log_and_the_jobs_of_the_third_version_can_be_read_by_others(path: Path) -> None:
    make_old(path, version=3)
    store = await SqliteStore.open(path, migrate=True)
    log = await store.events(EventQuery())
    assert [event.job_id for event in log] == [
        *["deleted"] * 3,
        *["running"] * 2,
        "waiting",
        "plain",
    ]
    assert rows(path, "SELECT seq, tenant, job_id, job_seq FROM event_log ORDER BY seq") == [
        (event.seq, event.tenant, event.job_id, job_seq)
        for event, job_seq in zip(log, (1, 1, 1, 2, 2, 3, 4), strict=True)
    ]
    assert rows(path, "SELECT id, tenant, limit_key, state FROM job_list ORDER BY seq") == [
        ("running", "acme", "k", "running"),
        ("waiting", "default", "k", "pending"),
        ("plain", "default", None, "pending"),
    ]
    assert rows(path, 'SELECT "start", "end" FROM log_ends') == [(0, 7)]
    assert (await store.get(["running"]))["running"].log_json == b'["line"]'
    gate = Record(kind="gate", name="other", version=1, body_json=b"{}")
    assert await store.records("gate") == [gate]

    assert [job.id for job in await store.claim(request(9))] == ["waiting", "plain"]
    assert await store.trim([log[2].cursor], NOW + timedelta(days=1), 100) == 3
    assert rows(path, 'SELECT "start", "end" FROM log_ends') == [(3, 9)]
    assert (await store.events(EventQuery()))[:4] == log[3:]
    await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


async def test_it_is_upgraded_once(path: Path) -> None:
    make_old(path)
    for _ in range(2):
        store = await SqliteStore.open(path, migrate=True)
        await store.close()


async def test_the_error_tells_the_version(path: Path) -> None:
    make_old(path)
    with pytest.raises(SchemaTooOld) as caught:
        await SqliteStore.open(path)
    assert caught.value.version == 1


async def test_a_file_in_use_is_not_upgraded(path: Path) -> None:
    """Whoever has it open works by the old schema."""
    make_old(path)
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
    make_old(path)
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
