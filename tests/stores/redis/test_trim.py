"""Trimming: longer than one page, over a restart of the script cache, and nothing left behind."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest

from headrace.errors import LogTrimmed
from headrace.model import Event
from headrace.stores.base import Commit, EventQuery
from headrace.stores.redis import RedisStore, log
from tests.stores.redis.jobs import NOW, completion, draft, insert, request

LATER = NOW + timedelta(days=1)


async def test_a_trim_of_many_pages_is_one_step(store: RedisStore) -> None:
    await insert(store, *(draft() for _ in range(2500)))
    events = await store.events(EventQuery(limit=5000))
    await store._server.read("SCRIPT", "FLUSH")
    assert await store.trim([events[2300].cursor], LATER, 2300) == 2300
    assert list(await store.events(EventQuery(limit=5000))) == list(events[2300:])
    assert await store.trim([events[2399].cursor], LATER, 5000) == 100
    assert await store.tail() == events[-1].cursor


@pytest.mark.parametrize("start", [0, 2])
async def test_a_read_that_is_overtaken_between_two_pages_has_no_gap(
    store: RedisStore, start: int
) -> None:
    """What was read so far is given; whoever goes on from there is told."""
    await insert(store, *(draft() for _ in range(20)))
    events = list(await store.events(EventQuery()))
    after = events[start - 1].cursor if start else ""
    with mock.patch.object(log, "_PAGE", 4):
        read = await _read_while_trimmed(store, after, events[start + 7].cursor)
    assert read == events[start : start + 4]
    with pytest.raises(LogTrimmed):
        await store.events(EventQuery(after=read[-1].cursor))


async def _read_while_trimmed(store: RedisStore, after: str, upto: str) -> list[Event]:
    read_script = store._server.read_script
    calls = 0

    async def overtaken(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2:
            await store.trim([upto], LATER, 100)
        return await read_script(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(store._server, "read_script", overtaken):
        return list(await store.events(EventQuery(after=after)))


async def test_the_chains_of_deleted_jobs_go_with_their_events(store: RedisStore) -> None:
    async def remembered() -> int:
        return int(await store._server.read("ZCARD", store._server.keys.of("gone")))

    await insert(store, *(draft() for _ in range(2)))
    taken = await store.claim(request(2))
    await store.commit(Commit(changes=[completion(job) for job in taken]))
    await store.delete({taken[0].id: 3})
    assert await remembered() == 1
    assert await store.trim([], LATER, 100) == 6
    assert await remembered() == 0
    await store.delete({taken[1].id: 3})  # its events are gone already: there is no chain to keep
    assert await remembered() == 0
