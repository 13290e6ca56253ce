"""The routes of an operator's questions: what happened, what goes wrong, what hangs together."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headrace import errors
from headrace.api.jobs import WITHHELD, JobAnswer, ReasonAnswer
from headrace.api.route import V1, Route
from headrace.history import Attempt
from headrace.manager import ErrorGroups, Holders, JobGraph, Upcoming
from headrace.rollups import Counts, ErrorGroup
from headrace.tokens import Scope


class AttemptsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = 20
    """So many of the last ones."""


class AttemptsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The last claims of a job, oldest first. Messages and tracebacks need `read:payload`."""

    attempts: tuple[Attempt, ...]


def attempt_answer(attempt: Attempt, *, contents: bool) -> Attempt:
    if contents:
        return attempt
    message = None if attempt.message is None else WITHHELD
    return msgspec.structs.replace(attempt, message=message, traceback=None)


class GraphQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    depth: int = 3
    """How many links away from the job."""
    nodes_max: int = 200


class QueueExplanationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in a queue, and why. The first reason is the one to look at."""

    queue: str
    at: datetime
    ready: int
    delayed: int
    blocked: int
    running: int
    waited_seconds: float | None
    """How long the job has waited that is due the longest."""
    reasons: tuple[ReasonAnswer, ...]


class HoldersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = 100


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: datetime
    until: datetime | None = None
    """Null: now."""
    queue: tuple[str, ...] | None = None
    minutes: bool | None = None
    """By minute or by hour; null: by minute for six hours or less."""


class BucketAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to the jobs of one tenant and queue in one minute or hour."""

    at: datetime
    counts: dict[str, Any]


class HistoryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    since: datetime
    until: datetime
    bucket_seconds: int
    counted_until: datetime | None
    """The time of the last event that is counted."""
    buckets: tuple[BucketAnswer, ...]


def counts_answer(counts: Counts) -> dict[str, Any]:
    """By name: they are stored without."""
    return {name: msgspec.to_builtins(getattr(counts, name)) for name in Counts.__struct_fields__}


class ErrorsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: datetime
    until: datetime | None = None
    queue: tuple[str, ...] | None = None
    type: tuple[str, ...] | None = None
    limit: int = 100


def group_answer(group: ErrorGroup, *, contents: bool) -> ErrorGroup:
    if contents or group.message is None:
        return group
    return msgspec.structs.replace(group, message=WITHHELD)


class UpcomingQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    count: int = 10
    name: str | None = None


class UpcomingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The next ticks, the soonest first."""

    ticks: tuple[Upcoming, ...]


class CursorQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    at: datetime


class CursorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The cursor behind which the log tells of that time."""

    cursor: str


ATTEMPTS = Route(
    name="list_attempts",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}/attempts",
    summary="The last claims of a job: who ran it, for how long, and how each ended.",
    scopes=(Scope.READ,),
    query=AttemptsQuery,
    answer=AttemptsAnswer,
    errors=(errors.JobNotFound,),
)
GRAPH = Route(
    name="get_graph",
    method="GET",
    path=f"{V1}/jobs/{{job_id}}/graph",
    summary="The jobs around this one: dependencies, what was spawned, redrives.",
    scopes=(Scope.READ,),
    query=GraphQuery,
    answer=JobGraph,
    errors=(errors.JobNotFound,),
)
EXPLAIN_QUEUE = Route(
    name="explain_queue",
    method="GET",
    path=f"{V1}/queues/{{queue}}/explain",
    summary="What waits in the queue, and everything that keeps it from starting.",
    scopes=(Scope.READ,),
    answer=QueueExplanationAnswer,
)
HOLDERS = Route(
    name="list_holders",
    method="GET",
    path=f"{V1}/queues/{{queue}}/holders",
    summary="Who holds the slots of the queue.",
    scopes=(Scope.READ,),
    query=HoldersQuery,
    answer=Holders,
)
HISTORY = Route(
    name="get_history",
    method="GET",
    path=f"{V1}/history",
    summary="What happened, by minute or hour: rates, ends, waits and runs.",
    scopes=(Scope.READ,),
    query=HistoryQuery,
    answer=HistoryAnswer,
)
ERRORS = Route(
    name="list_error_groups",
    method="GET",
    path=f"{V1}/errors",
    summary="The errors of some time, those that mean the same together.",
    scopes=(Scope.READ,),
    query=ErrorsQuery,
    answer=ErrorGroups,
)
UPCOMING = Route(
    name="list_upcoming",
    method="GET",
    path=f"{V1}/upcoming",
    summary="The next ticks of all schedules, or of one.",
    scopes=(Scope.READ,),
    query=UpcomingQuery,
    answer=UpcomingAnswer,
    errors=(errors.ScheduleNotFound,),
)
RUN_SCHEDULE = Route(
    name="run_schedule",
    method="POST",
    path=f"{V1}/schedules/{{name}}/run",
    summary="Submit what the schedule submits, now and beside its ticks.",
    scopes=(Scope.OPERATE,),
    answer=JobAnswer,
    status=201,
    errors=(errors.ScheduleNotFound, errors.QueueFull),
)
CURSOR_AT = Route(
    name="get_cursor",
    method="GET",
    path=f"{V1}/cursor",
    summary="From where on to read the log for what happened since a time.",
    scopes=(Scope.READ,),
    query=CursorQuery,
    answer=CursorAnswer,
)
ROUTES = (
    ATTEMPTS,
    GRAPH,
    EXPLAIN_QUEUE,
    HOLDERS,
    HISTORY,
    ERRORS,
    UPCOMING,
    RUN_SCHEDULE,
    CURSOR_AT,
)
