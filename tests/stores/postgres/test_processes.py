"""Several worker processes on one server: every job is completed exactly once."""

from __future__ import annotations

from tests.stores.postgres import processes


async def test_several_processes_complete_each_job_once(postgres_url: str) -> None:
    await processes.prove(postgres_url, 2_000, 3)
