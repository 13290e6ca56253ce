"""What one task of a fleet does on its executor: load the application by name, and be a worker of it.

Nothing that a task says reaches the driver before it ends, so it speaks through the store. It ends in good
order when the stop flag is set, when another run takes over the name, and on SIGHUP, which Spark's daemon
sends when the executor or the driver is gone. Killed, its leases lapse, and Spark starts the task again.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.app import Headrace
from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.errors import HeadraceError, StoreError
from headrace.redaction import Redacted
from headrace.retry import doubling
from headrace.spark.fleet import record
from headrace.spark.fleet.names import Place, worker_name
from headrace.spark.fleet.record import FleetRecord, with_stop_flag
from headrace.stores.base import JobStore
from headrace.worker import Settings, Worker
from headrace.worker.loading import load_app
from headrace.worker.logs import configure
from headrace.worker.serving import loop_factory, tune_gc
from headrace.worker.threads import threads_are_stuck

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("headrace.fleet")

OUTCOME_SCHEMA = "task long, attempt int, failure string"
FLAG_SECONDS = 1.0
_SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
_QUICK_RESTARTS = 3
"""Restarts that come at once; later ones wait, so that what crashes its process does not do so in a hurry."""
_PAUSE_SECONDS_MAX = 30.0


class Order(Redacted, frozen=True, kw_only=True):
    """What the driver tells each task."""

    name: str
    run: str
    place: str
    url: str
    tenant: str | None
    settings: Settings
    folder: str
    """The driver's own: on the path, where the executor has it too."""
    keys: str | None
    """A key ring's file on the executor. None: what HEADRACE_KEYS holds there."""
    log_level: str | None
    """None: logging is left as it is."""


class StopSignal:
    """Whether, and why, the task must end: from a signal handler, or from the loop."""

    def __init__(self) -> None:
        self.why: str | None = None
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def end(self, why: str) -> None:
        self.why = self.why or why
        self._event.set()

    def signalled(self, number: int, _: object) -> None:
        self._loop.call_soon_threadsafe(self.end, signal.Signals(number).name)

    async def wait(self) -> None:
        await self._event.wait()

    async def sleep(self, seconds: float) -> None:
        """Not beyond the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()


def task_function(order: Order) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow over one row per task: works until told to end."""

    def serve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield _serve_one(order, task)

    return serve


def _serve_one(order: Order, task: int) -> pa.RecordBatch:
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    place = Place(task, 0 if context is None else context.attemptNumber())
    if order.log_level is not None:
        configure(as_json=False, level=order.log_level)
    with _tuned_gc(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        failure = runner.run(_work(order, place))
    if threads_are_stuck():
        _leave()
    return pa.RecordBatch.from_pydict(
        {"task": [place.task], "attempt": [place.attempt], "failure": [failure]},
        pa.schema(
            [("task", pa.int64()), ("attempt", pa.int32()), ("failure", pa.string())]  # exact
        ),
    )


async def _work(order: Order, place: Place) -> str | None:
    """Until told to end. What is wrong with the application, if it does not run here."""
    stop_signal = StopSignal()
    with _handled(stop_signal):
        if place.attempt > _QUICK_RESTARTS:
            await stop_signal.sleep(min(float(place.attempt), _PAUSE_SECONDS_MAX))
        try:
            app = _load(order)
            worker = Worker(app, order.settings, name=worker_name(order.name, order.run, place))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a module does when it is loaded
            failure = _description(order, error)
            await _report(order, failure, stop_signal)
            return failure
        await _run(order, app, worker, stop_signal)
    return None


async def _run(order: Order, app: Headrace, worker: Worker, stop_signal: StopSignal) -> None:
    try:
        store = await _reach(app, stop_signal)
        if store is None:
            return
        watching = asyncio.create_task(_watch(order, store, stop_signal))
        stopping = asyncio.create_task(_stop_when(stop_signal, worker))
        try:
            if not await _is_over(order, store):
                await worker.run()
        finally:
            for helper in (watching, stopping):
                helper.cancel()
            await asyncio.gather(watching, stopping, return_exceptions=True)
    finally:
        await app.close()
    if worker.has_left_behind:
        _leave()  # the loop would wait for its handlers without end


async def _stop_when(stop_signal: StopSignal, worker: Worker) -> None:
    await stop_signal.wait()
    logger.info("worker %s drains: %s", worker.name, stop_signal.why)
    worker.stop()


async def _reach(app: Headrace, stop_signal: StopSignal) -> JobStore | None:
    """The store, as soon as it can be reached; None: told to end before that."""
    pauses = doubling(0.1, _PAUSE_SECONDS_MAX)
    while stop_signal.why is None:
        try:
            return (await app.manager()).store
        except StoreError as error:
            logger.warning("the store cannot be reached: %s", error)
            await stop_signal.sleep(next(pauses))
    return None


async def _watch(order: Order, store: JobStore, stop_signal: StopSignal) -> None:
    while stop_signal.why is None:
        try:
            if await _is_over(order, store):
                stop_signal.end("the stop flag")
        except StoreError as error:
            logger.warning("the stop flag cannot be read: %s", error)
        await stop_signal.sleep(FLAG_SECONDS)


async def _is_over(order: Order, store: JobStore) -> bool:
    """The flag is set, or the name belongs to another run by now."""
    found = await record.read(store, order.name)
    return found is None or found.run != order.run or found.stop_at is not None


def _load(order: Order) -> Headrace:
    if Path(order.folder).is_dir() and order.folder not in sys.path:
        sys.path.insert(0, order.folder)
    app = load_app(order.place)
    app.url = order.url
    app.tenant = order.tenant or app.tenant
    ring = KeyRing.from_file(order.keys) if order.keys else KeyRing.from_environment()
    app.keys = ring or app.keys
    return app


def _description(order: Order, error: BaseException) -> str:
    what = error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
    return f"{order.place} cannot be run on executor {socket.gethostname()}: {what}"


async def _report(order: Order, failure: str, stop_signal: StopSignal) -> None:
    """Write it into the fleet's record, which stops the others; the application itself is of no use here."""
    pauses = doubling(0.1, _PAUSE_SECONDS_MAX)
    while stop_signal.why is None:
        try:
            await _flag(order, failure)
            return
        except StoreError as error:
            logger.warning("the failure cannot be reported: %s", error)
            await stop_signal.sleep(next(pauses))


async def _flag(order: Order, failure: str) -> None:
    async with await connect(order.url) as manager:
        now = manager.clock.now()

        def failed(one: FleetRecord) -> FleetRecord:
            return with_stop_flag(one, now, failure) if one.run == order.run else one

        await record.change(manager.store, order.name, failed)


@contextlib.contextmanager
def _handled(stop_signal: StopSignal) -> Iterator[None]:
    """The signals that mean the end, handled while the block lasts: the process may serve other tasks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {one: signal.signal(one, stop_signal.signalled) for one in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _tuned_gc() -> Iterator[None]:
    thresholds = gc.get_threshold()
    tune_gc()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _leave() -> None:
    """End the process: a handler that did not stop must not go on in Spark's next task.

    Spark starts the task again, which sees the flag and ends.
    """
    logger.warning("a handler did not stop; its process ends")
    logging.shutdown()
    os._exit(1)
