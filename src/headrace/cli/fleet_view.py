"""How fleets are shown: a line now and then while one runs, a table of its workers, JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from headrace import duration
from headrace.cli.output import Output
from headrace.cli.session import Session
from headrace.cli.table import Column

if TYPE_CHECKING:
    from headrace.spark.fleet import FleetStatus

_LINE_SECONDS = 5.0

WORKER_COLUMNS = (
    Column(name="task", right=True),
    Column(name="attempt", right=True),
    Column(name="worker", rank=1),
    Column(name="seen"),
    Column(name="holds", right=True),
    Column(name="completed", right=True),
    Column(name="failed", right=True),
    Column(name="lost", right=True),
    Column(name="given back", right=True, rank=2),
)
FLEET_COLUMNS = (
    Column(name="fleet"),
    Column(name="state"),
    Column(name="application"),
    Column(name="workers", right=True),
    Column(name="completed", right=True),
    Column(name="started"),
)


class FleetWorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the fleet; the counts are of all its attempts."""

    task: int
    attempt: int
    worker: str | None
    seen_at: datetime | None
    alive: bool
    holding: int
    leased: int
    completed: int
    failed: int
    lost: int
    given_back: int


class FleetRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    run: str
    state: str
    place: str
    master: str
    tasks: int
    started_at: datetime
    stop_at: datetime | None
    ended_at: datetime | None
    failure: str | None
    workers: tuple[FleetWorkerRecord, ...]


class FleetsRecord(msgspec.Struct, frozen=True, kw_only=True):
    fleets: tuple[FleetRecord, ...]


class Lines:
    """The driver's own lines: whenever something has changed, not more often than every few seconds."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._next = 0.0
        self._said = ""
        self._last: tuple[float, int] | None = None

    def show(self, one: FleetStatus) -> None:
        said, now = f"{one.state}, {summary(one)}", time.monotonic()
        is_last = one.ended_at is not None
        if said == self._said or (now < self._next and not is_last):
            return
        rate = self._rate(now, one.total("completed"))
        self._said, self._next = said, now + _LINE_SECONDS
        if self._out.as_json:
            self._out.line(record_of(one))
            return
        self._out.text(f"fleet {one.name} {said}{'' if rate is None or is_last else rate}")

    def _rate(self, now: float, completed: int) -> str | None:
        last, self._last = self._last, (now, completed)
        if last is None or completed == last[1]:
            return None
        return f" ({(completed - last[1]) / (now - last[0]):,.0f}/s)"


def summary(one: FleetStatus) -> str:
    parts = [f"{one.alive} of {one.tasks} workers", f"{one.total('completed'):,} completed"]
    for column, word in (("failed", "failed attempts"), ("lost", "lost"), ("holding", "held")):
        if count := one.total(column):
            parts.append(f"{count:,} {word}")
    return ", ".join(parts)


def record_of(one: FleetStatus) -> FleetRecord:
    return msgspec.convert(one, FleetRecord, from_attributes=True)


def print_fleet(session: Session, one: FleetStatus) -> None:
    now = session.jobs.clock.now()
    session.out.fields(
        [
            ("fleet", one.name),
            ("state", one.state),
            ("application", one.place),
            ("master", one.master),
            ("started", duration.ago(one.started_at, now)),
            ("told to stop", None if one.stop_at is None else duration.age(one.stop_at, now)),
            ("ended", None if one.ended_at is None else duration.ago(one.ended_at, now)),
            ("failure", one.failure),
        ]
    )
    rows = [
        [
            str(worker.task),
            str(worker.attempt),
            worker.worker or "-",
            "never" if worker.seen_at is None else duration.ago(worker.seen_at, now),
            *(
                f"{count:,}"
                for count in (
                    worker.holding,
                    worker.completed,
                    worker.failed,
                    worker.lost,
                    worker.given_back,
                )
            ),
        ]
        for worker in one.workers
    ]
    session.out.table(WORKER_COLUMNS, rows)


def print_fleets(session: Session, found: Sequence[FleetStatus]) -> None:
    now = session.jobs.clock.now()
    rows = [
        [
            one.name,
            str(one.state),
            one.place,
            f"{one.alive}/{one.tasks}",
            f"{one.total('completed'):,}",
            duration.ago(one.started_at, now),
        ]
        for one in found
    ]
    session.out.table(FLEET_COLUMNS, rows)
