"""What the tests with faults share."""

from __future__ import annotations

import pytest

from headrace.connect import open_store


@pytest.fixture
async def durable_url(store_url: str) -> str:
    """The url of an empty store that outlives a process and can be used by several; once per kind."""
    store = await open_store(store_url)
    can = store.capabilities
    await store.close()
    if not (can.durable and can.shared):
        pytest.skip("its jobs end with the process, or are seen by it alone")
    return store_url
