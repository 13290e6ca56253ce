"""Handlers of the routes of schedules."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from headrace import schedules, validation
from headrace.api import schedules as api
from headrace.api.queues import RemovedAnswer
from headrace.api.submissions import spec_of
from headrace.errors import ScheduleNotFound
from headrace.model import DEFAULT_TENANT
from headrace.schedules import Schedule, When
from headrace.schedules.when import when_of
from headrace.server.call import Call, Handlers

NEXT_TICKS = 5


async def find_all(call: Call[None, None]) -> api.SchedulesAnswer:
    return api.SchedulesAnswer(
        schedules=tuple(_answer(call, one) for one in await call.manager.schedules())
    )


async def get(call: Call[None, None]) -> api.ScheduleAnswer:
    name, tenant = call["name"], call.manager.tenant or DEFAULT_TENANT
    for one in await call.manager.schedules():
        if (one.name, one.tenant) == (name, tenant):
            return _answer(call, one)
    raise ScheduleNotFound(name)


async def add(call: Call[None, api.ScheduleBody]) -> api.ScheduleAnswer:
    body = call.body
    made = await call.manager.schedule(
        call["name"],
        cast("When", when_of(body.when)),
        spec_of(body.job),
        misfire=body.misfire,
        grace_seconds=validation.check_seconds(body.grace_seconds, "grace_seconds", zero=True),
        replace=body.replace,
    )
    return _answer(call, made)


async def remove(call: Call[None, None]) -> RemovedAnswer:
    return RemovedAnswer(removed=await call.manager.unschedule(call["name"]))


async def pause(call: Call[None, None]) -> api.ScheduleAnswer:
    return _answer(call, await call.manager.pause_schedule(call["name"]))


async def resume(call: Call[None, None]) -> api.ScheduleAnswer:
    return _answer(call, await call.manager.resume_schedule(call["name"]))


def _answer(call: Call[Any, Any], one: Schedule) -> api.ScheduleAnswer:
    job = one.job
    if not call.access.sees_contents:
        job = msgspec.structs.replace(job, payload=None, callback_url=None)
    now = call.manager.clock.now()
    return api.ScheduleAnswer(
        name=one.name,
        tenant=one.tenant,
        when=one.when,
        job=msgspec.Raw(schedules.encode_job(job)),
        misfire=one.misfire,
        grace_seconds=one.grace_seconds,
        paused=one.paused,
        created_at=one.created_at,
        done_until=one.done_until,
        last_tick=one.last_tick,
        next_ticks=() if one.paused else schedules.upcoming(one, now, NEXT_TICKS),
    )


HANDLERS: Handlers = {
    api.SCHEDULES: find_all,
    api.SCHEDULE: get,
    api.ADD: add,
    api.REMOVE: remove,
    api.PAUSE: pause,
    api.RESUME: resume,
}
