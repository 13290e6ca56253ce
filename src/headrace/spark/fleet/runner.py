"""Starting a fleet, waiting for its end, and passing signals on to it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from headrace.app.bridge import LoopThread
from headrace.spark.fleet.driver import Driver, OnStatus
from headrace.spark.fleet.plan import Fleet, patient_master, plan, spark_config
from headrace.spark.fleet.status import FleetStatus
from headrace.spark.reasons import reason
from headrace.spark.session import DEFAULT_MASTER, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SAME_SECONDS = 0.5
"""Signals closer together are one."""


def run(
    fleet: Fleet,
    *,
    given: SparkSession | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    on_status: OnStatus | None = None,
) -> FleetStatus:
    """Run a fleet until it is told to stop (by its flag, SIGINT or SIGTERM) or, with `drain`, has no work.

    `given`, or the session that is active: the caller's own, which is left open. Otherwise one is made for
    `master` and closed at the end. `on_status` is told how the fleet is, about once a second.

    Raises FleetRunning if one of this name runs already, FleetFailed if the application or Spark does not
    run there.
    """
    return start(fleet, given=given, master=master, config=config, on_status=on_status).wait()


def start(
    fleet: Fleet,
    *,
    given: SparkSession | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    on_status: OnStatus | None = None,
) -> RunningFleet:
    """As `run`, but without waiting for the end."""
    from pyspark.sql import SparkSession

    planned = plan(fleet)
    given = given or SparkSession.getActiveSession()
    chosen = master or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER
    if given is None:
        chosen = patient_master(chosen, fleet.tasks)
    loop = LoopThread()
    driver = loop.run(Driver.open(planned, chosen, on_status))
    own = given is None
    try:
        if given is None:
            settings = spark_config(chosen, fleet.tasks, config or {})
            given = session(
                master=chosen, app_name=f"headrace fleet {planned.name}", config=settings
            )
        for path in fleet.py_files:
            given.addArtifacts(path, pyfile=True)
    except BaseException as error:
        loop.run(driver.give_up(f"Spark did not start: {reason(error)}"))
        raise
    return RunningFleet(loop, driver, given, stop_session=own)


class RunningFleet:
    """A fleet that was started. `wait` must be called in the end."""

    def __init__(
        self, loop: LoopThread, driver: Driver, spark: SparkSession, *, stop_session: bool
    ) -> None:
        self._loop = loop
        self._driver = driver
        self._spark = spark
        self._stop_session = stop_session
        self._done: Future[FleetStatus] = Future()
        threading.Thread(target=self._main, name="headrace-fleet", daemon=True).start()

    @property
    def name(self) -> str:
        return self._driver.name

    @property
    def has_ended(self) -> bool:
        return self._done.done()

    def stop(self) -> None:
        """Set the flag: the workers drain, then `wait` returns."""
        self._driver.stop()

    def wait(self) -> FleetStatus:
        """Until the end. SIGINT and SIGTERM set the flag meanwhile; a second one ends at once."""
        try:
            with self._signals():
                return self._done.result()
        finally:
            if self._stop_session:
                self._spark.stop()

    def _main(self) -> None:
        try:
            self._done.set_result(self._loop.run(self._driver.drive(self._spark)))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._done.set_exception(error)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        first: float | None = None

        def signalled(*_: object) -> None:
            nonlocal first
            now = time.monotonic()
            if first is None:
                first = now
                self.stop()
            elif now - first > _SAME_SECONDS:
                raise KeyboardInterrupt

        before: dict[int, Any] = {
            one: signal.signal(one, signalled) for one in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
