"""What has changed, told to browsers: one stream for all tabs of a viewer, from the one reader of the log.

It says what was touched, never what it is: a page that shows it asks for itself again, with its own rights.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headrace.dashboard.rendering import HEADERS
from headrace.manager import JobManager
from headrace.model import Event
from headrace.server.hub import Missed, Reset, View
from headrace.server.service import Service

JOBS_TOLD = 200
"""More jobs than this at once: every page that shows jobs looks."""
QUIET_SECONDS = 15.0
"""A comment this often, so that proxies keep the stream open."""


def told(events: Sequence[Event], tenant: str | None) -> bytes:
    """One message for some events: its id is where a stream goes on."""
    own = [event for event in events if tenant in (None, event.tenant)]
    if not own:
        return b""
    jobs = sorted({event.job_id for event in own})
    topics = {
        "jobs": jobs if len(jobs) <= JOBS_TOLD else None,
        "queues": sorted({event.queue for event in own}),
        "types": sorted({event.type for event in own}),
        "events": len(own),
    }
    return message("changed", topics, own[-1].cursor)


def message(kind: str, data: object, cursor: str | None = None) -> bytes:
    head = "" if cursor is None else f"id: {cursor}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


async def stream(service: Service, manager: JobManager, request: Request) -> Response:
    """Server-sent events: `changed`, and `missed` where the reader was too slow or the log was trimmed."""
    tenant = manager.tenant
    view = View(("changes", tenant), lambda events: told(events, tenant))
    after = request.headers.get("last-event-id")

    async def pieces() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        yield message("hello", {})
        quiet = 0.0
        async for piece in service.hub.stream(manager, view, after):
            match piece:
                case None:
                    quiet += 1.0
                    if quiet >= QUIET_SECONDS:
                        quiet = 0.0
                        if await service.access(request) is None:
                            return
                        yield b": quiet\n\n"
                case Missed(upto=upto):
                    yield message("missed", {}, upto)
                case Reset(start=start):
                    yield message("missed", {}, start)
                case _:
                    yield piece

    return StreamingResponse(
        pieces(),
        media_type="text/event-stream",
        headers={**HEADERS, "X-Accel-Buffering": "no"},
    )
