"""What a worker does with the jobs it runs, on every store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from headrace import (
    Context,
    Headrace,
    Job,
    JobManager,
    JobSpec,
    PermanentError,
    Policies,
    Policy,
    Snooze,
    State,
    SyncContext,
    TemporaryError,
)
from headrace.errors import StaleToken
from headrace.model import Category, Lease
from headrace.worker import Settings, Worker
from tests.worker.running import PATIENCE_SECONDS, kinds, reached, until, working

SHORT_LEASE = Policy(lease_seconds=2.0)


async def test_a_job_longer_than_its_lease_runs_once(store_url: str) -> None:
    app = Headrace(store_url, policies=SHORT_LEASE)
    runs = []

    @app.task
    async def long() -> str:
        runs.append(1)
        await asyncio.sleep(4.4)
        return "done"

    @app.task
    async def block() -> str:
        runs.append(1)
        time.sleep(4.4)  # noqa: ASYNC251 - a handler that does what it must not
        return "done"

    async with app, working(app), working(app):
        jobs = [await long.submit(), await block.submit()]
        assert [await app.wait(job, 30) for job in jobs] == ["done", "done"]
        assert len(runs) == 2
        for job in jobs:
            assert await kinds(app, job) == ["enqueued", "leased", "completed"]


async def test_all_of_many_jobs_end_completed(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    @app.task
    def double_in_thread(n: int) -> int:
        return 2 * n

    async with app, working(app, concurrency=20):
        specs = [task.spec(n) for n in range(150) for task in (double, double_in_thread)]
        jobs = await app.submit_many(specs)
        await app.wait(jobs[-1], 30)
        manager = await app.manager()

        async def all_done() -> bool:
            return (await manager.stats()).states[State.COMPLETED] == len(jobs)

        await until(all_done)
        assert [job.result for job in await manager.get_many([job.id for job in jobs])] == [
            2 * n for n in range(150) for _ in range(2)
        ]


async def test_failures_snoozes_and_bad_results(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task
    async def act(ctx: Context, how: str) -> Any:
        match how:
            case "temporary":
                raise TemporaryError("busy", retry_after=3600)
            case "permanent":
                raise PermanentError("no such row", code="NO_ROW")
            case "snooze":
                ctx.snooze(3600)
            case "raise snooze":
                raise Snooze(3600)
            case "object":
                return object()
            case "bad submission":
                await act.submit(object())
            case "cancel":
                raise asyncio.CancelledError
            case _:
                raise SystemExit(3)
        return None

    async with app, working(app):
        jobs = {
            how: await act.submit(how)
            for how in (
                "temporary",
                "permanent",
                "snooze",
                "raise snooze",
                "object",
                "bad submission",
                "cancel",
                "exit",
            )
        }
        wrong = await (await app.manager()).submit(JobSpec(type="act", payload={"how": 3}))
        ended = {}
        for how, job in {**jobs, "wrong": wrong.job}.items():
            ended[how] = await reached(
                app, job, State.RETRYING, State.FAILED, State.DEAD, State.COMPLETED
            )
    temporary = ended["temporary"]
    assert temporary.state is State.RETRYING
    assert temporary.failures == 1
    assert (temporary.run_at - temporary.updated_at).total_seconds() == 3600
    assert ended["permanent"].state is State.FAILED
    assert ended["permanent"].failure is not None
    assert ended["permanent"].failure.code == "NO_ROW"
    for how in ("snooze", "raise snooze"):
        assert ended[how].state is State.RETRYING
        assert ended[how].failures == 0
    assert ended["object"].state is State.FAILED
    assert _code(ended["object"]) == "invalid_result"
    assert _code(ended["wrong"]) == "invalid_arguments"
    assert ended["wrong"].state is State.FAILED
    assert _code(ended["bad submission"]) == "InvalidPayload"  # the handler's own failure
    assert ended["bad submission"].state is State.RETRYING
    assert _code(ended["cancel"]) == "CancelledError"
    assert _code(ended["exit"]) == "SystemExit"


def _code(job: Job) -> str | None:
    assert job.failure is not None
    return job.failure.code


async def test_the_context_tells_and_is_told(store_url: str) -> None:
    app = Headrace(store_url)
    seen: list[Any] = []

    @app.task(max_attempts=3, retry=None)
    async def step(ctx: Context) -> None:
        previous = ctx.previous
        seen.append((ctx.attempt, ctx.last_checkpoint, previous and previous.failures))
        assert Context.current() is ctx
        assert ctx.token.startswith(f"{ctx.attempt}.")
        await ctx.progress(0.5, "half")
        ctx.log("at work", attempt=ctx.attempt)
        if ctx.attempt == 1:
            await ctx.checkpoint({"row": 7})
            await ctx.spawn(child.spec(), child.spec())
            raise TemporaryError("again", retry_after=0)

    @app.task(queue="other")
    async def child() -> None: ...

    async with app, working(app, queues=["default"]):
        job = await step.submit()
        await app.wait(job, 30)
        ended = await app.get(job)
        assert seen == [(1, None, None), (2, {"row": 7}, 1)]
        assert (ended.progress, ended.progress_note) == (0.5, "half")
        assert [(line["attempt"], line["text"]) for line in ended.log] == [
            (1, "at work"),
            (2, "at work"),
        ]
        spawned = await (await app.manager()).find(queues=["other"])
        assert [one.parent_id for one in spawned.jobs] == [job.id] * 2
        assert all(one.state is State.PENDING for one in spawned.jobs)  # not this worker's queue


async def test_unknown_types_are_left_waiting(store_url: str) -> None:
    old = Headrace(store_url)
    ran = []

    @old.task(name="send")
    async def send_old(to: str) -> None:
        ran.append(to)

    async with old:
        manager = await old.manager()
        new = await manager.submit_many(
            [JobSpec(type="send@2", payload={"address": "x"}), JobSpec(type="brand_new")]
        )
        assert await Worker(old, Settings(maintenance=False)).drain() == 0
        assert all(
            job.state is State.PENDING
            for job in await manager.get_many([job.id for job in new.jobs])
        )
        await send_old.submit("ada")
        assert await Worker(old, Settings(maintenance=False)).drain() == 1
    assert ran == ["ada"]


async def test_a_handler_past_its_timeout_is_stopped_and_retried(store_url: str) -> None:
    app = Headrace(store_url)
    stopped = []

    @app.task(timeout=0.3, max_attempts=2)
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    @app.task(max_attempts=1)
    async def hurry(ctx: Context) -> None:
        ctx.shorten_timeout(0.2)
        await asyncio.sleep(60)

    @app.task(timeout=0.3, max_attempts=1)
    def slow_in_thread() -> None:
        while True:
            time.sleep(0.01)

    async with app, working(app):
        jobs = [await slow.submit(), await hurry.submit(), await slow_in_thread.submit()]
        first = await reached(app, jobs[0], State.RETRYING)
        assert stopped == [1]
        for job in (first, *[await reached(app, job, State.DEAD) for job in jobs[1:]]):
            assert job.failure is not None
            assert job.failure.category is Category.TIMEOUT
            assert job.failure.code == "execution_timeout"


async def test_cancelling_stops_async_and_thread_handlers_within_a_second(store_url: str) -> None:
    app = Headrace(store_url)
    began: list[str] = []
    stopped: list[str] = []

    @app.task
    async def on_loop() -> None:
        began.append("loop")
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append("loop")

    @app.task
    def in_thread() -> None:
        began.append("thread")
        try:
            while True:
                time.sleep(0.01)
        finally:
            stopped.append("thread")

    @app.task
    def polite(ctx: SyncContext) -> str:
        began.append("polite")
        while not ctx.is_cancelled:
            time.sleep(0.01)
        stopped.append("polite")
        return "stopped when asked"

    async with app, working(app, watch_seconds=Settings().watch_seconds):
        jobs = [await task.submit() for task in (on_loop, in_thread, polite)]
        await until(lambda: len(began) == 3)
        asked = time.monotonic()
        await (await app.manager()).cancel([job.id for job in jobs])
        await until(lambda: len(stopped) == 3)
        assert time.monotonic() - asked < 2  # a second, and one for a busy machine
        for job in jobs:
            ended = await reached(app, job, State.CANCELLED, State.COMPLETED)
            if job is not jobs[2]:
                assert ended.state is State.CANCELLED


async def test_a_voided_lease_stops_the_handler_and_its_result_is_refused(store_url: str) -> None:
    app = Headrace(store_url)
    began = asyncio.Event()
    refused: list[BaseException] = []

    @app.task
    async def work(ctx: Context) -> str:
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            try:
                await ctx.progress(0.9)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
                refused.append(error)
        return "too late"

    async with app, working(app, isolate_suspects=False) as worker:
        job = await work.submit()
        await began.wait()
        manager = await app.manager()
        await manager.pause("default")  # nobody claims it again
        await manager.expire_worker(worker.name)
        await until(lambda: bool(refused))
        ended = await app.get(job)
    assert ended.state is State.LOST
    assert ended.losses == 1
    assert isinstance(refused[0], StaleToken)


async def test_a_handler_stops_when_its_lease_lapses_though_the_store_says_nothing(
    store_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By then somebody else, who does reach the store, may run the job."""
    app = Headrace(store_url, policies=SHORT_LEASE)
    stopped = asyncio.Event()

    @app.task
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    async def unanswered(manager: JobManager, held: Sequence[Lease]) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(JobManager, "heartbeat", unanswered)
    async with app, working(app, maintenance=False):
        job = await work.submit()
        await asyncio.wait_for(stopped.wait(), PATIENCE_SECONDS)
        assert await kinds(app, job) == ["enqueued", "leased"], "only the time has told it"
    assert "cannot reach the store: it did not answer in time" in caplog.text


@pytest.mark.parametrize("grace", [0.0, 30.0])
async def test_stopping_finishes_or_gives_back_at_no_cost(store_url: str, grace: float) -> None:
    app = Headrace(store_url, policies=Policies(default=Policy(max_attempts=1)))
    began = asyncio.Event()

    @app.task
    async def work(n: int) -> str:
        began.set()
        await asyncio.sleep(1.0)
        return "finished"

    async with app:
        async with working(app, concurrency=2, grace_seconds=grace) as worker:
            jobs = await app.submit_many([work.spec(n) for n in range(6)])
            await began.wait()
            worker.stop()
        ended = await (await app.manager()).get_many([job.id for job in jobs])
    assert all(job.failures == 0 and job.losses == 0 for job in ended)
    finished = [job for job in ended if job.state is State.COMPLETED]
    waiting = [job for job in ended if job.state in (State.PENDING, State.RETRYING)]
    assert len(finished) + len(waiting) == 6
    assert len(finished) == (2 if grace else 0)


async def test_priorities_decide_what_starts_first() -> None:
    app = Headrace("memory:")
    order: list[int] = []

    @app.task
    async def note(n: int) -> None:
        order.append(n)

    async with app:
        for n in (4, 0, 2, 1, 3):
            await note.options(priority=n).submit(n)
        await Worker(app, Settings(concurrency=1, batch=1, maintenance=False)).drain()
    assert order == [0, 1, 2, 3, 4]
