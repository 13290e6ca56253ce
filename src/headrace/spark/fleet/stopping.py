"""Setting the stop flag of a fleet."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from headrace.manager import JobManager
from headrace.spark.fleet import record
from headrace.spark.fleet.record import FleetRecord


async def stop(manager: JobManager, name: str) -> FleetRecord:
    """Let every worker of the fleet drain and end; the record as it is then.

    A fleet that has ended stays as it is. Raises FleetNotFound.
    """
    now = manager.clock.now()
    return await record.change(manager.store, name, lambda one: flagged(one, now))


def flagged(one: FleetRecord, now: datetime, failure: str | None = None) -> FleetRecord:
    """With the flag set; the first to set it is remembered, and so is the first failure."""
    if one.ended_at is not None:
        return one
    return replace(one, stop_at=one.stop_at or now, failure=one.failure or failure)
