"""The log: no reader ever passes over an event that commits late."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest
from msgspec.structs import replace

from headrace.errors import InvalidCursor
from headrace.stores.base import EventQuery
from headrace.stores.postgres import PostgresStore, log
from tests.stores.postgres.jobs import complete, draft, insert, request
from tests.stores.postgres.server import without_schema


async def _ids(store: PostgresStore, after: str = "") -> tuple[list[str], str]:
    events = await store.events(EventQuery(after=after))
    return [event.job_id for event in events], events[-1].cursor if events else after


async def test_a_late_commit_is_not_skipped(store: PostgresStore, postgres_url: str) -> None:
    """A transaction takes its numbers, another commits after it, and only then does the first commit."""
    (before,) = await insert(store, draft())
    slow = await asyncpg.connect(without_schema(postgres_url))
    transaction = slow.transaction()
    await transaction.start()
    (late,) = await insert(store.on(slow), draft())
    (after,) = await insert(store, draft())
    seen, cursor = await _ids(store)
    assert seen == [before.id]  # `after` is committed, but something may still come before it
    assert await store.tail() == cursor

    await transaction.commit()
    await slow.close()
    new, cursor = await _ids(store, cursor)
    assert new == [late.id, after.id]
    assert await _ids(store, cursor) == ([], cursor)
    assert await store.tail() == cursor


async def test_what_was_rolled_back_leaves_no_trace(
    store: PostgresStore, postgres_url: str
) -> None:
    slow = await asyncpg.connect(without_schema(postgres_url))
    transaction = slow.transaction()
    await transaction.start()
    await insert(store.on(slow), draft())
    (after,) = await insert(store, draft())
    await transaction.rollback()
    await slow.close()
    assert (await _ids(store))[0] == [after.id]


async def test_a_reader_under_load_sees_every_event_once_in_one_order(
    store: PostgresStore, postgres_url: str
) -> None:
    """Writers commit in any order; a reader that starts anywhere gets the same sequence."""
    stop = asyncio.Event()
    read: list[str] = []

    async def read_on() -> None:
        cursor = ""
        while True:
            stopped = stop.is_set()
            events = await store.events(EventQuery(after=cursor, limit=37))
            read.extend(event.cursor for event in events)
            if events:
                cursor = events[-1].cursor
            elif stopped:
                return
            else:
                await asyncio.sleep(0.001)

    async def write() -> None:
        other = await PostgresStore.open(postgres_url)
        for _ in range(20):
            await insert(other, *(draft() for _ in range(3)))
            await complete(other, await other.claim(request(2)))
        await other.close()

    reader = asyncio.create_task(read_on())
    await asyncio.gather(*(write() for _ in range(6)))
    stop.set()
    await reader
    whole = [event.cursor for event in await store.events(EventQuery(limit=10_000))]
    assert read == whole
    assert len(whole) == len(set(whole)) == 6 * 20 * 7


async def test_events_of_a_deleted_job_are_still_found(store: PostgresStore) -> None:
    (job,) = await insert(store, draft(id="gone"))
    (claimed,) = await store.claim(request())
    await complete(store, [claimed])
    assert await store.delete({job.id: 3})
    (again,) = await insert(store, draft(id="gone"))
    assert again.seq > job.seq
    kinds = [event.kind for event in await store.events(EventQuery(job_id="gone"))]
    assert kinds == ["enqueued", "leased", "completed", "enqueued"]


@pytest.mark.parametrize(
    "cursor", ["x", "1", "1:", ":1", "1:x", "-1:2", "٣:1", f"{2**64}:1", "1:2:3"]
)
async def test_a_foreign_cursor_is_refused(store: PostgresStore, cursor: str) -> None:
    for read in (store.events(EventQuery(after=cursor)), store.wait(cursor, 1)):
        with pytest.raises(InvalidCursor):
            await read


async def test_a_reader_does_not_wait_long_for_what_is_held_back(
    store: PostgresStore, postgres_url: str
) -> None:
    slow = await asyncpg.connect(without_schema(postgres_url))
    async with slow.transaction():
        await slow.execute("SELECT pg_current_xact_id()")  # a writer, anywhere in the server
        await insert(store, draft())
        start = time.monotonic()
        assert await store.events(EventQuery()) == []
        assert await store.tail() == ""
        assert time.monotonic() - start < 4 * log.SETTLE_SECONDS
        assert len(await store.claim(request())) == 1  # claims are not held back
    await slow.close()
    assert [
        replace(event, seq=0, cursor="").kind for event in await store.events(EventQuery())
    ] == [
        "enqueued",
        "leased",
    ]
