"""Waiting for news: woken at once here, by a hint elsewhere, and by polling when hints are lost."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from headrace.stores.postgres import PostgresStore, hints
from headrace.stores.postgres import store as store_module
from tests.stores.postgres.jobs import draft, insert
from tests.stores.postgres.server import without_schema


async def _woken_after(store: PostgresStore, write: asyncio.Task[None]) -> float:
    start = time.monotonic()
    await store.wait(await store.tail(), 10)
    await write
    return time.monotonic() - start


async def _soon(store: PostgresStore) -> None:
    await asyncio.sleep(0.2)
    await insert(store, draft())


async def test_the_own_process_wakes_at_once(store: PostgresStore) -> None:
    assert await _woken_after(store, asyncio.create_task(_soon(store))) < 2


async def test_another_process_is_told(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With polling put out of the way: only the notification can wake it."""
    monkeypatch.setattr(store_module, "POLL_SECONDS", 60.0)
    other = await PostgresStore.open(postgres_url)
    assert await _woken_after(store, asyncio.create_task(_soon(other))) < 5
    await other.close()


async def test_without_hints_polling_finds_it(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await PostgresStore.open(postgres_url)
    monkeypatch.setattr(other._hints, "wrote", lambda: None)
    other._wrote = lambda: None
    waited = await _woken_after(store, asyncio.create_task(_soon(other)))
    assert waited < 5
    await other.close()


async def test_what_happened_already_is_not_waited_for(store: PostgresStore) -> None:
    await insert(store, draft())
    start = time.monotonic()
    await store.wait("", 10)
    assert time.monotonic() - start < 2


async def test_a_wait_ends_with_its_timeout(store: PostgresStore) -> None:
    await store.wait(await store.tail(), 5)  # begins to listen, and returns when it does
    start = time.monotonic()
    await store.wait(await store.tail(), 0.2)
    assert 0.15 < time.monotonic() - start < 3


async def test_many_writes_make_few_notifications(store: PostgresStore, postgres_url: str) -> None:
    heard: list[float] = []
    listener = await asyncpg.connect(without_schema(postgres_url))
    await listener.add_listener(
        f"headrace_{store._sql.schema}", lambda *_: heard.append(time.monotonic())
    )
    start = time.monotonic()
    await asyncio.gather(*(insert(store, draft()) for _ in range(200)))
    await asyncio.sleep(3 * hints.NOTIFY_PAUSE_SECONDS)
    seconds = time.monotonic() - start
    await listener.close()
    assert 1 <= len(heard) <= seconds / hints.NOTIFY_PAUSE_SECONDS + 1
    assert len(heard) < 200


async def test_the_listener_comes_back_after_it_was_cut_off(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "POLL_SECONDS", 60.0)
    await store.wait(await store.tail(), 0.2)
    connection = await asyncpg.connect(without_schema(postgres_url))
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headrace'"
    )
    await connection.close()
    await asyncio.sleep(0.5)
    other = await PostgresStore.open(postgres_url)
    assert await _woken_after(store, asyncio.create_task(_soon(other))) < 5
    await other.close()
