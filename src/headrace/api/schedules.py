"""The routes of schedules."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace import errors
from headrace.api.queues import RemovedAnswer
from headrace.api.route import V1, Route
from headrace.api.submissions import JobBody, SecondsBody
from headrace.schedules import GRACE_SECONDS_DEFAULT, Cron, Every, Misfire
from headrace.tokens import Scope


class ScheduleBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`when` is a cron expression in UTC, a duration (`15m`), or either with all that belongs to it."""

    when: str | Cron | Every
    job: JobBody
    misfire: Misfire = Misfire.ONCE
    grace_seconds: SecondsBody = GRACE_SECONDS_DEFAULT
    replace: bool = False
    """Put it in the place of another one with this name."""


class ScheduleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule. The payload of its job is left out where the token may not read it."""

    name: str
    tenant: str
    when: Cron | Every
    job: msgspec.Raw
    misfire: Misfire
    grace_seconds: float
    paused: bool
    created_at: datetime
    done_until: datetime
    last_tick: datetime | None
    next_ticks: tuple[datetime, ...]


class SchedulesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    schedules: tuple[ScheduleAnswer, ...]


SCHEDULES = Route(
    name="list_schedules",
    method="GET",
    path=f"{V1}/schedules",
    summary="Every schedule, with its next ticks.",
    scopes=(Scope.READ,),
    answer=SchedulesAnswer,
)
SCHEDULE = Route(
    name="get_schedule",
    method="GET",
    path=f"{V1}/schedules/{{name}}",
    summary="A schedule, with its next ticks.",
    scopes=(Scope.READ,),
    answer=ScheduleAnswer,
    errors=(errors.ScheduleNotFound,),
)
ADD = Route(
    name="put_schedule",
    method="PUT",
    path=f"{V1}/schedules/{{name}}",
    summary="Submit a job at every tick from now on. The same again changes nothing.",
    scopes=(Scope.OPERATE,),
    body=ScheduleBody,
    answer=ScheduleAnswer,
    errors=(errors.InvalidSchedule, errors.DuplicateSchedule),
)
REMOVE = Route(
    name="delete_schedule",
    method="DELETE",
    path=f"{V1}/schedules/{{name}}",
    summary="No more ticks. The jobs it has submitted stay.",
    scopes=(Scope.OPERATE,),
    answer=RemovedAnswer,
)
PAUSE = Route(
    name="pause_schedule",
    method="POST",
    path=f"{V1}/schedules/{{name}}/pause",
    summary="Fire no tick until it is resumed.",
    scopes=(Scope.OPERATE,),
    answer=ScheduleAnswer,
    errors=(errors.ScheduleNotFound,),
)
RESUME = Route(
    name="resume_schedule",
    method="POST",
    path=f"{V1}/schedules/{{name}}/resume",
    summary="Go on with a paused schedule.",
    scopes=(Scope.OPERATE,),
    answer=ScheduleAnswer,
    errors=(errors.ScheduleNotFound,),
)
ROUTES = (SCHEDULES, SCHEDULE, ADD, REMOVE, PAUSE, RESUME)
