"""Defects of schedules."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from headrace import schedules
from headrace.manager import schedule_records, submission
from headrace.manager import schedules as firing
from headrace.manager.context import Context
from headrace.model import Job
from headrace.schedules import Due, Misfire, Schedule
from headrace.schedules import schedule as rules
from headrace.spec import JobSpec
from headrace.stores.base import Record
from tests.planted.defect import Defect, patched


def id_by_name_and_tick(schedule: Schedule, tick: datetime) -> str:
    return str(uuid.uuid5(rules._NAMESPACE, f"{schedule.name} {tick.isoformat()}"))


def always_once(schedule: Schedule, now: datetime) -> Due:
    return right_due(replace(schedule, misfire=Misfire.ONCE), now)


def pause_ignored(schedule: Schedule, now: datetime) -> Due:
    return right_due(replace(schedule, paused=False), now)


def never_late(schedule: Schedule, now: datetime) -> Due:
    return right_due(replace(schedule, grace_seconds=1e9), now)


right_due = schedules.due_ticks


async def by_the_queues_ids(context: Context, specs: Any, *, own_ids: bool = False) -> Any:
    return await right_submit(context, specs)


right_submit = submission.submit


async def gives_up_on_a_duplicate(context: Context, specs: list[JobSpec]) -> list[Job]:
    return (
        await right_one(context, specs) if len(specs) == 1 else await right_one(context, specs[:1])
    )


right_one = firing._submit


def in_the_clear(context: Context, record: Record, schedule: Schedule) -> Record:
    return replace(record, body_json=schedules.encode(schedule))


DEFECTS: dict[str, Defect] = {
    "a tick has another id each time": patched(rules, "tick_id", lambda *_: str(uuid.uuid4())),
    "a tick's id does not tell tenants and schedules apart": patched(
        rules, "tick_id", id_by_name_and_tick
    ),
    "missed ticks are always one": patched(schedules, "due_ticks", always_once),
    "paused schedules fire": patched(schedules, "due_ticks", pause_ignored),
    "grace has no end": patched(schedules, "due_ticks", never_late),
    "ticks are refused where the server names jobs": patched(
        submission, "submit", by_the_queues_ids
    ),
    "all but the first missed tick are lost": patched(firing, "_submit", gives_up_on_a_duplicate),
    "another schedule takes the place of the old unasked": patched(
        schedules, "is_same", lambda one, other: True
    ),
    "tenants' schedules are told apart by a slash": patched(
        schedule_records, "quote", lambda text, safe: text
    ),
    "schedules are stored in the clear": patched(firing, "written", in_the_clear),
}
