"""What all tests share: an empty store of every kind, by url."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("headrace.testing.conformance")

STORES = ("memory", "sqlite")


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The url of an empty store; a test that asks for it runs once per store."""
    match request.param:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:///{tmp_path / 'jobs.db'}"
        case unknown:
            raise AssertionError(unknown)
