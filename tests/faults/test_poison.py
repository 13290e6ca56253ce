"""A job that kills its process is dead after three times; everybody else's job is done."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from headrace.model import Category, State
from tests.faults.plain import poison, sleep
from tests.faults.processes import send
from tests.faults.supervised import supervised

INNOCENTS = 40
CONCURRENCY = 10


@pytest.mark.timeout(180)
async def test_poison_is_dead_and_the_other_jobs_are_done(durable_url: str, tmp_path: Path) -> None:
    async with supervised(
        durable_url, tmp_path, "--concurrency", str(CONCURRENCY), "--children", "2"
    ) as (workers, app):
        specs = [sleep.spec(0.3) for _ in range(INNOCENTS)]
        specs[5:5] = [poison.spec()]  # among others, so that it takes some along
        bad = (await app.submit_many(specs))[5]
        await workers.until_ended()
        jobs = {job.id: job for job in await workers.jobs()}
        dead = jobs.pop(bad.id)
        assert dead.state is State.DEAD
        assert dead.failure is not None
        assert dead.failure.category is Category.SYSTEM
        # Twice it took a whole worker along, then only the child it was locked up in.
        assert (dead.losses, dead.failures) == (2, 1)
        assert workers.said.count("ended with -9") == 2
        assert {job.state for job in jobs.values()} == {State.COMPLETED}
        assert 0 < sum(job.losses for job in jobs.values()) <= 4 * CONCURRENCY
        assert max(job.losses for job in jobs.values()) <= 2
        assert sum(job.failures for job in jobs.values()) == 0
        send(workers.pid, signal.SIGTERM)
        assert await workers.exit_code() == 0
        assert await workers.processes.leftovers() == []
