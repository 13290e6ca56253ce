"""Whatever a handler raises or returns is that job's failure: never its neighbours', never the worker's."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import Job, State
from tests.worker import poisons
from tests.worker.poisons import POISONS
from tests.worker.running import reached, working

INNOCENT = 5
CORE = (
    "its text raises",
    "its code raises",
    "its message is half a character",
    "its message has a nul",
    "retry after nan",
    "SystemExit",
    "StopIteration",
    "snooze to year 9999",
    "a map that bites",
    "half a character",
    "raw bytes that are no JSON",
    "log what changes",
)
"""Those that could differ between stores, and one of each kind."""


async def swallowed(url: str, task: Any, names: tuple[str, ...]) -> dict[str, Job]:
    """Each poison through one worker, with innocent jobs beside it; the jobs by their poison."""
    poisons.app.url = url
    ended: dict[str, Job] = {}
    async with poisons.app as app, working(app) as worker:
        for name in names:
            jobs = await app.submit_many(
                [task.spec(name), *[poisons.innocent.spec(n) for n in range(INNOCENT)]]
            )
            bad, *good = [
                await reached(app, job, State.COMPLETED, State.FAILED, State.DEAD) for job in jobs
            ]
            assert [(one.state, one.attempt, one.result) for one in good] == [
                (State.COMPLETED, 1, n) for n in range(INNOCENT)
            ], name
            assert not worker.is_stopping, name
            ended[name] = bad
    return ended


def check(ended: dict[str, Job]) -> None:
    for name, job in ended.items():
        assert job.state in (State.FAILED, State.DEAD), (name, job.state, job.result)
        assert (job.attempt, job.failures, job.losses) == (1, 1, 0), name
        assert job.failure is not None, name
        assert job.failure.message.strip(), name
        # Its own failure, not an accident of the worker's or of the child's.
        assert job.failure.code not in ("attempt_failed", "unrecordable", "process_died"), (
            name,
            job.failure,
        )


@pytest.mark.parametrize("task", [poisons.on_loop, poisons.in_thread, poisons.in_child], ids=str)
async def test_a_poison_is_its_own_jobs_failure(task: Any) -> None:
    check(await swallowed("memory:", task, tuple(POISONS)))


async def test_the_same_on_every_store(store_url: str) -> None:
    check(await swallowed(store_url, poisons.on_loop, CORE))
