"""What the diagnosis says to a role that is not shown what others' sessions do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import asyncpg
import pytest

from headrace.stores.base import Finding, Health
from headrace.stores.postgres import PostgresStore, diagnose
from tests.stores.postgres.server import Server

OLDEST = ("oldest transaction", "oldest writing transaction")


@pytest.fixture(scope="module")
def own_url() -> Iterator[str]:
    """Of a server of our own: the sessions of other tests would be hidden from the role as well."""
    server = Server(durable=False)
    yield server.url
    server.stop()


@pytest.fixture
async def administrator(own_url: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(own_url)
    yield opened
    await opened.close()


@pytest.fixture
async def store(own_url: str, administrator: asyncpg.Connection) -> AsyncIterator[PostgresStore]:
    """Of a role that may do nothing but keep a store."""
    await administrator.execute('CREATE ROLE "Plain" LOGIN')
    await administrator.execute('GRANT CREATE ON DATABASE postgres TO "Plain"')
    opened = await PostgresStore.open(own_url.replace("//postgres@", "//Plain@"))
    yield opened
    await opened.close()
    await administrator.execute('DROP OWNED BY "Plain"')
    await administrator.execute('DROP ROLE "Plain"')


async def _oldest(store: PostgresStore) -> list[Finding]:
    """The lines for the oldest transaction, and for the oldest that writes."""
    found = {finding.what: finding for finding in await store.diagnose()}
    return [found[what] for what in OLDEST]


async def test_idle_sessions_are_no_cause_for_a_warning(store: PostgresStore) -> None:
    assert [(line.health, line.value) for line in await _oldest(store)] == [(Health.OK, "none")] * 2


async def test_a_transaction_that_is_not_shown_is_not_taken_for_none(
    store: PostgresStore, administrator: asyncpg.Connection
) -> None:
    async with administrator.transaction():
        await administrator.execute("SELECT 1")
        reading, writing = await _oldest(store)
        assert (reading.health, reading.value) == (Health.WARNING, "none seen, 1 hidden")
        assert (writing.health, writing.value) == (Health.OK, "none")

        await administrator.execute("SELECT pg_current_xact_id()")
        reading, writing = await _oldest(store)
        assert (reading.health, reading.value) == (Health.WARNING, "none seen, 1 hidden")
        assert (writing.health, writing.value) == (Health.WARNING, "none seen, 1 hidden")


async def test_the_advice_is_what_it_takes_to_see_it(
    store: PostgresStore, administrator: asyncpg.Connection
) -> None:
    async with administrator.transaction():
        (hidden, _) = await _oldest(store)
    assert hidden.advice is not None
    await administrator.execute(hidden.advice.partition("run ")[2])

    async with administrator.transaction():
        await administrator.execute("SELECT pg_current_xact_id()")
        for line in await _oldest(store):
            assert line.health is Health.OK
            assert line.value.endswith(" s")


async def test_an_old_transaction_and_a_hidden_one_are_both_told_of(
    store: PostgresStore, administrator: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnose, "TRANSACTION_SECONDS_MAX", 0.0)
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(store._pool.connection())
        await stack.enter_async_context(own.transaction())
        await stack.enter_async_context(administrator.transaction())
        (found, _) = await _oldest(store)
    assert found.health is Health.WARNING
    assert found.value.endswith(" s seen, 1 hidden")
    assert found.advice is not None
    assert "xact_start" in found.advice
    assert "GRANT pg_read_all_stats" in found.advice


async def test_connections_of_other_roles_are_counted(
    store: PostgresStore, administrator: asyncpg.Connection
) -> None:
    counted = {finding.what: finding for finding in await store.diagnose()}["connections"].value
    shown = await administrator.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    )
    assert shown >= 2
    assert counted.startswith(f"{shown} of ")
