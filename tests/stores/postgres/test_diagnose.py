"""The findings that tell whether the server and the schema are in good health."""

from __future__ import annotations

import re

import asyncpg
import pytest

from headrace.stores.base import EventQuery, Finding, Health
from headrace.stores.postgres import LATEST_SCHEMA_VERSION, PostgresStore, diagnose
from tests.stores.postgres.jobs import draft, insert
from tests.stores.postgres.server import without_schema


async def _findings(store: PostgresStore) -> dict[str, Finding]:
    return {finding.what: finding for finding in await store.diagnose()}


async def test_every_finding_has_a_value_and_advice_exactly_when_something_is_wrong(
    store: PostgresStore,
) -> None:
    found = await _findings(store)
    assert {"server", "fsync", "full_page_writes", "synchronous_commit", "schema", "lanes"} <= set(
        found
    )
    assert {f"table {name}" for name in diagnose.HOT_TABLES} <= set(found)
    assert found["schema"].value.endswith(
        f"version {LATEST_SCHEMA_VERSION} of {LATEST_SCHEMA_VERSION}"
    )
    assert found["server"].health is Health.OK
    for finding in found.values():
        assert finding.value
        assert (finding.advice is None) is (finding.health is Health.OK)


async def test_settings_that_risk_jobs_are_named(store: PostgresStore) -> None:
    async with store._pool.connection() as connection:
        assert await connection.fetchval("SHOW fsync") in ("on", "off")
        is_safe = await connection.fetchval("SHOW fsync") == "on"
        await connection.execute("SET synchronous_commit = off")
    found = await _findings(store)
    assert found["fsync"].health is (Health.OK if is_safe else Health.ERROR)
    assert found["synchronous_commit"].health is Health.WARNING


async def test_a_forgotten_transaction_is_named(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnose, "TRANSACTION_SECONDS_MAX", 0.0)
    forgotten = await asyncpg.connect(without_schema(postgres_url))
    async with forgotten.transaction():
        await forgotten.execute("SELECT pg_current_xact_id()")
        found = await _findings(store)
        assert found["oldest transaction"].health is Health.WARNING
        assert found["oldest writing transaction"].health is Health.WARNING
    await forgotten.close()


async def test_a_log_that_another_server_numbered_is_named(store: PostgresStore) -> None:
    """After a dump was restored: the advice that is given makes the log readable again."""
    await insert(store, draft())
    assert (await _findings(store))["event log"].health is Health.OK
    async with store._pool.connection() as connection:
        await connection.execute(
            f"UPDATE {store._sql.quoted_schema}.events SET xid = '9999999999999'"
        )
        found = (await _findings(store))["event log"]
        assert found.health is Health.ERROR
        assert found.advice is not None
        assert await store.events(EventQuery()) == []
        await connection.execute(found.advice.partition("run ")[2].partition(" and let")[0])
    assert len(await store.events(EventQuery())) == 1
    assert (await _findings(store))["event log"].health is Health.OK


async def test_every_table_that_retention_deletes_from_is_looked_at(store: PostgresStore) -> None:
    functions = store._sql.functions()
    tables = {
        name
        for function in ("delete_jobs", "trim_log")
        for name in re.findall(r"DELETE FROM \S+\.(\w+)", functions[function])
    }
    assert {"bodies", "jobs", "events"} <= tables
    assert {f"table {name}" for name in tables} <= set(await _findings(store))


@pytest.mark.parametrize(
    ("live", "dead", "health"),
    [
        (0, 0, Health.OK),
        (10, 99_000, Health.OK),
        (1_000_000, 500_000, Health.OK),
        (100_000, 200_000, Health.WARNING),
    ],
)
def test_dead_rows_count_when_they_are_many_and_most(live: int, dead: int, health: Health) -> None:
    assert diagnose._table("jobs", live, dead, is_unseen=False).health is health
    assert diagnose._table("jobs", live, dead, is_unseen=True).health is Health.OK


async def test_dead_rows_are_held_against_autovacuum_once_it_has_come_by(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnose, "DEAD_TUPLES_MIN", 50)
    jobs = [draft() for _ in range(200)]
    await insert(store, *jobs)
    stored = await store.get([job.id for job in jobs])
    await store.delete({job.id: job.version for job in stored.values()})
    async with store._pool.connection() as connection:
        table = f'"{store._sql.schema}".jobs'
        await connection.execute("SELECT pg_stat_force_next_flush()")
        just_now = (await _findings(store))["table jobs"]
        assert just_now.health is Health.OK
        assert "autovacuum has not come by since" in just_now.value
        await connection.execute(f"ANALYZE {table}")
        await connection.execute("SELECT pg_stat_force_next_flush()")
        assert (await _findings(store))["table jobs"].health is Health.WARNING
        await connection.execute(f"VACUUM {table}")
        await connection.execute("SELECT pg_stat_force_next_flush()")
        assert (await _findings(store))["table jobs"].health is Health.OK
