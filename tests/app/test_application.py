"""Submitting, waiting for results, and the same without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace import Headrace, Job, JobSpec, Middleware, State
from headrace.app.middleware import Submit
from headrace.errors import InvalidInput, JobFailed, NotEnded, SubmissionTimeout
from headrace.worker import Settings, Worker


def make_app(url: str, **options: object) -> Headrace:
    app = Headrace(url, **options)  # type: ignore[arg-type]

    @app.task
    async def add(a: int, b: int = 2) -> int:
        return a + b

    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no")

    @app.task
    async def pair() -> tuple[int, str]:
        return (1, "x")

    return app


async def test_results_on_every_store(store_url: str) -> None:
    async with make_app(store_url) as app:
        worker = Worker(app, Settings(maintenance=False))
        jobs = await app.submit_many([app.tasks["add"].spec(n) for n in range(5)])
        with pytest.raises(NotEnded):
            await app.result(jobs[0])
        failing = await app.submit("fail")
        paired = await app.submit("pair")
        assert await worker.drain() == 7
        assert [await app.result(job) for job in jobs] == [2, 3, 4, 5, 6]
        assert await app.result(paired.id) == (1, "x")
        with pytest.raises(JobFailed, match="dead: no") as failed:
            await app.wait(failing)
        ended = failed.value.job
        assert isinstance(ended, Job)
        assert ended.failure is not None
        assert ended.failure.code == "ValueError"


async def test_waiting_ends_with_the_job_or_with_the_patience(store_url: str) -> None:
    async with make_app(store_url) as app:
        job = await app.submit("add", 1)
        with pytest.raises(TimeoutError, match="pending and goes on"):
            await app.wait(job, timeout=0.05)
        waiting = asyncio.create_task(app.wait(job, timeout=30))
        await asyncio.sleep(0)
        await Worker(app, Settings(maintenance=False)).drain()
        assert await waiting == 3


async def test_unique_jobs_are_one_while_they_last() -> None:
    async with Headrace("memory:") as app:

        @app.task(unique=True)
        async def report(day: str) -> None: ...

        first = await report.submit("monday")
        assert (await report.submit("monday")).id == first.id
        assert (await report.submit("tuesday")).id != first.id
        await Worker(app, Settings(maintenance=False)).drain()
        assert (await report.submit("monday")).id != first.id


def test_the_same_without_an_event_loop(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path}/jobs.db")
    job = app.sync.submit("add", 40)
    assert app.sync.get(job).state is State.PENDING

    def work() -> None:
        async def drain() -> None:
            async with app:
                await Worker(app, Settings(maintenance=False)).drain()

        asyncio.run(drain())

    worker = threading.Thread(target=work)
    worker.start()
    assert app.sync.wait(job, timeout=20) == 42
    worker.join()
    app.sync.close()


async def test_the_bridge_refuses_to_block_a_loop() -> None:
    app = make_app("memory:")
    with pytest.raises(InvalidInput, match="await it instead"):
        app.sync.submit("add", 1)


async def test_middleware_sees_every_submission_from_the_outside_in() -> None:
    seen: list[str] = []

    class Named(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        async def submit(self, specs: Sequence[JobSpec], call_next: Submit) -> tuple[Job, ...]:
            seen.append(f"{self.name} before {len(specs)}")
            jobs = await call_next(specs)
            seen.append(f"{self.name} after {jobs[0].type}")
            return jobs

    async with make_app("memory:", middleware=[Named("outer"), Named("inner")]) as app:
        await app.submit("add", 1)
    assert seen == ["outer before 1", "inner before 1", "inner after add", "outer after add"]


async def test_hooks_and_a_batch() -> None:
    app = Headrace("memory:")
    told: list[object] = []

    @app.task
    async def tell(job: dict[str, object]) -> None:
        told.append((job["state"], job["result"]))

    @app.task
    async def all_done(batch: dict[str, object]) -> None:
        told.append((batch["total"], batch["completed"], batch["dead"]))

    @app.task(on_success=tell, on_failure=tell, max_attempts=1)
    async def work(n: int) -> int:
        if n < 0:
            raise ValueError(n)
        return n

    async with app:
        good, bad = await app.submit_many([work.spec(1), work.spec(-1)])
        await Worker(app, Settings(maintenance=False)).drain()
        assert sorted(told, key=str) == [("completed", 1), ("dead", None)]
        told.clear()
        batch = await app.submit_batch(
            [work.options(on_success=(), on_failure=()).spec(n) for n in (1, 2, -3)], all_done
        )
        await Worker(app, Settings(maintenance=False)).drain()
        assert told == [(3, 2, 1)]
        assert (await app.batch(batch.id)).done
        assert (await app.get(good)).state is State.COMPLETED
        assert (await app.get(bad)).state is State.DEAD


async def test_a_submission_that_is_not_acknowledged_in_time_says_that_it_may_be_stored() -> None:
    class Slow(Middleware):
        async def submit(self, specs: Sequence[JobSpec], call_next: Submit) -> tuple[Job, ...]:
            jobs = await call_next(specs)
            await asyncio.sleep(30)
            return jobs

    async with make_app("memory:", middleware=[Slow()], submission_timeout=0.05) as app:
        with pytest.raises(SubmissionTimeout, match="not known"):
            await app.submit("add", 1)


async def test_find_by_types_is_told_that_it_is_tasks() -> None:
    async with Headrace("memory:") as app:
        with pytest.raises(InvalidInput, match="write tasks="):
            app.find(types=["greet"])
