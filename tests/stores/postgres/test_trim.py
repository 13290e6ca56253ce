"""Trimming: nothing that could yet be preceded, and no walk over what is dead."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from headrace.errors import LogTrimmed
from headrace.stores.base import EventQuery
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres.jobs import NOW, complete, draft, insert, request
from tests.stores.postgres.server import without_schema

LATER = NOW + timedelta(days=1)


async def test_what_may_not_be_read_yet_is_not_trimmed(
    store: PostgresStore, postgres_url: str
) -> None:
    """Not even up to a cursor from beyond it: the late commit would find the log begun behind it."""
    (before,) = await insert(store, draft())
    slow = await asyncpg.connect(without_schema(postgres_url))
    transaction = slow.transaction()
    await transaction.start()
    (late,) = await insert(store.on(slow), draft())
    (after,) = await insert(store, draft())
    (first,) = await store.events(EventQuery())
    assert await store.trim([], LATER, 100) == 1
    assert await store.trim([f"{2**40}:{2**40}"], LATER, 100) == 0
    assert await store.tail() == first.cursor

    await transaction.commit()
    await slow.close()
    rest = await store.events(EventQuery())
    assert [event.job_id for event in rest] == [late.id, after.id]
    assert list(await store.events(EventQuery(after=first.cursor))) == list(rest)
    assert first.job_id == before.id


async def test_trims_at_once_delete_each_event_once(store: PostgresStore) -> None:
    await insert(store, *(draft() for _ in range(200)))
    log = await store.events(EventQuery())
    gone = await asyncio.gather(*(store.trim([log[149].cursor], LATER, 20) for _ in range(10)))
    assert sum(gone) == 150
    assert list(await store.events(EventQuery())) == list(log[150:])
    with pytest.raises(LogTrimmed):
        await store.events(EventQuery(after=log[148].cursor))


async def test_within_the_callers_transaction_it_vanishes_with_it(
    store: PostgresStore, postgres_url: str
) -> None:
    await insert(store, draft())
    log = await store.events(EventQuery())
    own = await asyncpg.connect(without_schema(postgres_url))
    transaction = own.transaction()
    await transaction.start()
    assert await store.on(own).trim([], LATER, 100) == 1
    assert list(await store.events(EventQuery())) == list(log)
    await transaction.rollback()
    await own.close()
    assert list(await store.events(EventQuery(after=""))) == list(log)


async def test_the_way_to_deleted_jobs_goes_with_their_events(
    store: PostgresStore, postgres_url: str
) -> None:
    async def remembered() -> int:
        connection = await asyncpg.connect(without_schema(postgres_url))
        table = f"{store._sql.quoted_schema}.deleted_jobs"
        try:
            return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))
        finally:
            await connection.close()

    await insert(store, *(draft() for _ in range(3)))
    taken = await store.claim(request(3))
    await complete(store, taken)
    await store.delete({taken[0].id: 3})
    assert await remembered() == 1
    await store.events(EventQuery())
    assert await store.trim([], LATER, 100) == 9
    assert await remembered() == 0
    await store.delete({taken[1].id: 3})  # its events are gone already: there is no way to keep
    assert await remembered() == 0
