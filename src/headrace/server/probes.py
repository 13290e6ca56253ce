"""Handlers of the routes about the server itself."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from headrace.api import probes as api
from headrace.api import problems
from headrace.errors import HeadraceError, RouteNotFound
from headrace.server.call import Call, Handlers, Reply

_STORE_SECONDS = 3.0


async def live(call: Call[None, None]) -> api.HealthAnswer:  # noqa: ARG001 - one signature for all
    return api.HealthAnswer(ok=True)


async def ready(call: Call[None, None]) -> Reply:
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            await (await call.service.operator()).tail()
    except TimeoutError:
        why = f"the store has not answered for {_STORE_SECONDS:g} s"
        return Reply(api.HealthAnswer(ok=False, why=why), status=503)
    except HeadraceError as error:
        # What stands in the message (hosts, files) is for the log, not for whoever can connect.
        return Reply(api.HealthAnswer(ok=False, why=type(error).__name__), status=503)
    return Reply(api.HealthAnswer(ok=True))


async def time(call: Call[None, None]) -> api.TimeAnswer:
    return api.TimeAnswer(at=call.manager.clock.now())


async def metrics(call: Call[None, None]) -> Reply:
    try:
        from headrace.telemetry.exposition import store_scrape  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise RouteNotFound("metrics need headrace[prometheus] where the server runs") from error
    accept = call.request.headers.get("accept", "")
    content_type, text = store_scrape(await call.manager.overview(), accept)
    return Reply(text, media_type=content_type)


async def openapi(call: Call[None, None]) -> Mapping[str, Any]:
    from headrace.server.openapi import document  # noqa: PLC0415 - it reads the table of handlers

    return document(call.root_path)


async def problem(call: Call[None, None]) -> api.ProblemAnswer:
    for kind in problems.all_errors():
        if problems.slug(kind.code) == call["slug"] and "code" in vars(kind):
            return api.ProblemAnswer(
                code=kind.code,
                status=problems.status_of(kind),
                title=problems.title_of(kind),
                meaning=inspect.cleandoc(kind.__doc__ or ""),
            )
    raise RouteNotFound("no problem has this name")


HANDLERS: Handlers = {
    api.LIVE: live,
    api.READY: ready,
    api.HEALTH: ready,
    api.TIME: time,
    api.METRICS: metrics,
    api.OPENAPI: openapi,
    api.PROBLEM: problem,
}
