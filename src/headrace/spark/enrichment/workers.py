"""Who runs the jobs besides the workers that are there anyway: a worker in this process, or a fleet."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headrace import address, validation
from headrace.app import Headrace, Task
from headrace.errors import FleetFailed, InvalidInput
from headrace.spark.enrichment.request import Request
from headrace.spark.fleet import Fleet, RunningFleet, start
from headrace.spark.fleet.names import FLEET_CHARS_MAX
from headrace.spark.fleet.plan import plan
from headrace.worker import Settings, Worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LocalWorker:
    """A worker of the application in a thread of this process, until it is stopped."""

    def __init__(self, app: Headrace, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._started: Future[tuple[asyncio.AbstractEventLoop, Worker]] = Future()
        self._ended: Future[None] = Future()
        threading.Thread(target=self._main, name="headrace-enrich-worker", daemon=True).start()

    def check(self) -> None:
        """Raise what ended it."""
        if self._ended.done():
            self._ended.result()

    def stop(self) -> None:
        with contextlib.suppress(
            Exception
        ):  # what ended it was raised by `check`, or comes too late
            loop, worker = self._started.result()
            if not self._ended.done():
                loop.call_soon_threadsafe(worker.stop)
            self._ended.result()

    def _main(self) -> None:
        try:
            asyncio.run(self._work())
            self._ended.set_result(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is asked for
            if not self._started.done():
                self._started.set_exception(error)
            self._ended.set_exception(error)

    async def _work(self) -> None:
        worker = Worker(self._app, self._settings)
        self._started.set_result((asyncio.get_running_loop(), worker))
        try:
            await worker.run()
        finally:
            await self._app.close()


class FleetHandle:
    def __init__(self, running: RunningFleet) -> None:
        self._running = running

    def check(self) -> None:
        if self._running.has_ended:
            self._running.wait()
            raise FleetFailed(
                f"fleet {self._running.name} was stopped before the enrichment was done; what is done "
                "stays: call enrich again to go on"
            )

    def stop(self) -> None:
        if not self._running.has_ended:
            self._running.stop()
            self._running.wait()


WorkerHandle = LocalWorker | FleetHandle


@contextlib.contextmanager
def running(handle: WorkerHandle | None) -> Iterator[WorkerHandle | None]:
    """Stops it at the end, however that comes."""
    try:
        with _own_interrupt() if isinstance(handle, FleetHandle) else contextlib.nullcontext():
            yield handle
    finally:
        if handle is not None:
            handle.stop()


@contextlib.contextmanager
def _own_interrupt() -> Iterator[None]:
    """Ctrl-C raises, and no more: Spark's handler would cancel all jobs, and so kill a fleet's workers."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not is_main or not str(getattr(before, "__module__", "")).startswith("pyspark"):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def local_settings(
    task: Task[..., Any] | str, request: Request, wanted: int | Settings | None, url: str | None
) -> Settings | None:
    """Of the worker here, if one is wanted. Raises InvalidInput where it could not run the jobs."""
    if wanted is None:
        return None
    if isinstance(task, str):
        raise InvalidInput(
            f"a task that is only named cannot be run here: give the task itself; {validation.UNCHANGED}"
        )
    if url is not None and url != task.app.url:
        raise InvalidInput(
            f"workers here use the application's own store, {address.shown(task.app.url)}: "
            f"leave the url out; {validation.UNCHANGED}"
        )
    settings = wanted if isinstance(wanted, Settings) else Settings(concurrency=wanted)
    return _for_queue(settings, request)


def local_worker(task: Task[..., Any] | str, settings: Settings | None) -> LocalWorker | None:
    """Before the submission: on a queue that is limited it makes room."""
    if settings is None:
        return None
    assert isinstance(task, Task)
    return LocalWorker(task.app, settings)


def planned_fleet(request: Request, wanted: Fleet | str | None) -> Fleet | None:
    """The fleet with what it takes from the enrichment. Raises what planning it raises."""
    if wanted is None:
        return None
    fleet = Fleet(place=wanted) if isinstance(wanted, str) else wanted
    fleet = replace(
        fleet,
        name=fleet.name or f"enrich-{request.name}"[:FLEET_CHARS_MAX],
        url=fleet.url or request.url,
        settings=_for_queue(fleet.settings, request),
    )
    plan(fleet)
    return fleet


def fleet_handle(spark: SparkSession, fleet: Fleet | None) -> FleetHandle | None:
    """After the submission, whose tasks need the slots that the fleet takes."""
    return None if fleet is None else FleetHandle(start(fleet, given=spark))


def _for_queue(settings: Settings, request: Request) -> Settings:
    if settings.queues is not None:
        return settings
    return replace(settings, queues=[request.template.queue])
