"""Opening a store of another version leaves it untouched."""

from __future__ import annotations

import pytest

from headrace.errors import SchemaTooNew, SchemaTooOld, StoreCorrupt, StoreUnavailable
from headrace.stores.redis import SCHEMA_VERSION, RedisStore


async def _set_schema(store: RedisStore, version: str) -> None:
    await store._server.read("SET", store._server.keys.of("schema"), version)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (str(SCHEMA_VERSION + 1), SchemaTooNew),
        (str(SCHEMA_VERSION - 1), SchemaTooOld),
        ("?", StoreCorrupt),
    ],
)
async def test_another_version_is_refused(
    store: RedisStore, redis_url: str, version: str, error: type[Exception]
) -> None:
    await _set_schema(store, version)
    with pytest.raises(error):
        await RedisStore.open(redis_url)
    assert await store._server.read("GET", store._server.keys.of("schema")) == version.encode()


async def test_a_version_that_no_migration_starts_from_is_refused(
    store: RedisStore, redis_url: str
) -> None:
    await _set_schema(store, "0")
    with pytest.raises(SchemaTooOld, match="no migration starts there"):
        await RedisStore.open(redis_url, migrate=True)
    assert await store.schema_version() == 0


async def test_a_store_is_created_only_when_asked(redis_url: str) -> None:
    with pytest.raises(StoreUnavailable):
        await RedisStore.open(redis_url, create=False)
    await (await RedisStore.open(redis_url)).close()
    await (await RedisStore.open(redis_url, create=False)).close()
