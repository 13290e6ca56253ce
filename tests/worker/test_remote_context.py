"""A handler in a child process finds what it would find in the worker, and fails as it would there."""

from __future__ import annotations

from pathlib import Path

from headrace import JobSpec, State
from headrace.worker import Settings, Worker
from tests.worker import handlers


async def test_the_context_is_the_same_in_a_child(tmp_path: Path) -> None:
    async with handlers.make_app(f"sqlite:///{tmp_path}/jobs.db") as app:
        job = await handlers.look_around.submit(7)
        await Worker(app, Settings(maintenance=False, children=1)).drain()
        assert await app.result(job) == [True, {"n": 7}, True, None]


async def test_bad_arguments_and_bad_results_fail_for_good_in_a_child_too(tmp_path: Path) -> None:
    async with handlers.make_app(f"sqlite:///{tmp_path}/jobs.db") as app:
        manager = await app.manager()
        wrong = (await manager.submit(JobSpec(type="look_around", payload={"n": "x"}))).job
        returned = await handlers.bad_result.submit()
        await Worker(app, Settings(maintenance=False, children=1)).drain()
        ended = await manager.get_many([wrong.id, returned.id])
    assert [job.state for job in ended] == [State.FAILED, State.FAILED]
    assert [job.failure and job.failure.code for job in ended] == [
        "invalid_arguments",
        "invalid_result",
    ]
