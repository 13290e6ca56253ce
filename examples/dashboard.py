"""The dashboard over a store, with a worker that goes on: the end of `make demo`.

    python examples/dashboard.py sqlite:///jobs.db

serves the store's pages on this machine and runs a worker, so that there is something to see. On a terminal
it goes on until Ctrl-C. Elsewhere it ends by itself after some seconds, with a picture of the first page
where Chromium is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn
from rich.console import Console

from headrace import Context, Headrace, JobManager, JobSpec, PermanentError, TemporaryError
from headrace.dashboard import pages
from headrace.server import create_app
from headrace.worker import Settings, Worker

PORT = 8300
SECONDS = 8.0
"""How long it goes on where nobody looks."""
EVERY_SECONDS = 0.7
DICE = random.Random(11)

console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
app = Headrace()


@app.task(name="send_email", queue="mail")
async def send_email(number: int) -> str:
    await asyncio.sleep(DICE.uniform(0.1, 0.6))
    if number % 11 == 0:
        raise TemporaryError("the mail server is busy")
    return f"sent {number}"


@app.task(name="resize", queue="images", max_attempts=2)
async def resize(number: int, ctx: Context) -> None:
    for part in range(1, 11):
        await asyncio.sleep(DICE.uniform(0.05, 0.2))
        await ctx.progress(part / 10, f"tile {part} of 10")
    if number % 7 == 0:
        raise PermanentError(f"the image {number} is 0 bytes", code="empty_image")


async def submit(jobs: JobManager) -> None:
    """A few jobs, again and again: the work of a small service."""
    number = 0
    while True:
        number += 1
        await jobs.submit(JobSpec(type="send_email", queue="mail", payload={"number": number}))
        if number % 3 == 0:
            await jobs.submit(JobSpec(type="resize", queue="images", payload={"number": number}))
        await asyncio.sleep(EVERY_SECONDS)


def port() -> int:
    """The usual one, or another if that is taken."""
    for wanted in (PORT, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", wanted))
            free: int = probe.getsockname()[1]
            return free
    raise OSError("no port is free on this machine")


async def serve(jobs: JobManager, at: int, until: Callable[[], asyncio.Task[None]]) -> None:
    """The pages, until this is over."""
    application = create_app(jobs, open_to_all=True, pages=pages)
    server = uvicorn.Server(
        uvicorn.Config(application, port=at, log_level="error", timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    over = until()
    await asyncio.wait({serving, over}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving
    over.cancel()


async def picture(url: str, folder: Path) -> None:
    """Of the first page, by a browser without a window; nothing where there is none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        console.print("  no Chromium here, so no picture")
        return
    file = folder / "dashboard.png"
    words = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--hide-scrollbars")
    drawn = await asyncio.create_subprocess_exec(
        *(browser, *words, "--window-size=1400,1500", "--virtual-time-budget=3000"),
        *(f"--screenshot={file}", url),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            await drawn.wait()
    except TimeoutError:
        drawn.kill()
    console.print(f"  {file}" if file.exists() else "  Chromium gave no picture", soft_wrap=True)


async def main(url: str) -> None:
    app.url = url
    at = port()
    address = f"http://127.0.0.1:{at}/"
    worker = Worker(app, Settings(concurrency=6), name="worker-demo")
    async with await app.connect() as jobs:
        work = asyncio.create_task(worker.run())
        feed = asyncio.create_task(submit(jobs))
        console.print("\n[bold]The dashboard")
        console.print(f"  [cyan]{address}[/]")

        async def watched() -> None:
            if sys.stdout.isatty():
                console.print("  a worker goes on; Ctrl-C ends it")
                await asyncio.Event().wait()
            await asyncio.sleep(SECONDS)
            await picture(address, Path(url.removeprefix("sqlite:///")).parent)

        try:
            await serve(jobs, at, lambda: asyncio.create_task(watched()))
        finally:
            feed.cancel()
            worker.stop()
            await work


if __name__ == "__main__":
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///headrace.db"))
