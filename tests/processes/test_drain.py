"""Several processes on one store: every job is completed once, and no lock error reaches a caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import drain
from tests.stores.postgres.server import Schemas
from tests.stores.redis.server import fresh_url


@pytest.mark.timeout(300)
async def test_two_processes_drain_one_file_of_20000_jobs(tmp_path: Path) -> None:
    proof = await drain.prove(f"sqlite:///{tmp_path / 'jobs.db'}", jobs=20_000, processes=2)
    assert min(proof.shares) > 0, "one process did all the work"


async def test_several_processes_on_postgresql(postgres_schemas: Schemas) -> None:
    url = postgres_schemas.take()
    await drain.prove(url, jobs=3000, processes=4)
    await postgres_schemas.give_back(url)


async def test_several_processes_on_redis() -> None:
    await drain.prove(fresh_url(), jobs=3000, processes=4)
