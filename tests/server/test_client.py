"""`Headrace("http://…", token=…)`: the same application as producer and as worker, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from headrace import Context, Headrace, Worker, WorkerSettings
from headrace.connect import connect
from headrace.errors import Forbidden, JobFailed, JobNotFound, StoreUnavailable, Unauthenticated
from headrace.model import State
from headrace.server import create_app
from headrace.spec import JobSpec
from tests.server.conftest import Server, listening


@pytest.fixture
async def server(store_url: str) -> AsyncIterator[Server]:
    manager = await connect(store_url)
    served = Server(manager, create_app(manager))
    yield served
    await served.close()


async def test_an_application_submits_works_and_waits_over_http(server: Server) -> None:
    async with listening(server.application) as url:
        app = Headrace(url, token=await server.token(tenant="acme"))

        @app.task
        async def add(context: Context, a: int, b: int) -> int:
            await context.progress(0.5, "half")
            await context.checkpoint({"a": a})
            return a + b

        @app.task(max_attempts=1)
        def fail() -> None:
            raise ValueError("no")

        async with app:
            worker = Worker(app, WorkerSettings(concurrency=4, poll_seconds=5))
            working = asyncio.create_task(worker.run())
            jobs = [await app.submit(add, n, 2**60) for n in range(5)]
            async with asyncio.timeout(20):
                assert [await app.wait(job) for job in jobs] == [n + 2**60 for n in range(5)]
                with pytest.raises(JobFailed, match="no"):
                    await app.wait(await app.submit(fail))
            job = await app.get(jobs[0])
            assert (job.state, job.checkpoint, job.tenant) == (State.COMPLETED, {"a": 0}, "acme")
            found = [one.id async for one in app.find(tasks=[add])]
            assert found == [one.id for one in jobs]
            worker.stop()
            await asyncio.wait_for(working, 20)
    assert (await server.manager.stats()).states[State.COMPLETED] == 5


async def test_a_worker_is_told_of_a_cancellation(server: Server) -> None:
    async with listening(server.application) as url:
        app = Headrace(url, token=await server.token())
        started = asyncio.Event()

        @app.task
        async def sleep() -> None:
            started.set()
            await asyncio.sleep(60)

        async with app:
            worker = Worker(app, WorkerSettings(watch_seconds=0.2))
            working = asyncio.create_task(worker.run())
            job = await app.submit(sleep)
            await asyncio.wait_for(started.wait(), 10)
            await app.cancel(job)
            async with asyncio.timeout(20):
                while not (await app.get(job)).is_terminal:
                    await asyncio.sleep(0.05)
            assert (await app.get(job)).state is State.CANCELLED
            worker.stop()
            await asyncio.wait_for(working, 20)


async def test_errors_are_those_of_the_manager() -> None:
    manager = await connect("memory:")
    server = Server(manager, create_app(manager))
    try:
        async with listening(server.application) as url:
            async with await connect(url, token=await server.token("read", "read:payload")) as jobs:
                with pytest.raises(JobNotFound, match="nope") as caught:
                    await jobs.get("nope")
                assert caught.value.job_id == "nope"
                with pytest.raises(Forbidden):
                    await jobs.submit(JobSpec(type="t"))
            with pytest.raises(Unauthenticated):
                await connect(url, token="hdr_nonsense")
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await connect(url, token="x")
    finally:
        await server.close()


async def test_no_token_is_needed_where_the_server_asks_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADRACE_TOKEN", "")
    manager = await connect("memory:")
    server = Server(manager, create_app(manager, open_to_all=True))
    try:
        async with listening(server.application) as url, await connect(url) as jobs:
            job = (await jobs.submit(JobSpec(type="t"))).job
            assert (await manager.get(job.id)).type == "t"
    finally:
        await server.close()


async def test_an_operator_acts_for_one_tenant() -> None:
    manager = await connect("memory:")
    server = Server(manager, create_app(manager))
    try:
        async with (
            listening(server.application) as url,
            await connect(url, token=await server.token()) as jobs,
        ):
            job = (await jobs.scoped("acme").submit(JobSpec(type="t"))).job
            assert job.tenant == "acme"
            with pytest.raises(JobNotFound):
                await jobs.scoped("other").get(job.id)
    finally:
        await server.close()
