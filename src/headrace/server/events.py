"""Handlers of the routes of the event log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from headrace import validation
from headrace.api import events as api
from headrace.api.jobs import EventsAnswer, event_answer, events_answer
from headrace.errors import InvalidLimit
from headrace.event_record import event_record
from headrace.model import Event
from headrace.server.access import secret_in
from headrace.server.call import Call, Handlers, Stream
from headrace.server.hub import Missed, Reset, View

RETRY_MS = 2000
"""A browser that has lost its stream comes again after so long."""
WAIT_SECONDS_MAX = 30.0
QUIET_SECONDS = 15.0
"""After so long without an event a comment keeps proxies from closing the stream."""
NAMES_MAX = 200
"""So many jobs does a message of /live name; beyond, it says that there are more."""
_ACCEPT = "text/event-stream"


async def events(call: Call[api.LogQuery, None]) -> EventsAnswer | Stream:
    if not 0 <= call.query.wait_seconds <= WAIT_SECONDS_MAX:
        raise InvalidLimit(f"a wait takes 0 to {WAIT_SECONDS_MAX:g} seconds; nothing was changed")
    if _ACCEPT in call.request.headers.get("accept", ""):
        return _stream(call, _view(call), call.query.after)
    query = call.query
    limit = validation.check_limit(query.limit, "limit", maximum=call.service.bounds.page_jobs_max)
    after = query.after or ""
    if after == "end":
        return EventsAnswer(events=(), cursor=await call.manager.tail())
    only = query.job[0] if query.job is not None and len(query.job) == 1 else None
    found = await call.service.hub.events(
        lambda: call.manager.events(after=after, job_id=only, limit=limit), query.wait_seconds
    )
    contents = call.access.sees_contents
    looked_at = events_answer(found, after, contents=contents)
    shown = tuple(
        record for event, record in zip(found, looked_at.events, strict=True) if _fits(query, event)
    )
    return msgspec.structs.replace(looked_at, events=shown)


def _fits(query: api.LogQuery, event: Event) -> bool:
    return (
        (query.job is None or event.job_id in query.job)
        and (query.queue is None or event.queue in query.queue)
        and (query.type is None or event.type in query.type)
        and (query.kind is None or event.kind in query.kind)
    )


def _view(call: Call[api.LogQuery, None]) -> View:
    query, tenant = msgspec.structs.replace(call.query, after=None), call.manager.tenant
    contents = call.access.sees_contents

    def render(events: Sequence[Event]) -> bytes:
        return b"".join(
            b"id: %s\nevent: %s\ndata: %s\n\n"
            % (
                event.cursor.encode(),
                event.kind.encode(),
                msgspec.json.encode(event_answer(event_record(event), contents=contents)),
            )
            for event in events
            if tenant in (None, event.tenant) and _fits(query, event)
        )

    return View(("events", tenant, contents, query), render)


async def live(call: Call[None, None]) -> Stream:
    """What has changed, in a few words: who shows it asks for what it shows."""
    tenant = call.manager.tenant

    def render(events: Sequence[Event]) -> bytes:
        own = [event for event in events if tenant in (None, event.tenant)]
        if not own:
            return b""
        jobs = list(dict.fromkeys(event.job_id for event in own))
        topics = {
            "queues": sorted({event.queue for event in own}),
            "kinds": sorted({event.kind for event in own}),
            "jobs": jobs[:NAMES_MAX],
            "more_jobs": len(jobs) > NAMES_MAX,
        }
        return b"id: %s\nevent: changed\ndata: %s\n\n" % (
            own[-1].cursor.encode(),
            msgspec.json.encode(topics),
        )

    return _stream(call, View(("live", tenant), render), None)


def _stream(call: Call[Any, Any], view: View, after: str | None) -> Stream:
    last = call.request.headers.get(api.LAST_EVENT_HEADER)
    start = last if last is not None else after
    if start == "end":
        start = None
    return Stream(_pieces(call, view, start))


async def _pieces(call: Call[Any, Any], view: View, after: str | None) -> AsyncIterator[bytes]:
    """The stream with what holds it together, for as long as whoever reads it may."""
    streams = call.service.streams_of(call.access)
    call.service.hub.check_room()
    with streams:
        stream = call.service.hub.stream(call.manager, view, after)
        await anext(stream)
        yield b"retry: %d\n\n" % RETRY_MS
        told_at = checked_at = time.monotonic()
        async for piece in stream:
            now = time.monotonic()
            if now - checked_at >= 1.0:
                checked_at = now
                if not await _is_good(call):
                    yield b"event: ended\ndata: {}\n\n"
                    return
            match piece:
                case None:
                    if now - told_at < QUIET_SECONDS:
                        continue
                    yield b": still here\n\n"
                case Missed():
                    yield _notice(b"missed", piece)
                case Reset():
                    yield _notice(b"reset", piece)
                case bytes():
                    yield piece
            told_at = now


def _notice(kind: bytes, what: msgspec.Struct) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind, msgspec.json.encode(what))


async def _is_good(call: Call[Any, Any]) -> bool:
    """Whether the token that opened the stream would open it still."""
    if call.access.token_id is None:
        return True
    secret, _ = secret_in(call.request)
    access = None if secret is None else await call.service.access_by_secret(secret)
    return access is not None and access.may(*call.route.scopes)


HANDLERS: Handlers = {api.EVENTS: events, api.LIVE: live}
