"""Waiting for the jobs of an enrichment, with a look at the store now and then."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Self

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from headrace.errors import Contention, StoreUnavailable
from headrace.manager import JobManager
from headrace.model import LEASED, TERMINAL, Job, State
from headrace.spark.enrichment.request import Request

logger = logging.getLogger("headrace.enrich")

_LOOK_COST = 10
"""Counting costs as much as there are jobs: it takes at most a tenth of the time."""
_LONELY_SECONDS = 15.0
_SEEN = timedelta(seconds=30)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of the enrichment are where."""

    total: int
    completed: int
    failed: int
    """Failed, dead, cancelled or abandoned."""
    running: int
    waiting: int

    @property
    def done(self) -> int:
        return self.completed + self.failed


OnProgress = Callable[[Progress], None]


class Bar:
    """A bar on the error stream, if that is a terminal."""

    def __init__(self, doing: str) -> None:
        self._rich = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._doing = doing
        self._task = self._rich.add_task(doing, total=None)

    def __enter__(self) -> Self:
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def show(self, progress: Progress) -> None:
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        self._rich.update(
            self._task,
            description=f"{self._doing}{failed}",
            completed=progress.done,
            total=progress.total,
        )


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of the enrichment there are, and between which numbers."""

    jobs: int
    first_seq: int
    last_seq: int
    first: Job | None = None
    """One of them, for what all have in common."""


async def found_jobs(manager: JobManager, request: Request) -> Found:
    ends = [
        (await manager.find(tags=[request.tag], limit=1, newest_first=newest)).jobs
        for newest in (False, True)
    ]
    if not all(ends):
        return Found(jobs=0, first_seq=0, last_seq=0)
    first, last = (jobs[0] for jobs in ends)
    jobs = (await counted(manager, request)).total
    return Found(jobs=jobs, first_seq=first.seq, last_seq=last.seq, first=first)


async def counted(manager: JobManager, request: Request) -> Progress:
    states = (await manager.stats(tags=[request.tag])).states
    completed = states[State.COMPLETED]
    ended = sum(states[state] for state in TERMINAL)
    running = sum(states[state] for state in LEASED)
    total = sum(states.values())
    return Progress(
        total=total,
        completed=completed,
        failed=ended - completed,
        running=running,
        waiting=total - ended - running,
    )


async def wait(
    manager: JobManager,
    request: Request,
    *,
    timeout: float | None,
    poll_seconds: float,
    on_progress: OnProgress,
    check: Callable[[], None],
) -> Progress:
    """Until every job of the enrichment has ended. Raises TimeoutError: they go on.

    `check` is called at every look, and raises if nothing will come any more. A store that is away is waited
    for: the jobs are safe there, and whoever runs them waits, too.
    """
    began = time.monotonic()
    lonely_seconds = _LONELY_SECONDS
    first = now = None
    while True:
        look = time.monotonic()
        try:
            now = await counted(manager, request)
            first = first or now
            on_progress(now)
            if now.done == now.total:
                return now
            if look - began > lonely_seconds:
                is_served = await _is_served(manager, request)
                lonely_seconds = float("inf") if is_served else 2 * lonely_seconds
        except (Contention, StoreUnavailable) as error:
            logger.warning("enrichment %s waits for its store: %s", request.name, error)
        cost = time.monotonic() - look
        check()
        passed = time.monotonic() - began
        if timeout is not None and passed > timeout:
            raise TimeoutError(
                f"{_open(now)} of enrichment {request.name} have not ended within {timeout:g} s; they go on: "
                "call enrich again to wait for them"
            )
        # As often as asked for, not so often that counting becomes the work, and in time for the end.
        pause = max(poll_seconds, min(_LOOK_COST * cost, _seconds_left(first, now, passed)))
        if timeout is not None:
            pause = min(pause, max(timeout - passed, 0.0) + 0.01)
        await asyncio.sleep(pause)


def _open(now: Progress | None) -> str:
    return "jobs" if now is None else f"{now.total - now.done} of {now.total} jobs"


def _seconds_left(first: Progress | None, now: Progress | None, passed: float) -> float:
    if first is None or now is None:
        return float("inf")
    came = now.done - first.done
    return float("inf") if came <= 0 else passed / came * (now.total - now.done)


async def _is_served(manager: JobManager, request: Request) -> bool:
    """Whether some worker asks for such jobs; says so if none does."""
    template = request.template
    seen = await manager.workers(manager.clock.now() - _SEEN)
    served = any(
        (one.queues is None or template.queue in one.queues)
        and (one.types is None or template.type in one.types)
        for one in seen
    )
    if not served:
        logger.warning(
            "no worker asks for jobs of type %s on queue %s: enrichment %s waits for one",
            template.type,
            template.queue,
            request.name,
        )
    return served
