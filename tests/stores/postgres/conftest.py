"""An empty schema for each test, on the server that all tests share (tests/conftest.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.stores.postgres import PostgresStore
from tests.stores.postgres import server


@pytest.fixture
async def postgres_url(postgres_schemas: server.Schemas) -> AsyncIterator[str]:
    url = postgres_schemas.take()
    yield url
    await postgres_schemas.give_back(url)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(postgres_url)
    yield opened
    await opened.close()
