"""Connections: reused, replaced when they break, and what a caller is told meanwhile."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import asyncpg
import pytest

from headrace.errors import StoreClosed, StoreUnavailable
from headrace.stores.base import EventQuery
from headrace.stores.postgres import PostgresStore, connection
from tests.stores.postgres.connections import end_all
from tests.stores.postgres.jobs import draft, insert, request
from tests.stores.postgres.server import without_schema


async def test_connections_are_reused_and_bounded(postgres_url: str) -> None:
    store = await PostgresStore.open(postgres_url, pool_size=3)
    await asyncio.gather(*(insert(store, draft()) for _ in range(30)))
    opened = {*store._pool._idle, *store._pool._used}
    assert len(opened) == 3
    await asyncio.gather(*(store.now() for _ in range(30)))
    assert {*store._pool._idle, *store._pool._used} == opened
    await store.close()


async def test_a_terminated_connection_is_replaced(store: PostgresStore, postgres_url: str) -> None:
    await insert(store, draft())
    for _ in range(3):
        await end_all(store, postgres_url)
        await asyncio.sleep(0.05)  # let the end of the connections arrive
        await insert(store, draft())
        assert len(await store.claim(request())) == 1


async def test_a_read_survives_the_loss_of_its_connection(
    store: PostgresStore, postgres_url: str
) -> None:
    await insert(store, draft())
    async with store._pool.connection() as connection:
        pid = connection.get_server_pid()
    reading = asyncio.gather(*(store.events(EventQuery()) for _ in range(20)))
    other = await asyncpg.connect(without_schema(postgres_url))
    await other.execute("SELECT pg_terminate_backend($1)", pid)
    await other.close()
    assert all(len(events) == 1 for events in await reading)


async def test_a_write_whose_answer_is_lost_says_so(
    store: PostgresStore, postgres_url: str
) -> None:
    (job,) = await insert(store, draft())
    other = await asyncpg.connect(without_schema(postgres_url))
    async with other.transaction():
        await other.execute(f"SELECT FROM {store._sql.quoted_schema}.lanes FOR UPDATE")
        await other.execute(f"LOCK TABLE {store._sql.quoted_schema}.events")
        writing = asyncio.create_task(store.claim(request()))
        await asyncio.sleep(0.1)
        await end_all(store, postgres_url)
        with pytest.raises(StoreUnavailable, match="unknown: look before you repeat"):
            await writing
    await other.close()
    assert [taken.id for taken in await store.claim(request())] == [job.id]


async def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(StoreUnavailable, match=r"cannot be reached.*nothing was") as caught:
        await PostgresStore.open("postgresql://me:secret@127.0.0.1:1/jobs")
    assert "secret" not in str(caught.value)


async def test_a_database_that_is_not_there(postgres_url: str) -> None:
    url = urlsplit(without_schema(postgres_url))._replace(path="/nowhere")
    with pytest.raises(StoreUnavailable, match="nowhere"):
        await PostgresStore.open(url.geturl())


async def test_a_cancelled_call_leaves_no_half_used_connection(
    store: PostgresStore, postgres_url: str
) -> None:
    await insert(store, draft())
    other = await asyncpg.connect(without_schema(postgres_url))
    async with other.transaction():
        await other.execute(f"LOCK TABLE {store._sql.quoted_schema}.events")
        waiting = asyncio.create_task(store.claim(request()))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await other.close()
    assert len(store._pool._used) == 0
    await store.now()


async def test_a_closed_store_refuses_every_verb(postgres_url: str) -> None:
    store = await PostgresStore.open(postgres_url)
    waiting = asyncio.create_task(store.wait("", 30))
    await asyncio.sleep(0.05)
    await store.close()
    await store.close()
    await asyncio.wait_for(waiting, 5)
    for call in (store.now(), store.claim(request()), store.get(["x"]), store.wait("", 1)):
        with pytest.raises(StoreClosed):
            await call
