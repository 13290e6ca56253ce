"""The routes of the event log: pages of it, and streams."""

from __future__ import annotations

import msgspec

from headrace import errors
from headrace.api.jobs import EventsAnswer
from headrace.api.route import V1, Route
from headrace.model import EventKind
from headrace.tokens import Scope

LAST_EVENT_HEADER = "Last-Event-ID"


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events. A filter may be given several times: any of its values will do."""

    after: str | None = None
    """A cursor: what comes behind it. A page begins at the beginning without one, a stream at the end."""
    job: tuple[str, ...] | None = None
    queue: tuple[str, ...] | None = None
    type: tuple[str, ...] | None = None
    kind: tuple[EventKind, ...] | None = None
    limit: int = 1000
    """How many events a page looks at."""
    wait_seconds: float = 0.0
    """Where there are none, wait for some for so long; 30 at most."""


EVENTS = Route(
    name="list_events",
    method="GET",
    path=f"{V1}/events",
    summary="The event log: a page of it, or a stream for who accepts text/event-stream.",
    scopes=(Scope.READ,),
    query=LogQuery,
    answer=EventsAnswer,
    waits=True,
    headers=(LAST_EVENT_HEADER,),
    errors=(errors.LogTrimmed, errors.TooManyRequests),
)
LIVE = Route(
    name="stream_topics",
    method="GET",
    path=f"{V1}/live",
    summary="A stream of what has changed: queues, jobs and kinds of events, without the events themselves.",
    scopes=(Scope.READ,),
    media_type="text/event-stream",
    answer=str,
    headers=(LAST_EVENT_HEADER,),
    errors=(errors.TooManyRequests,),
)
ROUTES = (EVENTS, LIVE)
