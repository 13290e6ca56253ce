"""Several processes on one limited queue: the log shows that together they never pass a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import JobSpec, State, connect
from headrace.limits import QueueLimits
from headrace.testing.conformance.manager.limits_races import every_event, most_at_once
from tests.processes import drain
from tests.stores.postgres.server import Schemas
from tests.stores.redis.server import fresh_url

JOBS = 300
KEYS = 10


@pytest.fixture(params=["sqlite", "postgresql", "redis"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The url of an empty store that several processes can use."""
    match request.param:
        case "sqlite":
            yield f"sqlite:///{tmp_path / 'jobs.db'}"
        case "postgresql":
            schemas: Schemas = request.getfixturevalue("postgres_schemas")
            url = schemas.take()
            yield url
            asyncio.run(schemas.give_back(url))
        case _:
            yield fresh_url()


async def test_processes_together_keep_to_the_limits(shared_url: str) -> None:
    async with await connect(shared_url) as manager:
        await manager.set_limits("default", QueueLimits(concurrency=5, key_concurrency=2))
        specs = [JobSpec(type="t", limit_key=f"k{n % KEYS}") for n in range(JOBS)]
        keys = {job.id: job.limit_key for job in (await manager.submit_many(specs)).jobs}
        done = await asyncio.gather(*(drain.in_process(shared_url, f"w{n}") for n in range(3)))
        assert sorted(job_id for one in done for job_id in one.completed) == sorted(keys)
        assert (await manager.stats()).states[State.COMPLETED] == JOBS
        events = await every_event(manager)
    assert 1 < most_at_once(events, lambda event: event.queue)["default"] <= 5
    assert max(most_at_once(events, lambda event: keys[event.job_id]).values()) <= 2
