"""Broken connections: what is repeated, what never is, and what is said about it."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

import pytest

from headrace.errors import StoreClosed, StoreUnavailable
from headrace.stores.base import Clash, Commit, Query
from headrace.stores.redis import RedisStore
from tests.stores.proxy import proxy_to
from tests.stores.redis.jobs import NOW, completion, draft, insert, insertion, request
from tests.stores.redis.server import base_url


def _through(port: int, url: str) -> str:
    """The same url with another host and port; user and password stay."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}127.0.0.1:{port}").geturl()


async def test_a_lost_answer_is_not_repeated_and_said_to_be_unknown(redis_url: str) -> None:
    async with proxy_to(base_url()) as proxy:
        store = await RedisStore.open(_through(proxy.port, redis_url))
        await insert(store, draft(id="before"))
        jobs = [draft(id="one"), draft(id="two")]
        proxy.eat_answers = True
        with pytest.raises(StoreUnavailable, match="unknown"):
            await store.insert(insertion(jobs))
        proxy.eat_answers = False
        # It had been carried out, once; whoever repeats it is told.
        assert await store.insert(insertion(jobs)) == Clash(ids=["one", "two"])
        assert len(await store.find(Query())) == 3
        claimed = await store.claim(request(3))
        await store.commit(Commit(changes=[]))  # the server knows the script: its fate is to run
        proxy.eat_answers = True
        with pytest.raises(StoreUnavailable, match="unknown"):
            await store.commit(Commit(changes=[completion(job) for job in claimed]))
        proxy.eat_answers = False
        again = await store.commit(Commit(changes=[completion(job) for job in claimed]))
        assert again.applied == [False] * 3
        assert {job.state for job in await store.find(Query())} == {"completed"}
        await store.close()


async def test_a_connection_that_died_idle_is_replaced(redis_url: str) -> None:
    async with proxy_to(base_url()) as proxy:
        store = await RedisStore.open(_through(proxy.port, redis_url))
        for number in range(5):
            proxy.cut()
            await asyncio.sleep(0.02)
            await insert(store, draft(id=f"job-{number}"))
        assert len(await store.find(Query())) == 5
        await store.close()


async def test_a_server_that_is_away_is_waited_for(redis_url: str) -> None:
    async with proxy_to(base_url()) as proxy:
        store = await RedisStore.open(_through(proxy.port, redis_url))
        proxy.refuse = True
        proxy.cut()
        waiting = asyncio.create_task(store.get(["none"]))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        proxy.refuse = False
        assert await waiting == {}
        await store.close()


async def test_patience_ends(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxy_to(base_url()) as proxy:
        store = await RedisStore.open(_through(proxy.port, redis_url))
        monkeypatch.setattr(store._server, "_patience_seconds", 0.2)
        proxy.refuse = True
        proxy.cut()
        await asyncio.sleep(0.02)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await store.now()
        proxy.refuse = False
        await store.now()
        await store.close()


async def test_no_server_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.stores.redis.connection.PATIENCE_SECONDS", 0.2)
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        await RedisStore.open("redis://127.0.0.1:1/0")


async def test_a_cancelled_call_does_not_leave_its_answer_to_the_next(store: RedisStore) -> None:
    await insert(store, *(draft(id=f"job-{n}") for n in range(50)))
    for n in range(30):
        call = asyncio.create_task(store.get([f"job-{n}"]))
        await asyncio.sleep(0 if n % 2 else 0.0005)
        call.cancel()
        assert list(await store.get(["job-49"])) == ["job-49"]


async def test_after_close_every_verb_says_so(redis_url: str) -> None:
    store = await RedisStore.open(redis_url)
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.claim(request())
    with pytest.raises(StoreClosed):
        await store.wait("", 1)


async def test_waiting_keeps_nobody_from_a_connection(redis_url: str) -> None:
    store = await RedisStore.open(f"{redis_url}&max_connections=1")
    tail = await store.tail()
    waits = [asyncio.create_task(store.wait(tail, 30)) for _ in range(50)]
    await asyncio.sleep(0.1)
    start = time.monotonic()
    await insert(store, draft())
    await asyncio.gather(*waits)
    assert time.monotonic() - start < 2, "woken by the event, not by the timeout"
    await store.wait(tail, 30)  # past the cursor already: at once
    waiting = asyncio.create_task(store.wait(await store.tail(), 30))
    await asyncio.sleep(0.05)
    await store.close()
    await asyncio.wait_for(waiting, 2)


async def test_a_wait_outlives_a_broken_connection(redis_url: str) -> None:
    async with proxy_to(base_url()) as proxy:
        store = await RedisStore.open(_through(proxy.port, redis_url))
        waiting = asyncio.create_task(store.wait(await store.tail(), 30))
        await asyncio.sleep(0.05)
        proxy.cut()
        await asyncio.wait_for(waiting, 5)  # a hint may come early
        waiting = asyncio.create_task(store.wait(await store.tail(), 30))
        await asyncio.sleep(0.05)
        await insert(store, draft(created_at=NOW))
        await asyncio.wait_for(waiting, 5)
        await store.close()
