"""The event log: reading on from a cursor, and what a cursor is.

An event's place is (transaction id, sequence number). Only what lies below the oldest transaction that
still writes may be read: above it, a late commit could yet step in between. So one long transaction that
has written anything, anywhere in the server, holds the log back for everybody; it holds no claim back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from headrace.errors import InvalidCursor, LogTrimmed
from headrace.model import Event
from headrace.stores.base import EventQuery
from headrace.stores.postgres.lanes import Lanes
from headrace.stores.postgres.rows import read_event
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import storable_or_none

SETTLE_SECONDS = 0.25
"""A reader that meets events it may not read yet waits this long for them: mostly the transaction in the
way is about to end, and then whoever has just written sees what it wrote."""

_FIRST_PAUSE_SECONDS = 0.002
_XID_MAX = 2**64 - 1
_SEQ_MAX = 2**63 - 1
_LANE = 3


class Position(NamedTuple):
    xid: int
    seq: int


BEGINNING = Position(0, 0)


def position(cursor: str) -> Position:
    """Where the cursor resumes: behind the event with this place."""
    if cursor == "":
        return BEGINNING
    xid, colon, seq = cursor.partition(":")
    if not (colon and cursor.isascii() and xid.isdigit() and seq.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    place = Position(int(xid), int(seq))
    if place.xid > _XID_MAX or place.seq > _SEQ_MAX:
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return place


async def events(session: Session, lanes: Lanes, wanted: EventQuery) -> list[Event]:
    place = position(wanted.after)
    after = (str(place.xid), place.seq) if wanted.after else (None, None)
    job_id = storable_or_none(wanted.job_id)
    patience = _Patience()
    while True:
        rows = await session.read("events", *after, wanted.tenant, max(wanted.limit, 0), job_id)
        if rows and rows[0][-1] is None:
            raise LogTrimmed(wanted.after, f"{rows[0][0]}:{rows[0][1]}")
        readable = [row for row in rows if row[-1]]
        if len(readable) == len(rows) or not await patience.wait():
            await lanes.know({row[_LANE] for row in readable})
            return [read_event(row, lanes.key) for row in readable]


async def tail(session: Session) -> str:
    """The cursor of the last event that may be read."""
    patience = _Patience()
    may_wait = True
    while True:
        rows = await session.read("tail", not may_wait)
        if not rows:
            return ""
        ((xid, seq, readable),) = rows
        if readable:
            return f"{xid}:{seq}"
        may_wait = await patience.wait()


async def trim(session: Session, upto: Sequence[str], before: datetime, limit: int) -> int:
    last = min(map(position, upto), default=None)
    place = (None, None) if last is None else (str(last.xid), last.seq)
    ((gone,),) = await session.write("trim", *place, before, max(limit, 0))
    return int(gone)


async def has_grown(session: Session, after: Position) -> bool:
    ((grown,),) = await session.read("has_grown", str(after.xid), after.seq)
    return bool(grown)


class _Patience:
    """Growing pauses that end after SETTLE_SECONDS."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SETTLE_SECONDS
        self._pause = _FIRST_PAUSE_SECONDS

    async def wait(self) -> bool:
        """False: it has been long enough."""
        left = self._end - time.monotonic()
        if left <= 0:
            return False
        await asyncio.sleep(min(left, self._pause))
        self._pause *= 1.5
        return True
