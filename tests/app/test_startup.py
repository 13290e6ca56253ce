"""What workers open before their first job and close after their last."""

from __future__ import annotations

import asyncio

import pytest

from headrace import Headrace, State
from headrace.errors import InvalidInput
from headrace.testing import Harness
from headrace.worker import Settings, Worker


def application() -> tuple[Headrace, list[str]]:
    app = Headrace("memory:")
    said: list[str] = []

    @app.on_startup
    async def open_client() -> None:
        await asyncio.sleep(0)
        app.state.client = "client"
        said.append("opened")

    @app.on_startup
    def load_model() -> None:
        said.append("loaded")

    @app.on_shutdown
    def close_first() -> None:
        said.append("closed, registered first")

    @app.on_shutdown
    async def close_client() -> None:
        said.append(f"closed {app.state.client}")

    @app.task
    async def call() -> str:
        said.append("ran")
        return str(app.state.client)

    return app, said


async def test_hooks_run_around_the_jobs_of_a_worker() -> None:
    app, said = application()
    async with app:
        job = await app.submit("call")
        worker = Worker(app, Settings(poll_seconds=0.05))
        running = asyncio.create_task(worker.run())
        assert await app.wait(job, timeout=20) == "client"
        worker.stop()
        await asyncio.wait_for(running, 20)
    assert said == ["opened", "loaded", "ran", "closed client", "closed, registered first"]


async def test_a_worker_whose_start_fails_claims_nothing() -> None:
    app = Headrace("memory:")
    ended: list[str] = []

    @app.on_startup
    async def connect() -> None:
        raise ConnectionError("the model server is away")

    @app.on_shutdown
    def close() -> None:
        ended.append("closed")

    @app.task
    async def call() -> None: ...

    async with app:
        job = await app.submit("call")
        with pytest.raises(ConnectionError) as raised:
            await asyncio.wait_for(Worker(app).run(), 20)
        assert any("connect; no job was claimed" in note for note in raised.value.__notes__)
        assert (await app.get(job)).attempt == 0
    assert ended == ["closed"], "what an earlier hook had opened is closed"


async def test_each_hook_of_the_end_has_its_turn(caplog: pytest.LogCaptureFixture) -> None:
    app, said = application()

    @app.on_shutdown
    def fails() -> None:
        raise RuntimeError("half closed")

    async with app:
        await app.submit("call")
        assert await Worker(app).drain() == 1
    assert said[-2:] == ["closed client", "closed, registered first"]
    assert "on_shutdown hook" in caplog.text
    assert "half closed" in caplog.text


async def test_the_harness_runs_hooks_once() -> None:
    app, said = application()
    async with Harness(app) as harness:
        job = await app.submit("call")
        assert await harness.drain() == 1
        assert await harness.drain() == 0
        assert (await app.get(job)).state is State.COMPLETED
    assert said == ["opened", "loaded", "ran", "closed client", "closed, registered first"]


def test_a_hook_that_cannot_be_called_is_refused_where_it_is_named() -> None:
    app = Headrace("memory:")
    with pytest.raises(InvalidInput, match="must take no arguments, and takes client"):
        app.on_startup(lambda client: client)  # type: ignore[type-var]
    with pytest.raises(InvalidInput, match="on_shutdown takes a function"):
        app.on_shutdown("close")  # type: ignore[type-var]
