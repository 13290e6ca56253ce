"""The harness that users test their applications with."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest

from headrace import Context, Headrace, State, SyncContext, TemporaryError
from headrace.clock import ManualClock
from headrace.schedules import Every
from headrace.testing import Crash, Harness

app = Headrace("sqlite:///never-made.db")
charged: list[str] = []


@app.task(max_attempts=3)
async def charge(ctx: Context, card: str, pence: int = 100) -> str:
    charged.append(ctx.token)
    if card == "busy" and ctx.attempt < 3:
        raise TemporaryError("busy", retry_after=3600)
    return f"{card}: {pence}"


@app.task
def receipt(card: str) -> None: ...


@app.task(isolation="process")
def convert(ctx: SyncContext, card: str) -> int:
    ctx.progress(0.5)
    ctx.spawn(receipt.spec(card))
    return os.getpid()


@app.task(isolation="process")
async def convert_async(card: str) -> int:
    await charge.submit(card)  # in a child, this would reach the real store
    return os.getpid()


@app.task
async def buy(ctx: Context, card: str) -> None:
    await charge.submit(card)
    await ctx.spawn(receipt.spec(card))


@pytest.fixture(autouse=True)
def _fresh() -> None:
    charged.clear()


async def test_what_was_submitted_is_known_and_nothing_ran() -> None:
    async with Harness(app) as harness:
        await charge.submit("4000", pence=5)
        harness.assert_submitted(charge, card="4000")
        harness.assert_submitted(charge, card="4000", pence=5)
        harness.assert_not_submitted(charge, card="5000")
        harness.assert_not_submitted(receipt)
        with pytest.raises(AssertionError, match=r"charge\(card='4000', pence=5\)"):
            harness.assert_submitted(charge, card="5000")
    assert charged == []
    assert app.url == "sqlite:///never-made.db"
    assert app.middleware == ()


async def test_draining_runs_what_jobs_bring_along() -> None:
    async with Harness(app) as harness:
        job = await buy.submit("4000")
        assert await harness.drain() == 3
        assert (await app.get(job)).state is State.COMPLETED
        assert len(charged) == 1
        harness.assert_submitted(receipt, card="4000")  # spawned ones count, too


async def test_inline_has_run_when_submit_returns() -> None:
    async with Harness(app, inline=True):
        job = await charge.submit("4000", pence=7)
        assert job.state is State.COMPLETED
        assert await app.result(job) == "4000: 7"
        assert (await buy.submit("4001")).state is State.COMPLETED


async def test_hours_of_retries_take_no_time() -> None:
    began = time.monotonic()
    async with Harness(app) as harness:
        job = await charge.submit("busy")
        assert await harness.drain() == 1
        assert await harness.advance(3599) == 0
        assert await harness.advance(1) == 1
        assert await harness.advance(3600) == 1
        assert await app.result(job) == "busy: 100"
    assert time.monotonic() - began < 5


async def test_a_crash_after_the_side_effect_runs_it_again_under_another_token() -> None:
    began = time.monotonic()
    async with Harness(app) as harness:
        job = await charge.submit("4000")
        assert await harness.crash() == 1
        assert (await app.get(job)).state is State.RUNNING
        assert await harness.recover() == 1
        ended = await app.get(job)
    assert ended.state is State.COMPLETED
    assert (ended.attempt, ended.losses) == (2, 1)
    assert len(set(charged)) == 2  # the outside system can tell the two apart by their token
    assert time.monotonic() - began < 5


async def test_a_crash_before_the_handler_runs_it_once() -> None:
    async with Harness(app) as harness:
        await charge.submit("4000")
        assert await harness.crash(Crash.BEFORE_HANDLER) == 1
        assert await harness.recover() == 1
    assert len(charged) == 1


async def test_tasks_of_child_processes_stay_in_this_one() -> None:
    async with Harness(app) as harness:
        jobs = [await convert.submit("4000"), await convert_async.submit("4001")]
        assert await harness.drain() == 4
        assert [await app.result(job) for job in jobs] == [os.getpid()] * 2
        harness.assert_submitted(receipt, card="4000")
        harness.assert_submitted(charge, card="4001")


async def test_schedules_fire_when_time_passes() -> None:
    clock = ManualClock()
    async with Harness(app, clock=clock) as harness:
        await app.schedule("hourly", Every(3600.0), charge.spec("4000"))
        assert [await harness.advance(1800) for _ in range(4)] == [0, 1, 0, 1]
        assert clock.now() - ManualClock().now() == timedelta(hours=2)
