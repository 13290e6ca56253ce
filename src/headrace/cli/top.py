"""`headrace top`: queues, rates, workers and failures, as they are now and again every second."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from headrace.cli.exits import Exit, one_line
from headrace.cli.keyboard import on_keys
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.top_controls import Controls
from headrace.cli.top_frame import Frame, Watch
from headrace.cli.top_view import lines
from headrace.cli.values import SECONDS
from headrace.errors import StoreClosed, StoreError

INTERVAL_SECONDS_MIN = 0.1
_DUMB = ("dumb", "unknown")


def _check(*, interval: float, **_: object) -> None:
    if interval < INTERVAL_SECONDS_MIN:
        raise click.UsageError(f"--interval is {INTERVAL_SECONDS_MIN * 1000:.0f}ms at least")


@command(
    "top",
    examples=("headrace top", "headrace top --interval 5s", "headrace top --once --json"),
)
@click.option(
    "--interval",
    type=SECONDS,
    default="1s",
    show_default=True,
    metavar="DURATION",
    help="How often to look.",
)
@click.option("--once", is_flag=True, help="Watch for one interval, print what was seen, and end.")
@in_session(check=_check)
async def top(session: Session, *, interval: float, once: bool) -> Exit:
    """Watch queues, rates, workers and failures; q or Ctrl-C ends it.

    Arrow keys choose a queue, p pauses or resumes it, s sorts, / filters.

    Where the output is no terminal, or with --json, it is one frame, or one JSON object on a line, per
    interval.
    """
    watch = Watch(session.jobs)
    await watch.begin()
    stop = asyncio.Event()
    with _signals(stop):
        if once or session.out.as_json or not _is_screen():
            await _print_frames(session, watch, stop, interval, once=once)
        else:
            await _show(session, watch, stop, interval)
    return Exit.OK


async def _print_frames(
    session: Session, watch: Watch, stop: asyncio.Event, interval: float, *, once: bool
) -> None:
    """Each after the interval that it tells of."""
    first = True
    while not await _stopped(stop, interval):
        frame = await watch.frame()
        if not session.out.as_json:
            if not first:
                session.out.text()
            for line in lines(frame, session.settings.shown_url, session.out.width):
                session.out.text(line)
            sys.stdout.flush()
        elif once:
            session.out.document(frame)
        else:
            session.out.line(frame)
        if once:
            return
        first = False


async def _show(session: Session, watch: Watch, stop: asyncio.Event, interval: float) -> None:
    """On the terminal's other screen, until it is told to stop. An outage of the store is sat out."""
    console = Console(markup=False, highlight=False, emoji=False)
    controls = Controls()
    touched = asyncio.Event()
    frame: Frame | None = None
    looked = -interval

    def hear(pressed: str) -> None:
        controls.hear(pressed)
        touched.set()
        if controls.quit:
            stop.set()

    with (
        on_keys(hear),
        Live(console=console, screen=True, auto_refresh=False, transient=True) as live,
    ):
        while True:
            touched.clear()
            trouble = []
            try:
                switched = await _carry_out(session, controls)
                if switched or frame is None or time.monotonic() - looked >= interval:
                    looked = time.monotonic()
                    frame = await watch.frame()
            except StoreClosed:
                raise
            except StoreError as error:
                trouble = [Text(f"the store does not answer: {one_line(error.message)}", "red")]
            width, height = console.size
            place = session.settings.shown_url
            shown = [] if frame is None else lines(frame, place, width, height, controls)
            live.update(Group(*trouble, *shown), refresh=True)
            if await _stopped(stop, looked + interval - time.monotonic(), touched):
                return


async def _carry_out(session: Session, controls: Controls) -> bool:
    """Pause or resume what was confirmed; whether there was something to do."""
    switch = controls.take()
    if switch is None:
        return False
    if switch.pause:
        await session.jobs.pause(switch.queue)
        controls.note = f"{switch.queue} is paused"
    elif await session.jobs.resume(switch.queue):
        controls.note = f"{switch.queue} goes on"
    else:
        controls.note = "it is paused for one tenant: headrace resume --tenant"
    return True


async def _stopped(
    stop: asyncio.Event, seconds: float, touched: asyncio.Event | None = None
) -> bool:
    """Wait so long, or until it is time to stop, or a key was pressed."""
    waits = [asyncio.ensure_future(one.wait()) for one in (stop, touched) if one is not None]
    try:
        await asyncio.wait(waits, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
    return stop.is_set()


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """To be ended is how this command ends: with exit code 0."""
    loop = asyncio.get_running_loop()
    handled = []
    with contextlib.suppress(NotImplementedError):  # Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _is_screen() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") not in _DUMB
