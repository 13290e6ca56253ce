"""The driver of a fleet: occupies Spark's slots, counts what happens, passes the end on.

It keeps no state of its own: name, stop flag and counts stand in the fleet's record. So anybody can stop
the fleet or look at it, and a driver that dies leaves nothing to clean up: its workers drain.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from msgspec.structs import replace

from headrace.connect import connect
from headrace.errors import FleetFailed, FleetNotFound, StoreError
from headrace.manager import JobManager
from headrace.model import TERMINAL, State
from headrace.spark.fleet import record
from headrace.spark.fleet.acquire import acquire_name
from headrace.spark.fleet.plan import Plan
from headrace.spark.fleet.record import FleetRecord, with_stop_flag
from headrace.spark.fleet.status import TICK_PAGES_MAX, FleetStatus, count_on, described
from headrace.spark.fleet.task import OUTCOME_SCHEMA, Order, task_function
from headrace.spark.reasons import reason
from headrace.spark.session import is_remote
from headrace.stores.base import Query

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

logger = logging.getLogger("headrace.fleet")

OnStatus = Callable[[FleetStatus], None]

TICK_SECONDS = 1.0
BEAT_SECONDS = 5.0
_SLACK_SECONDS = 20.0
"""After the grace period: outcomes are written, Spark hears of the end."""
END_PAGES_MAX = 200
"""At its end a driver counts what it is behind with, up to two million events."""
_LOOK_COST = 20
"""A look for jobs that are left costs at most a twentieth of the time."""
_NEVER_STARTED_FAILURES = 5
"""Of each task, on average, before it is taken for certain that none will ever start."""

_OPEN = tuple(state for state in State if state not in TERMINAL)


class Driver:
    """On one event loop. `stop` may be called from anywhere."""

    def __init__(
        self, planned: Plan, manager: JobManager, found: FleetRecord, on_status: OnStatus | None
    ) -> None:
        self.name = planned.name
        self._plan = planned
        self._manager = manager
        self._record = found
        self._on_status = on_status
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        self._tag = f"headrace-fleet-{found.run}"
        self._has_started = False
        self._beat_at = 0.0
        self._look_at = 0.0

    @classmethod
    async def open(cls, planned: Plan, master: str, on_status: OnStatus | None) -> Driver:
        manager = await connect(planned.url, tenant=planned.tenant)
        try:
            found = await acquire_name(manager, planned, master)
        except BaseException:
            await manager.close()
            raise
        return cls(planned, manager, found, on_status)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._told.set)

    async def give_up(self, failure: str) -> None:
        """Before anything was started."""
        try:
            await self._end(failure)
        finally:
            await self._manager.close()

    async def drive(self, spark: SparkSession) -> FleetStatus:
        try:
            return await self._drive(spark)
        except FleetFailed:
            raise
        except BaseException as error:
            # Whatever ends the driver, its workers must not go on without one.
            with contextlib.suppress(StoreError):
                await self._end(f"its driver failed: {reason(error)}")
            raise
        finally:
            await self._manager.close()

    async def _drive(self, spark: SparkSession) -> FleetStatus:
        working = self._occupy(spark)
        ended = asyncio.wrap_future(working)
        stopping_since: float | None = None
        while not ended.done():
            try:
                await self._tick()
            except StoreError as error:
                logger.warning("fleet %s cannot reach its store: %s", self.name, error)
            if self._record.stop_at is not None:
                stopping_since = stopping_since or time.monotonic()
                settings = self._plan.fleet.settings
                patience = settings.grace_seconds + settings.stop_seconds + _SLACK_SECONDS
                if time.monotonic() - stopping_since > patience:
                    logger.warning(
                        "fleet %s did not drain in time; Spark ends its tasks", self.name
                    )
                    spark.interruptTag(self._tag)
            elif self._never_started(spark):
                logger.warning("fleet %s: its tasks die before they ask for a job", self.name)
                spark.interruptTag(self._tag)
            await asyncio.wait({ended}, timeout=TICK_SECONDS)
        return await self._conclude(ended)

    async def _conclude(self, ended: asyncio.Future[list[str | None]]) -> FleetStatus:
        error = ended.exception()
        found = await record.read(self._manager.store, self.name)
        ours = found is not None and found.run == self._record.run
        failure = found.failure if ours and found is not None else None
        if failure is None and error is not None and self._record.stop_at is None:
            failure = f"Spark gave the fleet up: {reason(error)}"
        await self._end(failure)
        status = await described(self._manager, self.name, self._record)
        self._tell(status)
        if failure is not None:
            raise FleetFailed(f"fleet {self.name}: {failure}") from error
        return status

    def _occupy(self, spark: SparkSession) -> Future[list[str | None]]:
        """Start the tasks, in a thread: the action returns when the last of them ends."""
        fleet, done = self._plan.fleet, Future[list[str | None]]()
        order = Order(
            name=self.name,
            run=self._record.run,
            place=fleet.place,
            url=self._plan.url,
            tenant=self._plan.tenant,
            settings=fleet.settings,
            folder=os.getcwd(),  # noqa: PTH109 - text, for another host
            keys=fleet.keys,
            log_level=fleet.log_level,
        )

        def act() -> None:
            try:
                spark.addTag(self._tag)
                if not is_remote(spark):
                    spark.sparkContext.setJobGroup(self._tag, f"fleet {self.name}")
                rows = spark.range(0, fleet.tasks, 1, fleet.tasks)
                outcomes = rows.mapInArrow(task_function(order), OUTCOME_SCHEMA).collect()
                done.set_result([one["failure"] for one in outcomes])
            except BaseException as error:  # noqa: BLE001 - it is told where it is waited for
                done.set_exception(error)

        threading.Thread(target=act, name="headrace-fleet-tasks", daemon=True).start()
        return done

    async def _tick(self) -> None:
        manager, now = self._manager, self._manager.clock.now()
        cursor, tallies = await count_on(manager, self.name, self._record, pages=TICK_PAGES_MAX)
        wants_stop = self._told.is_set() or await self._is_drained()
        beats = time.monotonic() - self._beat_at >= BEAT_SECONDS

        def written(one: FleetRecord) -> FleetRecord:
            if one.run != self._record.run:
                return one
            if beats:
                one = replace(one, beat_at=now, cursor=cursor, tallies=tallies)
            return with_stop_flag(one, now) if wants_stop else one

        try:
            stored = await record.change(manager.store, self.name, written)
        except FleetNotFound:
            stored = with_stop_flag(
                self._record, now
            )  # somebody deleted it: so do the workers take it
        if stored.run != self._record.run:
            stored = with_stop_flag(self._record, now)
        elif beats:
            self._beat_at = time.monotonic()
        self._record = replace(stored, cursor=cursor, tallies=tallies)
        status = await described(manager, self.name, self._record)
        self._has_started = self._has_started or any(one.worker for one in status.workers)
        self._tell(status)

    async def _is_drained(self) -> bool:
        """Whether no job is left that this fleet could run. Looks only when none of its workers has one."""
        fleet = self._plan.fleet
        if not fleet.drain or self._record.stop_at is not None:
            return False
        if any(one.holding > 0 for one in self._record.tallies.values()):
            return False
        began = time.monotonic()
        if began < self._look_at:
            return False
        left = await self._manager.store.find(
            Query(
                tenant=self._manager.tenant,
                queues=self._plan.queues,
                types=self._plan.types,
                states=_OPEN,
                tags=tuple(fleet.settings.tags),
                limit=1,
            )
        )
        took = time.monotonic() - began
        self._look_at = time.monotonic() + _LOOK_COST * took
        return not left

    def _never_started(self, spark: SparkSession) -> bool:
        """Whether tasks keep dying before any has asked for a job: they would do so for ever."""
        if self._has_started or is_remote(spark):
            return False  # of a remote session nothing can be asked
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in self._stages(tracker)]
        failed = sum(0 if one is None else one.numFailedTasks for one in stages)
        return failed >= _NEVER_STARTED_FAILURES * self._plan.fleet.tasks

    def _stages(self, tracker: StatusTracker) -> list[int]:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._tag)]
        return [stage for job in jobs if job is not None for stage in job.stageIds]

    async def _end(self, failure: str | None) -> None:
        now = self._manager.clock.now()
        cursor, tallies = await count_on(
            self._manager, self.name, self._record, pages=END_PAGES_MAX
        )
        ended = replace(
            self._record,
            cursor=cursor,
            tallies=tallies,
            stop_at=self._record.stop_at or now,
            failure=failure,
            ended_at=now,
            beat_at=now,
        )
        self._record = ended
        with contextlib.suppress(FleetNotFound):
            await record.change(
                self._manager.store, self.name, lambda one: ended if one.run == ended.run else one
            )

    def _tell(self, status: FleetStatus) -> None:
        if self._on_status is not None:
            self._on_status(status)
