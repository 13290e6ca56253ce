"""Every claimed job comes to an end that is recorded, refused or lost, whatever bites on the way."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from headrace import Context, Headrace, PermanentError, State, SyncContext, TemporaryError
from headrace.app import Observer
from headrace.errors import JobFailed
from headrace.model import Category
from headrace.worker import Settings, Worker
from tests.worker.running import PATIENCE_SECONDS, reached, until, working


class Biting(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even its name")


async def test_what_cannot_be_written_as_it_is_is_written_otherwise(store_url: str) -> None:
    """And keeps no other outcome from being written."""
    app = Headrace(store_url)

    @app.task(max_attempts=1)
    async def bite(how: str) -> Any:
        match how:
            case "code":
                raise PermanentError("x", code="caf\udce9")
            case "odd code":
                raise PermanentError("x", code={"a": 1})  # type: ignore[arg-type]
            case "nul":
                raise PermanentError("x\0y", code="a\0b")
            case "biting":
                raise Biting
            case "retry_after":
                raise TemporaryError("x", retry_after="30")
            case _:
                return "fine"

    async with app, working(app):
        jobs = [
            await bite.submit(how)
            for how in ("code", "odd code", "nul", "biting", "retry_after", "fine")
        ]
        ended = [await reached(app, job, State.COMPLETED, State.DEAD, State.FAILED) for job in jobs]
    assert [job.state for job in ended] == [State.FAILED] * 3 + [State.DEAD] * 2 + [State.COMPLETED]
    assert all(job.attempt == 1 and job.losses == 0 for job in ended)


async def test_an_observer_that_raises_costs_nothing() -> None:
    class Bad(Observer):
        def attempt_ended(self, *_: object) -> None:
            raise RuntimeError("a defect")

    app = Headrace("memory:", observers=[Bad()])

    @app.task
    async def work() -> str:
        return "done"

    async with app, working(app, concurrency=1):
        for _ in range(3):
            assert await app.wait(await work.submit(), 30) == "done"


async def test_a_result_that_is_known_is_not_thrown_away_while_the_log_is_written() -> None:
    app = Headrace("memory:")
    charged = []

    @app.task(timeout=0.3, max_attempts=1)
    async def charge(ctx: Context) -> str:
        charged.append(1)
        ctx.log("charged")
        return "charged"

    async with app:
        manager = await app.manager()
        annotate = manager.store.annotate

        async def slow(*args: Any) -> bool:
            await asyncio.sleep(1.0)
            return await annotate(*args)

        manager.store.annotate = slow  # type: ignore[method-assign, assignment]
        async with working(app):
            assert await app.wait(await charge.submit(), 30) == "charged"
    assert charged == [1]


async def test_what_a_handler_logged_before_its_timeout_is_kept(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task(timeout=0.4, max_attempts=1)
    async def endless(ctx: Context) -> None:
        ctx.log("began")
        await asyncio.sleep(60)

    async with app, working(app):
        job = await endless.submit()
        with pytest.raises(JobFailed, match="ran longer than"):
            await app.wait(job, 30)
        manager = await app.manager()
        assert [line["text"] for line in (await manager.get(job.id)).log] == ["began"]


async def test_who_sees_that_it_must_stop_and_returns_has_stopped(store_url: str) -> None:
    app = Headrace(store_url)
    began = []

    @app.task
    def pages(ctx: SyncContext) -> int:
        done = 0
        while not ctx.is_cancelled:
            began.append(1)
            done += 1
            time.sleep(0.01)
        return done

    async with app:
        async with working(app):
            job = await pages.submit()
            await until(lambda: bool(began))
        ended = await app.get(job)
    assert ended.state is State.RETRYING  # given back, not completed by a part of its work
    assert ended.failures == ended.losses == 0


async def test_what_a_handler_raises_while_it_is_stopped_costs_nothing(store_url: str) -> None:
    app = Headrace(store_url)
    began = []

    @app.task(max_attempts=1)
    async def work() -> None:
        began.append(1)
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("the connection is closed already")

    async with app:
        async with working(app):
            job = await work.submit()
            await until(lambda: bool(began))
        ended = await app.get(job)
    assert ended.state is State.RETRYING
    assert ended.failures == ended.losses == 0


async def test_a_timeout_counts_from_when_the_handler_starts() -> None:
    """Not from when it began to wait for a place."""
    app = Headrace("memory:")

    @app.task(timeout=1.0, max_attempts=1)
    def work() -> str:
        time.sleep(0.4)
        return "done"

    async with app, working(app, concurrency=2):
        jobs = await app.submit_many([work.spec() for _ in range(8)])
        assert [await app.wait(job, 30) for job in jobs] == ["done"] * 8


async def test_cancelling_the_worker_gives_its_jobs_back(store_url: str) -> None:
    app = Headrace(store_url)
    began = []

    @app.task
    async def work() -> None:
        began.append(1)
        await asyncio.sleep(60)

    async with app:
        running = asyncio.create_task(Worker(app, Settings(maintenance=False)).run())
        jobs = await app.submit_many([work.spec() for _ in range(3)])
        await until(lambda: len(began) == 3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, PATIENCE_SECONDS)
        ended = await (await app.manager()).get_many([job.id for job in jobs])
    assert [job.state for job in ended] == [State.RETRYING] * 3
    assert all(job.failures == job.losses == 0 for job in ended)


async def test_what_was_claimed_ahead_and_does_not_start_is_given_to_others(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task
    async def tiny() -> None: ...

    @app.task
    async def slow() -> None:
        await asyncio.sleep(3)

    async with app, working(app, concurrency=5):
        await app.submit_many([tiny.spec() for _ in range(1500)])
        jobs = await app.submit_many([slow.spec() for _ in range(60)])
        first = await reached(app, jobs[0], State.RUNNING, State.COMPLETED)
        assert first.attempt == 1
        async with working(app, concurrency=60):
            for job in jobs:
                await reached(app, job, State.COMPLETED)
        ended = await (await app.manager()).get_many([job.id for job in jobs])
    assert all(job.losses == job.failures == 0 for job in ended)


async def test_a_cancelled_handler_may_take_longer_than_its_lease_to_clean_up(
    store_url: str,
) -> None:
    app = Headrace(store_url)
    began = []

    @app.task(lease=1.2)
    async def work() -> None:
        began.append(1)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(2.5)

    async with app, working(app):
        job = await work.submit()
        await until(lambda: bool(began))
        await app.cancel(job)
        ended = await reached(app, job, State.CANCELLED, State.ABANDONED)
    assert ended.state is State.CANCELLED
    assert ended.failure is not None
    assert ended.failure.category is Category.CANCELLED
