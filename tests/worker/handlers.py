"""Handlers at the top of a module, where child processes find them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

from headrace import Context, Headrace, PermanentError, SyncContext, TemporaryError


def make_app(url: str, **options: Any) -> Headrace:
    """The handlers of this module on a store; the tasks stay the module's own."""
    app.url = url
    for name, value in options.items():
        setattr(app, name, value)
    return app


app = Headrace("memory:")


@app.task(isolation="process")
def in_child(ctx: SyncContext, n: int) -> dict[str, int]:
    ctx.progress(0.5, "half way")
    ctx.log("counted", n=n)
    ctx.checkpoint({"n": n})
    return {"n": n, "pid": os.getpid()}


@app.task(isolation="process")
async def async_in_child(ctx: Context, n: int) -> int:
    await ctx.progress(0.25)
    await asyncio.sleep(0)
    return n + 1


@app.task(isolation="process")
def sleep_in_child(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - plain, in a child
        file.write(str(os.getpid()))
    time.sleep(60)


@app.task(isolation="process", max_attempts=1)
def eat_memory() -> int:
    return len(bytearray(4 << 30))


@app.task(isolation="process")
def raise_in_child(kind: str) -> None:
    match kind:
        case "temporary":
            raise TemporaryError("later", retry_after=7200)
        case "permanent":
            raise PermanentError("never", code="NO_SUCH_ROW")
        case "timeout":
            raise TimeoutError("slow")
        case _:
            raise KeyError("x")


@app.task(isolation="process", max_attempts=1)
def fail_deep_in_child(depth: int) -> None:
    if depth:
        fail_deep_in_child.function(depth - 1)
    raise KeyError("customer")


@app.task(isolation="process", max_attempts=3)
async def look_around(ctx: Context, n: int) -> list[Any]:
    await ctx.checkpoint({"n": n})
    assert ctx.deadline is not None
    assert ctx.remaining_seconds is not None
    return [ctx.app is app, ctx.last_checkpoint, ctx.deadline > ctx.clock.now(), ctx.previous]


@app.task(isolation="process", max_attempts=3)
def bad_result() -> object:
    return object()


@app.task
async def die_if_asked(die: bool) -> str:
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(0.3)
    return "lived"


@app.task
async def plain(n: int) -> int:
    return n + 1


@app.task(isolation="process")
def sum_in_child(ctx: SyncContext, batch: dict[str, Any]) -> int:
    return sum(one.result for one in ctx.batch_results())


@app.task(isolation="process")
async def async_sum_in_child(ctx: Context, batch: dict[str, Any]) -> int:
    return sum([one.result async for one in ctx.batch_results()])
