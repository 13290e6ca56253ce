"""What the tests of the SQLite store share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from headrace.stores.sqlite import SqliteStore, schema


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(path, synchronous="normal")  # these tests lose no power
    yield opened
    await opened.close()


SECOND = "ALTER TABLE workers ADD COLUMN made_up INTEGER NOT NULL DEFAULT 7;"


@pytest.fixture
def second_step(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Called: from now on this Headrace knows a second migration. There is only one as yet."""

    def step(text: str = SECOND) -> None:
        monkeypatch.setattr(schema, "_MIGRATIONS", (*schema._MIGRATIONS[:1], text))
        monkeypatch.setattr(schema, "LATEST_SCHEMA_VERSION", 2)

    return step
