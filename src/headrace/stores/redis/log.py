"""The event log: packing events, reading on from a cursor, and what a cursor is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace.errors import InvalidCursor, LogTrimmed
from headrace.model import Event
from headrace.stores.base import EventQuery
from headrace.stores.codec import CATEGORY_OF, Dialect, reader, writer
from headrace.stores.columns import EVENT, Kind, named
from headrace.stores.redis.codes import KIND_CODE, KIND_OF, STATE_CODE, STATE_OF
from headrace.stores.redis.connection import Server
from headrace.stores.redis.lanes import Lane, read_lanes
from headrace.stores.redis.rows import from_us, to_us
from headrace.stores.redis.scripts import Script

_EVENTS = Script("events")
_HISTORY = Script("history")
_TRIM = Script("trim")

_PAGE = 2000  # events of one script call
_SEQ_MAX = 2**63 - 1
_LINK_BYTES = 12  # lane and the job's event before, put in front by the server

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

_COLUMNS = named(
    EVENT,
    *("at", "job_id", "kind", "before", "after", "version", "attempt", "failures", "losses"),
    *("run_at", "worker", "lease_until", "wait_us", "run_us", "result_bytes", "category"),
    *("code", "message", "payload_bytes", "detail"),
)
"""In the order of the packed list, which lease.lua has as well; those that are rarely set come last."""
_LETTERS = Dialect(
    reads={
        Kind.TIME: from_us,
        Kind.STATE: STATE_OF,
        Kind.EVENT_KIND: KIND_OF,
        Kind.CATEGORY: CATEGORY_OF,
    },
    writes={
        Kind.TIME: to_us,
        Kind.STATE: STATE_CODE,
        Kind.EVENT_KIND: KIND_CODE,
        Kind.CATEGORY: str,
    },
)
_event_row = writer(_COLUMNS, dialect=_LETTERS)
_event_of = reader(
    Event,
    named(EVENT, "seq", "lane"),
    _COLUMNS,
    dialect=_LETTERS,
    computed={"cursor": "str(seq)"},
)


def position(cursor: str) -> int:
    """The seq after which the cursor resumes. A cursor is the seq of the last event seen, as text."""
    if cursor == "":
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return min(int(cursor), _SEQ_MAX)


async def events(server: Server, query: EventQuery) -> list[Event]:
    if query.job_id is not None:
        return await _history(server, query, query.job_id)
    found: list[Event] = []
    after: int | bytes = position(query.after)
    more = True
    while more and len(found) < query.limit:
        goes_on = query.after != "" or bool(found)
        answer = await server.read_script(
            _EVENTS, after, min(_PAGE, query.limit - len(found)), query.tenant or "", int(goes_on)
        )
        if len(answer) == 1:
            if found:
                break  # trimmed between two pages: so far there is no gap, and the next read is told
            raise LogTrimmed(query.after, str(answer[0]))
        lanes, flat, after, more = answer
        found += _read_events(flat, read_lanes(lanes))
    return found


async def tail(server: Server) -> str:
    """The cursor of the log's present end."""
    seq = await server.read("HGET", server.keys.of("sequences"), "events")
    return "" if seq in (None, b"0") else str(int(seq))


async def trim(server: Server, upto: Sequence[str], before: datetime, limit: int) -> int:
    last = min(map(position, upto), default=_SEQ_MAX)
    return int(await server.write_script(_TRIM, last, to_us(before), max(limit, 0)))


async def _history(server: Server, query: EventQuery, job_id: str) -> list[Event]:
    """The job's events from the newest back; of those after the cursor, the first `limit`."""
    start = position(query.after)
    oldest: deque[Event] = deque(maxlen=max(query.limit, 0))
    at = 0
    while True:
        lanes, flat, at = await server.read_script(_HISTORY, job_id, start, _PAGE, at)
        for event in _read_events(flat, read_lanes(lanes)):
            if query.tenant in (None, event.tenant):
                oldest.append(event)
        if at == 0:
            return list(reversed(oldest))


def pack_event(event: Event) -> bytes:
    """An event without what its lane says; the last fields are left out where there is nothing."""
    fields = list(_event_row(event))
    while fields[-1] is None:
        fields.pop()
    return _encode(fields)


def _read_events(flat: Sequence[Any], lanes: dict[int, Lane]) -> Iterator[Event]:
    for seq, lane, packed in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        # A script writes false where there is nothing: a hole would end its list.
        fields = [
            None if field is False else field for field in _decode(memoryview(packed)[_LINK_BYTES:])
        ]
        fields += [None] * (len(_COLUMNS) - len(fields))
        yield _event_of((int(seq), int(lane)), fields, lanes.__getitem__)
