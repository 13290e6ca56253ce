"""The routes of queues: how full they are, who works on them, and what limits them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from headrace.api.jobs import JobAnswer
from headrace.api.route import V1, Route
from headrace.limits import Rate
from headrace.model import State
from headrace.stores.base import WorkerProcess
from headrace.tokens import Scope


class TallyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of one tenant and queue are in one state."""

    tenant: str
    queue: str
    state: State
    jobs: int
    delayed: int
    """Those of the claimable ones that are not due yet."""
    failures: int


class StatsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: tuple[str, ...] | None = None
    tag: tuple[str, ...] = ()


class StatsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    states: Mapping[State, int]
    """Every state, zeros included."""
    ready: int
    delayed: int
    failures: int
    tallies: tuple[TallyAnswer, ...]


class OldestReady(msgspec.Struct, frozen=True, kw_only=True):
    """How long the oldest due job of a tenant's queue has waited."""

    tenant: str
    queue: str
    seconds: float


class OverviewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    tallies: tuple[TallyAnswer, ...]
    oldest_ready: tuple[OldestReady, ...]


class PauseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    tenant: str | None
    """Null: for every tenant."""
    since: datetime


class QueueAnswer(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    states: Mapping[State, int]
    """Those that are not zero."""
    delayed: int
    oldest_ready_seconds: float | None
    pauses: tuple[PauseAnswer, ...]


class QueuesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    queues: tuple[QueueAnswer, ...]


class ResumedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    resumed: bool
    """It was paused."""


class LimitsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All limits of a queue; what is left out is not limited."""

    concurrency: int | None = None
    key_concurrency: int | None = None
    tenant_concurrency: int | None = None
    rate: Rate | None = None
    key_rate: Rate | None = None
    fair: bool = False
    weights: dict[str, float] = {}
    waiting_jobs_max: int | None = None
    waiting_bytes_max: int | None = None
    tenant_waiting_jobs_max: int | None = None
    tenant_waiting_bytes_max: int | None = None


class LimitsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """By queue; those that have limits."""

    limits: Mapping[str, LimitsBody]


class RemovedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    removed: bool
    """There was something to remove."""


class WorkersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seconds: float = 60.0
    """Those that were heard of within this time."""


class WorkerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    worker: str
    seen_at: datetime
    tenant: str | None
    queues: tuple[str, ...] | None
    types: tuple[str, ...] | None
    tags: tuple[str, ...]
    slots: int | None
    busy: int | None
    process: WorkerProcess | None


class WorkersAnswer(msgspec.Struct, frozen=True, kw_only=True):
    workers: tuple[WorkerAnswer, ...]


class ExpiredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that the worker held, which are lost or abandoned now."""

    jobs: tuple[JobAnswer, ...]
    freed: Mapping[str, int]
    """Slots that workers have got back, by worker."""


STATS = Route(
    name="get_stats",
    method="GET",
    path=f"{V1}/stats",
    summary="How many jobs there are, by state, tenant and queue.",
    scopes=(Scope.READ,),
    query=StatsQuery,
    answer=StatsAnswer,
)
OVERVIEW = Route(
    name="get_overview",
    method="GET",
    path=f"{V1}/overview",
    summary="The depth of every queue, and the age of what waits longest in it.",
    scopes=(Scope.READ,),
    answer=OverviewAnswer,
)
QUEUES = Route(
    name="list_queues",
    method="GET",
    path=f"{V1}/queues",
    summary="Every queue that has jobs or is paused.",
    scopes=(Scope.READ,),
    answer=QueuesAnswer,
)
PAUSE = Route(
    name="pause_queue",
    method="POST",
    path=f"{V1}/queues/{{queue}}/pause",
    summary="Nobody claims from the queue until it is resumed.",
    scopes=(Scope.OPERATE,),
    status=204,
)
RESUME = Route(
    name="resume_queue",
    method="POST",
    path=f"{V1}/queues/{{queue}}/resume",
    summary="Let a paused queue go on.",
    scopes=(Scope.OPERATE,),
    answer=ResumedAnswer,
)
PAUSES = Route(
    name="list_pauses",
    method="GET",
    path=f"{V1}/pauses",
    summary="The queues that are paused, for the token's tenant or for all.",
    scopes=(Scope.READ,),
    answer=tuple[PauseAnswer, ...],
)
ALL_LIMITS = Route(
    name="list_limits",
    method="GET",
    path=f"{V1}/limits",
    summary="The limits of every queue that has some.",
    scopes=(Scope.READ,),
    answer=LimitsAnswer,
)
LIMITS = Route(
    name="get_limits",
    method="GET",
    path=f"{V1}/queues/{{queue}}/limits",
    summary="The limits of a queue.",
    scopes=(Scope.READ,),
    answer=LimitsBody,
)
SET_LIMITS = Route(
    name="set_limits",
    method="PUT",
    path=f"{V1}/queues/{{queue}}/limits",
    summary="The queue has exactly these limits from now on.",
    scopes=(Scope.ADMIN,),
    for_operators=True,
    body=LimitsBody,
    status=204,
)
REMOVE_LIMITS = Route(
    name="remove_limits",
    method="DELETE",
    path=f"{V1}/queues/{{queue}}/limits",
    summary="The queue has no limits from now on.",
    scopes=(Scope.ADMIN,),
    for_operators=True,
    answer=RemovedAnswer,
)
WORKERS = Route(
    name="list_workers",
    method="GET",
    path=f"{V1}/workers",
    summary="Workers that were heard of lately, and what they ask for.",
    scopes=(Scope.READ,),
    query=WorkersQuery,
    answer=WorkersAnswer,
)
EXPIRE_WORKER = Route(
    name="expire_worker",
    method="POST",
    path=f"{V1}/workers/{{worker}}/expire",
    summary="The worker is gone: what it holds is claimable again.",
    scopes=(Scope.ADMIN,),
    for_operators=True,
    answer=ExpiredAnswer,
)
ROUTES = (
    STATS,
    OVERVIEW,
    QUEUES,
    PAUSE,
    RESUME,
    PAUSES,
    ALL_LIMITS,
    LIMITS,
    SET_LIMITS,
    REMOVE_LIMITS,
    WORKERS,
    EXPIRE_WORKER,
)
