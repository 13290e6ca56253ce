"""Something that moves while a long command works: on a terminal only, and gone when it is done."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from headrace.cli.settings import Settings

QUIET_SECONDS = 0.3
"""What takes no longer than this shows nothing: a bar that flashes up tells nobody anything."""


class Bar:
    """How far a command is, on the error stream. Silent for programs: into a pipe, or with --json."""

    def __init__(self, doing: str, of_what: str = "jobs") -> None:
        self._doing = doing
        self._of_what = of_what
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            disable=not sys.stderr.isatty() or _wants_json(),
        )
        self._task = self._progress.add_task(doing, total=None)
        self._starts_at = time.monotonic() + QUIET_SECONDS
        self._started = False

    def show(self, done: int, total: int | None = None, *, fraction: float | None = None) -> None:
        """So many of them are done, of a total if it is known; else `fraction` is how far that is."""
        if total is not None:
            fraction = done / total if total else 1.0
        of = "" if total is None else f" of {total:,}"
        self.say(f"{self._doing}, {done:,}{of} {self._of_what}", fraction)

    def say(self, doing: str, fraction: float | None = None) -> None:
        """What goes on now, in words of its own. Without a `fraction` the bar moves by itself."""
        (task,) = self._progress.tasks
        task.total = None if fraction is None else 1.0  # by `update` it would never be None again
        self._progress.update(self._task, description=doing, completed=fraction or 0.0)
        if time.monotonic() >= self._starts_at:
            self.start()

    def start(self) -> None:
        if not self._started and not self._progress.disable:
            self._started = True
            self._progress.start()

    def stop(self) -> None:
        if self._started:
            self._progress.stop()


@contextmanager
def progress(doing: str, of_what: str = "jobs") -> Iterator[Bar]:
    """A bar while the block lasts, if that is for long. It moves by itself until it is told how far it is."""
    bar = Bar(doing, of_what)
    try:
        later = asyncio.get_running_loop().call_later(QUIET_SECONDS, bar.start)
    except RuntimeError:
        later = None  # options are read before there is a loop
    try:
        yield bar
    finally:
        if later is not None:
            later.cancel()
        bar.stop()


def _wants_json() -> bool:
    ctx = click.get_current_context(silent=True)
    settings = None if ctx is None else ctx.find_object(Settings)
    return settings is not None and settings.json
