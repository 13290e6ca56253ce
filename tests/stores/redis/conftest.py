"""What the Redis tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.stores.redis import RedisStore
from tests.stores.redis.server import fresh_url


@pytest.fixture
def redis_url() -> str:
    """The url of an empty store."""
    return fresh_url()


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    opened = await RedisStore.open(redis_url)
    yield opened
    await opened.close()
