"""The routes about the server itself: is it alive, what can be asked of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headrace import errors
from headrace.api.route import V1, Route
from headrace.tokens import Scope


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    why: str | None = None


class ProblemAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a code means."""

    code: str
    status: int
    title: str
    meaning: str


class TimeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The store's time, by which everything is counted."""

    at: datetime


LIVE = Route(
    name="is_live",
    method="GET",
    path="/live",
    summary="The process answers.",
    is_open=True,
    answer=HealthAnswer,
)
READY = Route(
    name="is_ready",
    method="GET",
    path="/ready",
    summary="The store answers, too; 503 while it does not.",
    is_open=True,
    answer=HealthAnswer,
    also=(503,),
)
HEALTH = Route(
    name="get_health",
    method="GET",
    path="/health",
    summary="As /ready.",
    is_open=True,
    answer=HealthAnswer,
    also=(503,),
)
METRICS = Route(
    name="get_metrics",
    method="GET",
    path="/metrics",
    summary="Metrics for Prometheus.",
    scopes=(Scope.READ,),
    for_operators=True,
    answer=str,
    media_type="text/plain",
    errors=(errors.RouteNotFound,),
)
OPENAPI = Route(
    name="get_openapi",
    method="GET",
    path=f"{V1}/openapi.json",
    summary="This API as an OpenAPI 3.1 document.",
    is_open=True,
    answer=dict[str, Any],
)
PROBLEM = Route(
    name="get_problem",
    method="GET",
    path=f"{V1}/problems/{{slug}}",
    summary="What the code of a problem means.",
    is_open=True,
    answer=ProblemAnswer,
    errors=(errors.RouteNotFound,),
)
TIME = Route(
    name="get_time",
    method="GET",
    path=f"{V1}/time",
    summary="The store's time.",
    answer=TimeAnswer,
)
ROUTES = (LIVE, READY, HEALTH, TIME, METRICS, OPENAPI, PROBLEM)
