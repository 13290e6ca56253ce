"""Trimming leaves nothing behind, and numbers go on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from headrace.stores.base import EventQuery
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import NOW, complete, insert, new_job, request, rows

LATER = NOW + timedelta(days=1)


async def test_the_way_to_deleted_jobs_goes_with_their_events(
    store: SqliteStore, path: Path
) -> None:
    await insert(store, new_job(), new_job())
    taken = await store.claim(request(2))
    await complete(store, taken)
    await store.delete({taken[0].id: 3})
    assert len(rows(path, "SELECT * FROM deleted_jobs")) == 1
    assert await store.trim([], LATER, 100) == 6
    assert not rows(path, "SELECT * FROM deleted_jobs")
    await store.delete({taken[1].id: 3})  # its events are gone already: there is no way to keep
    assert not rows(path, "SELECT * FROM deleted_jobs")


async def test_a_trimmed_log_is_so_in_every_process(store: SqliteStore, path: Path) -> None:
    await insert(store, new_job())
    assert await store.trim([], LATER, 100) == 1
    other = await SqliteStore.open(path, synchronous="normal")
    assert await other.tail() == "1"
    await insert(other, new_job())
    assert [event.seq for event in await store.events(EventQuery(after="1"))] == [2]
    await other.close()
