"""The fleet's record in the store: where its driver writes what it knows, and others the stop flag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from headrace.errors import Contention, FleetNotFound, StoreCorrupt
from headrace.manager import JobManager
from headrace.spark.fleet.tally import TaskTally
from headrace.stores.base import JobStore, Record

KIND = "fleet"
CHANGES_MAX = 50
"""The driver, its tasks and an operator write now and then; each tries again."""


class FleetRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a fleet."""

    run: str
    place: str
    """Of the application, module:name."""
    master: str
    tasks: int
    drain: bool = False
    started_at: datetime
    beat_at: datetime
    """When the driver last wrote."""
    stop_at: datetime | None = None
    """The stop flag: workers that see it drain and end."""
    failure: str | None = None
    """Why the fleet cannot go on; set together with the flag."""
    ended_at: datetime | None = None
    cursor: str = ""
    """The event log is counted up to here."""
    tallies: Mapping[int, TaskTally] = {}


async def find(store: JobStore, name: str) -> Record:
    """As stored, or one of version 0."""
    found = await store.records(KIND, [name])
    return found[0] if found else Record(kind=KIND, name=name)


async def read(store: JobStore, name: str) -> FleetRecord | None:
    stored = await find(store, name)
    return decode(stored) if stored.version else None


async def change(
    store: JobStore, name: str, decide: Callable[[FleetRecord], FleetRecord]
) -> FleetRecord:
    """Store what `decide` makes of the record; it is asked again if others were first.

    Raises FleetNotFound.
    """
    for _ in range(CHANGES_MAX):
        stored = await find(store, name)
        if not stored.version:
            raise FleetNotFound(name)
        now = decode(stored)
        wanted = decide(now)
        if wanted == now or await store.put_record(replace(stored, body_json=encode(wanted))):
            return wanted
    raise Contention(f"the record of fleet {name} kept changing; try again")


def encode(record: FleetRecord) -> bytes:
    return msgspec.json.encode(record)


def decode(record: Record) -> FleetRecord:
    try:
        return msgspec.json.decode(record.body_json, type=FleetRecord)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"the record of fleet {record.name} cannot be read: {error}; nothing was changed"
        ) from error


async def stop(manager: JobManager, name: str) -> FleetRecord:
    """Let every worker of the fleet drain and end; the record as it is then.

    A fleet that has ended stays as it is. Raises FleetNotFound.
    """
    now = manager.clock.now()
    return await change(manager.store, name, lambda one: with_stop_flag(one, now))


def with_stop_flag(one: FleetRecord, now: datetime, failure: str | None = None) -> FleetRecord:
    """With the flag set; the first to set it is remembered, and so is the first failure."""
    if one.ended_at is not None:
        return one
    return replace(one, stop_at=one.stop_at or now, failure=one.failure or failure)
