"""Acquiring a fleet's name: one driver has it at a time, and the flag of the run before is cleared."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from headrace.errors import FleetRunning
from headrace.manager import JobManager
from headrace.spark.fleet import record
from headrace.spark.fleet.names import new_run
from headrace.spark.fleet.plan import Plan
from headrace.spark.fleet.record import FleetRecord
from headrace.spark.fleet.status import SILENT_AFTER

LOOK_SECONDS = 1.0


async def acquire_name(manager: JobManager, planned: Plan, master: str) -> FleetRecord:
    """Write the record of a new run. Raises FleetRunning.

    Where a driver seems to live it is given the time to show it: one that was killed does not.
    """
    store = manager.store
    heard: FleetRecord | None = None
    while True:
        now = manager.clock.now()
        stored = await record.find(store, planned.name)
        found = record.decode(stored) if stored.version else None
        if found is None or found.ended_at is not None or now - found.beat_at > SILENT_AFTER:
            wanted = FleetRecord(
                run=new_run(),
                place=planned.fleet.place,
                master=master,
                tasks=planned.fleet.tasks,
                drain=planned.fleet.drain,
                started_at=now,
                beat_at=now,
                cursor=await store.tail(),
            )
            if await store.put_record(replace(stored, body_json=record.encode(wanted))):
                return wanted
        elif heard is not None and (found.run, found.beat_at) != (heard.run, heard.beat_at):
            raise FleetRunning(
                f"fleet {planned.name} runs already, on {found.master}, and goes on: stop it with "
                f"headrace fleet stop {planned.name}, or give this one another name"
            )
        heard = found
        await asyncio.sleep(LOOK_SECONDS)
