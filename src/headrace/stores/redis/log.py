"""The event log: packing events, reading on from a cursor, and what a cursor is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import from_us, to_us
from headrace.errors import InvalidCursor, LogTrimmed
from headrace.model import Category, Event
from headrace.stores.base import EventQuery
from headrace.stores.redis.codes import KIND_CODE, KIND_OF, STATE_CODE, STATE_OF
from headrace.stores.redis.connection import Server
from headrace.stores.redis.lanes import Lane, read_lanes
from headrace.stores.redis.scripts import Script

_EVENTS = Script("events")
_HISTORY = Script("history")
_TRIM = Script("trim")

_PAGE = 2000  # events of one script call
_SEQ_MAX = 2**63 - 1
_FIELDS = 20
_LINK_BYTES = 12  # lane and the job's event before, put in front by the server

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_CATEGORY_OF = {str(category): category for category in Category}


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
    category = event.category
    fields = [
        to_us(event.at),
        event.job_id,
        KIND_CODE[event.kind],
        None if event.before is None else STATE_CODE[event.before],
        STATE_CODE[event.after],
        event.version,
        event.attempt,
        event.failures,
        event.losses,
        to_us(event.run_at),
        event.worker,
        None if event.lease_until is None else to_us(event.lease_until),
        event.wait_us,
        event.run_us,
        event.result_bytes,
        None if category is None else str(category),
        event.code,
        event.message,
        event.payload_bytes,
        event.detail_json,
    ]
    while fields[-1] is None:
        fields.pop()
    return _encode(fields)


def _read_events(flat: Sequence[Any], lanes: dict[int, Lane]) -> Iterator[Event]:
    for seq, lane, packed in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        yield _read_event(int(seq), lanes[int(lane)], _decode(memoryview(packed)[_LINK_BYTES:]))


def _read_event(seq: int, lane: Lane, fields: list[Any]) -> Event:
    # A script writes false where there is nothing: a hole would end its list.
    fields = [None if field is False else field for field in fields]
    fields += [None] * (_FIELDS - len(fields))
    (
        at,
        job_id,
        kind,
        before,
        after,
        version,
        attempt,
        failures,
        losses,
        run_at,
        worker,
        lease_until,
        wait_us,
        run_us,
        result_bytes,
        category,
        code,
        message,
        payload_bytes,
        detail,
    ) = fields
    return Event(
        seq=seq,
        cursor=str(seq),
        at=from_us(at),
        tenant=lane.tenant,
        queue=lane.queue,
        type=lane.type,
        job_id=job_id,
        kind=KIND_OF[kind],
        before=None if before is None else STATE_OF[before],
        after=STATE_OF[after],
        version=version,
        attempt=attempt,
        failures=failures,
        losses=losses,
        priority=lane.priority,
        run_at=from_us(run_at),
        worker=worker,
        lease_until=None if lease_until is None else from_us(lease_until),
        category=None if category is None else _CATEGORY_OF[category],
        code=code,
        message=message,
        wait_us=wait_us,
        run_us=run_us,
        payload_bytes=payload_bytes,
        result_bytes=result_bytes,
        detail_json=detail,
    )
