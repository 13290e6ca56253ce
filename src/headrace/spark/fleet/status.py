"""How a fleet is: from its record, its workers' announcements and the event log."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from headrace.errors import FleetNotFound, LogTrimmed
from headrace.manager import JobManager, presence
from headrace.spark.fleet import record
from headrace.spark.fleet.names import place_of
from headrace.spark.fleet.record import FleetRecord
from headrace.spark.fleet.tally import TaskTally, tallied
from headrace.stores.base import EventQuery

SILENT_AFTER = timedelta(seconds=30)
"""A driver writes every few seconds: one that has not for so long is taken for gone."""
ALIVE_FOR = timedelta(seconds=15)
"""A worker announces itself every five seconds, until it is told to stop."""
PAGE_EVENTS = 10_000
PAGES_MAX = 20
"""A look at the status counts at most so much by itself; the driver goes on counting."""
TICK_PAGES_MAX = 5
"""The driver counts no more between two beats, or a busy store would keep it from beating at all."""


class FleetState(enum.StrEnum):
    RUNNING = "running"
    STOPPING = "stopping"
    """The flag is set; workers drain."""
    ENDED = "ended"
    FAILED = "failed"
    """Ended, because the application does not run there."""
    SILENT = "silent"
    """Its driver has not been heard of for a while. Workers drain when their driver dies."""


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the fleet. The counts are of all its attempts."""

    task: int
    attempt: int
    worker: str | None
    """None: it has not asked for jobs yet."""
    seen_at: datetime | None
    alive: bool
    """It asked for jobs just now, or holds some."""
    holding: int
    leased: int
    completed: int
    failed: int
    lost: int
    given_back: int


class FleetStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    run: str
    state: FleetState
    place: str
    master: str
    tasks: int
    started_at: datetime
    stop_at: datetime | None
    ended_at: datetime | None
    failure: str | None
    workers: tuple[WorkerStatus, ...]

    @property
    def alive(self) -> int:
        return sum(one.alive for one in self.workers)

    def total(self, column: str) -> int:
        """Over all tasks: leased, completed, failed, lost, given_back or holding."""
        return sum(getattr(one, column) for one in self.workers)


async def fleet_status(manager: JobManager, name: str) -> FleetStatus:
    """As of now, whether its driver is alive or not. Raises FleetNotFound."""
    found = await record.read(manager.store, name)
    if found is None:
        raise FleetNotFound(name)
    if found.ended_at is None:
        _, tallies = await count_on(manager, name, found, pages=PAGES_MAX)
        found = msgspec.structs.replace(found, tallies=tallies)
    return await described(manager, name, found)


async def fleets(manager: JobManager) -> tuple[FleetStatus, ...]:
    """Every fleet the store knows of, as their drivers last wrote them down."""
    found = await manager.store.records(record.KIND)
    return tuple([await described(manager, one.name, record.decode(one)) for one in found])


async def count_on(
    manager: JobManager, name: str, found: FleetRecord, *, pages: int
) -> tuple[str, Mapping[int, TaskTally]]:
    """The cursor and the tallies after what the log holds by now, or after so many pages of it."""
    cursor, tallies = found.cursor, found.tallies
    while pages > 0:
        try:
            events = await manager.store.events(EventQuery(after=cursor, limit=PAGE_EVENTS))
        except LogTrimmed as trimmed:
            cursor = trimmed.start  # what is gone stays uncounted
            continue
        tallies = tallied(tallies, events, name, found.run)
        if events:
            cursor = events[-1].cursor
        if len(events) < PAGE_EVENTS:
            break
        pages -= 1
    return cursor, tallies


async def described(manager: JobManager, name: str, found: FleetRecord) -> FleetStatus:
    now = manager.clock.now()
    seen: dict[int, tuple[int, str, datetime]] = {}
    for one in await presence.workers(manager.store, found.started_at):
        place = place_of(one.worker, name, found.run)
        if place is not None:
            last = seen.get(place.task, (-1, "", one.seen_at))
            seen[place.task] = max(last, (place.attempt, one.worker, one.seen_at))
    state = _state(found, now)
    running = state not in (FleetState.ENDED, FleetState.FAILED)
    return FleetStatus(
        name=name,
        run=found.run,
        state=state,
        place=found.place,
        master=found.master,
        tasks=found.tasks,
        started_at=found.started_at,
        stop_at=found.stop_at,
        ended_at=found.ended_at,
        failure=found.failure,
        workers=tuple(
            _worker(
                task, found.tallies.get(task, TaskTally()), seen.get(task), now if running else None
            )
            for task in range(found.tasks)
        ),
    )


def _worker(
    task: int, tally: TaskTally, seen: tuple[int, str, datetime] | None, now: datetime | None
) -> WorkerStatus:
    attempt, worker, seen_at = seen or (tally.attempt, None, None)
    asked = now is not None and seen_at is not None and now - seen_at <= ALIVE_FOR
    return WorkerStatus(
        task=task,
        attempt=max(attempt, tally.attempt),
        worker=worker,
        seen_at=seen_at,
        alive=now is not None and (asked or tally.holding > 0),
        holding=tally.holding,
        leased=tally.leased,
        completed=tally.completed,
        failed=tally.failed,
        lost=tally.lost,
        given_back=tally.given_back,
    )


def _state(found: FleetRecord, now: datetime) -> FleetState:
    if found.ended_at is not None:
        return FleetState.FAILED if found.failure else FleetState.ENDED
    if now - found.beat_at > SILENT_AFTER:
        return FleetState.SILENT
    return FleetState.STOPPING if found.stop_at else FleetState.RUNNING
