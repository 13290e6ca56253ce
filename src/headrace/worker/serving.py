"""A worker as a process: signals in, exit code out."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
import time
from typing import NoReturn

from headrace.app import Headrace
from headrace.errors import HeadraceError
from headrace.worker.probes import WorkerProbe
from headrace.worker.settings import Settings
from headrace.worker.supervisor import SUPERVISED_VARIABLE
from headrace.worker.threads import threads_are_stuck
from headrace.worker.worker import Worker

logger = logging.getLogger("headrace.worker")

ENDED_NOW = 1
ENDED_BY_ERROR = 1
_SAME_SECONDS = 0.5
"""Signals closer together are one: a service manager may signal us and our supervisor, who passes it on."""
_STANDARD_INPUT = 0
_COLLECTOR_THRESHOLDS = (50_000, 20, 100)


def serve(app: Headrace, settings: Settings, probe: WorkerProbe | None = None) -> int:
    """Work until SIGTERM or SIGINT: finish within the grace period. A second signal ends at once.

    An error of the worker itself ends it with ENDED_BY_ERROR, once it has given back what it held. What
    Headrace raises, such as StoreUnavailable, is the caller's to tell.
    """
    tune_gc()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        code = runner.run(_serve(app, settings, probe))
    if threads_are_stuck():
        _end(code)  # Python would wait for them at exit, without end
    return code


def _end(code: int) -> NoReturn:
    logging.shutdown()
    os._exit(code)


async def _serve(app: Headrace, settings: Settings, probe: WorkerProbe | None) -> int:
    worker = Worker(app, settings)
    if probe is not None:
        probe.attach(worker)
    loop = asyncio.get_running_loop()
    first: float | None = None

    def signalled(*_: object) -> None:
        """Between two steps of Python, whatever holds up the loop."""
        nonlocal first
        now = time.monotonic()
        if first is None:
            first = now
            loop.call_soon_threadsafe(worker.stop)
        elif now - first > _SAME_SECONDS:
            # Leases lapse, as they would after a crash; nothing here may take time any more.
            os._exit(ENDED_NOW)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signalled)
    if os.environ.get(SUPERVISED_VARIABLE):
        _follow_supervisor(loop, worker)
    code = 0
    try:
        await worker.run()
    except Exception as error:
        stuck = worker.has_left_behind
        if isinstance(error, HeadraceError) and not stuck:
            raise
        code = ENDED_BY_ERROR
        logger.critical(
            "worker %s ends by an error, exit code %d; its jobs were given back where the store could be "
            "reached, the others run again when their leases lapse",
            worker.name,
            code,
            exc_info=True,
        )
    finally:
        await app.close()
    if worker.has_left_behind:
        _end(code)  # the loop would wait for them without end
    return code


def tune_gc() -> None:
    """Look for cycles of garbage less often.

    Jobs, changes and events are many and short-lived, and none of them is part of a cycle: with Python's
    own settings a third of a busy worker's time goes into walking over them.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)


def _follow_supervisor(loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
    """The supervisor holds our standard input: when it is gone, so are we, in good order."""

    def wait() -> None:
        # Not through sys.stdin: its lock, held by this thread, would abort the end of the process.
        while os.read(_STANDARD_INPUT, 1):
            pass
        loop.call_soon_threadsafe(worker.stop)

    threading.Thread(target=wait, name="headrace-supervised", daemon=True).start()


def loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: headrace[fast]."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return uvloop.Loop
