"""The event log in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice, takewhile

from msgspec.structs import replace

from headrace.errors import InvalidCursor, LogTrimmed
from headrace.model import Event
from headrace.stores.base import EventQuery
from headrace.stores.memory.wait import Waiters


class Log:
    def __init__(self) -> None:
        self._events: list[Event] = []
        self._trimmed = 0  # so many are gone: the seq of the last of them
        self._events_of: dict[str, list[Event]] = {}
        self.waiters = Waiters()

    def append(self, event: Event) -> None:
        seq = self._end + 1
        logged = replace(event, seq=seq, cursor=str(seq))
        self._events.append(logged)
        self._events_of.setdefault(event.job_id, []).append(logged)

    def read(self, query: EventQuery) -> list[Event]:
        start = _position(query.after)
        log: Iterable[Event]
        if query.job_id is not None:
            log = (event for event in self._events_of.get(query.job_id, ()) if event.seq > start)
        else:
            if query.after and start < self._trimmed:
                raise LogTrimmed(query.after, str(self._trimmed))
            first = max(start - self._trimmed, 0)
            log = (self._events[index] for index in range(first, len(self._events)))
        found: list[Event] = []
        for event in log:
            if len(found) >= query.limit:
                break
            if query.tenant in (None, event.tenant):
                found.append(event)
        return found

    def tail(self) -> str:
        return str(self._end) if self._end else ""

    def trim(self, upto: Sequence[str], before: datetime, limit: int) -> int:
        last = min(map(_position, upto), default=self._end)
        going = takewhile(lambda event: event.seq <= last and event.at < before, self._events)
        gone = list(islice(going, max(limit, 0)))
        for event in gone:
            of_job = self._events_of[event.job_id]
            of_job.remove(event)
            if not of_job:
                del self._events_of[event.job_id]
        del self._events[: len(gone)]
        self._trimmed += len(gone)
        return len(gone)

    def wake(self) -> None:
        self.waiters.wake()

    def has_more(self, after: str) -> bool:
        return _position(after) < self._end

    @property
    def _end(self) -> int:
        """The seq of the last event there ever was."""
        return self._trimmed + len(self._events)


def _position(cursor: str) -> int:
    if cursor == "":
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return int(cursor)
