"""Batches of any size in the application: waited for, read through, resumed; finds and watched jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace import Context, Headrace, KeyRing, PermanentError, State, SyncContext
from headrace.app import BatchResult
from headrace.crypto import new_key
from headrace.errors import InvalidInput
from headrace.manager import Completed, JobManager
from headrace.model import Job
from headrace.testing.harness import Harness
from headrace.worker import Settings, Worker
from tests.worker import handlers
from tests.worker.running import working

QUIET = Settings(maintenance=False)


def make_app(url: str, told: list[Any], **options: Any) -> Headrace:
    app = Headrace(url, **options)

    @app.task
    async def pair(n: int) -> tuple[int, str]:
        if n == 2:
            raise PermanentError("not two", code="TWO")
        return n, "x" * n

    @app.task
    async def all_done(ctx: Context, batch: dict[str, Any]) -> int:
        told.append(batch["total"])
        told.extend([one async for one in ctx.batch_results()])
        return len(told)

    @app.task
    def all_done_in_thread(ctx: SyncContext, batch: dict[str, Any]) -> None:
        told.append(batch["total"])
        told.extend(ctx.batch_results())

    @app.task
    async def alone(ctx: Context) -> None:
        async for _ in ctx.batch_results():
            raise AssertionError

    return app


@pytest.mark.parametrize("callback", ["all_done", "all_done_in_thread"])
async def test_the_callback_reads_what_became_of_each_job(store_url: str, callback: str) -> None:
    told: list[Any] = []
    keys = KeyRing.parse(new_key("k1"))
    async with make_app(store_url, told, keys=keys) as app:
        pair = app.tasks["pair"]
        batch = await app.submit_batch([pair.spec(n) for n in range(4)], app.tasks[callback])
        await app.submit("pair", 7)  # none of the batch
        assert [one async for one in app.batch_results(batch)] == []
        await Worker(app, QUIET).drain()
        total, *results = told
        assert total == 4
        assert all(isinstance(one, BatchResult) for one in results)
        assert [one.job_id for one in results] == list(batch.job_ids)
        assert [one.result for one in results] == [(0, ""), (1, "x"), None, (3, "xxx")]
        assert [one.completed for one in results] == [True, True, False, True]
        failed = results[2]
        assert (failed.state, failed.type) == (State.FAILED, "pair")
        assert (failed.failure.message, failed.failure.code) == ("not two", "TWO")
        assert [one async for one in app.batch_results(batch.id)] == results


async def test_only_a_callback_has_results() -> None:
    async with make_app("memory:", []) as app:
        job = await app.submit("alone")
        await Worker(app, QUIET).drain()
        failure = (await app.get(job)).failure
        assert failure is not None
        assert "is not the callback of a batch" in failure.message


async def test_a_callback_in_a_child_process_reads_them_too(tmp_path: Path) -> None:
    app = handlers.make_app(f"sqlite:///{tmp_path}/jobs.db")
    async with app, working(app):
        for callback in (handlers.sum_in_child, handlers.async_sum_in_child):
            batch = await app.submit_batch([handlers.plain.spec(n) for n in range(3)], callback)
            assert batch.callback_id is not None
            assert await app.wait(batch.callback_id, 60) == 6


async def test_10_001_jobs_in_steps_under_one_id_resumed_and_waited_for() -> None:
    app = Headrace("memory:", submission_timeout=30)

    @app.task
    async def row(n: int) -> None: ...

    async with app:
        specs = [row.spec(n) for n in range(10_001)]
        with pytest.raises(InvalidInput, match="give it a batch_id"):
            await app.submit_batch(specs)
        first = await app.submit_batch(iter(specs), batch_id="big")
        assert (first.id, len(first.job_ids), first.created) == ("big", 10_001, 10_001)
        again = await app.submit_batch(specs, batch_id="big")
        assert (again.job_ids, again.created) == (first.job_ids, 0)
        with pytest.raises(TimeoutError, match="0 of 10001 jobs have ended"):
            await app.wait_batch("big", timeout=0.01)
        waiting = asyncio.create_task(app.wait_batch(first, timeout=60))
        manager = await app.manager()
        while held := await manager.claim("w", limit=5000):
            await complete(manager, held)
        assert (await waiting).completed == 10_001
        assert (await app.wait_batch(await app.submit_batch([]))).done


async def complete(manager: JobManager, held: Sequence[Job]) -> None:
    await manager.settle([Completed(job_id=job.id, token=job.token) for job in held])


async def test_finds_go_through_all_pages_also_without_a_loop(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    app = make_app(url, [])
    async with app:
        pair = app.tasks["pair"]
        await app.submit_many([pair.spec(n) for n in range(150)])
        await app.submit("alone")
        found = [job.payload["n"] async for job in app.find(tasks=[pair])]
        assert found == list(range(150))
        page = await app.find(tasks=["pair"], limit=2)
        assert [job.payload["n"] for job in page] == [0, 1]
        assert len([job async for job in app.find(states=["pending"], cursor=page.cursor)]) == 149
        with pytest.raises(InvalidInput, match="tasks is a Task, not a list"):
            app.find(tasks=pair)  # type: ignore[arg-type]

    def in_thread() -> list[int]:
        try:
            for seen in app.sync.watch(next(iter(app.sync.find(limit=1))), timeout=0):
                assert seen.state is State.PENDING
            return [job.payload["n"] for job in app.sync.find(tasks=["pair"], limit=120)]
        finally:
            app.sync.close()

    assert await asyncio.to_thread(in_thread) == list(range(120))
    with pytest.raises(InvalidInput, match="await it instead"):
        next(app.sync.find())


async def test_a_job_is_watched_from_its_submission_to_its_end(store_url: str) -> None:
    app = Headrace(store_url)
    gate = asyncio.Event()

    @app.task
    async def slow(ctx: Context) -> str:
        await ctx.progress(0.5, "half")
        await gate.wait()
        return "done"

    async with app:
        job = await app.submit("slow")
        seen: list[tuple[State, float | None]] = []
        async with working(app):
            async for now in app.watch(job, look_seconds=0.05, timeout=60):
                seen.append((now.state, now.progress))
                if now.progress == 0.5:
                    gate.set()
        assert seen[-1][0] is State.COMPLETED
        assert (State.RUNNING, 0.5) in seen
        assert len(seen) == len(set(seen))


async def test_batches_and_finds_in_the_harness() -> None:
    told: list[Any] = []
    app = make_app("memory:", told)
    async with Harness(app) as harness:
        batch = await app.submit_batch(
            [app.tasks["pair"].spec(n) for n in range(3)], app.tasks["all_done"], batch_id="b"
        )
        await harness.drain()
        assert (await app.wait_batch(batch, timeout=0)).completed == 2
        assert told[0] == 3
