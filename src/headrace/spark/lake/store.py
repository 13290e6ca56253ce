"""The store behind the lake, as the pipeline's driver uses it: its identity, and how far we hold its log."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from headrace.app.bridge import LoopThread
from headrace.connect import connect
from headrace.errors import InvalidInput
from headrace.manager import JobManager
from headrace.model import Event, Job
from headrace.spark.source.options import RETRY_SECONDS
from headrace.spark.source.patience import patiently
from headrace.stores.base import EventQuery, Record

_Answer = TypeVar("_Answer")

_loop = LoopThread()
_KIND = "store"
_NAME = "identity"


class _Body(msgspec.Struct, frozen=True):
    id: str


class Store:
    """Opened for a run, closed after it. Callable from any thread without an event loop.

    Once it is open, a store that is away for a moment is waited for, as the stream does.
    """

    def __init__(self, url: str) -> None:
        if url.startswith("memory:"):
            raise InvalidInput(
                "a memory: store lives in one process and Spark's executors are others: they cannot see "
                "it; nothing was read: use sqlite:///path, postgresql://… or redis://…"
            )
        self._manager: JobManager = _loop.run(connect(url, create=False))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _loop.run(self._manager.close())

    def id(self) -> str:
        """Stays with the store wherever its url leads; given to it when it is first asked for."""
        return _asked(lambda: _identity(self._manager))

    def known_id(self) -> str | None:
        """As `id`, but a store that nobody has asked yet is left without one."""
        return _asked(lambda: known_identity(self._manager))

    def tail(self) -> str:
        """The cursor of the log's present end."""
        return _asked(self._manager.tail)

    def event_at(self, cursor: str) -> Event | None:
        """The event with this cursor; None if the log holds none there. Raises LogTrimmed."""
        numbers, colon, last = cursor.rpartition(":")
        query = EventQuery(after=f"{numbers}{colon}{int(last) - 1}", limit=1)
        found = _asked(lambda: self._manager.store.events(query))
        return found[0] if found and found[0].cursor == cursor else None

    def reached(self, lake_id: str, cursor: str, label: str) -> None:
        """The lake holds the log up to here: it may be trimmed so far."""
        _asked(lambda: self._manager.reader_reached(reader_of(lake_id), cursor, label=label))

    def jobs(self, ids: Sequence[str]) -> Mapping[str, Job]:
        """Those that the store still holds."""
        return _asked(lambda: self._manager.store.get(ids))

    def record(self, kind: str, name: str) -> Record:
        """As stored, or one of version 0."""
        found = _asked(lambda: self._manager.store.records(kind, [name]))
        return found[0] if found else Record(kind=kind, name=name)

    def put_record(self, record: Record) -> bool:
        """Store it, if it is still at the version it was read at."""
        return _asked(lambda: self._manager.store.put_record(record))


def _asked(ask: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
    return patiently(lambda: _loop.run(ask()), RETRY_SECONDS)


def reader_of(lake_id: str) -> str:
    """The name under which the store knows the lake as a reader of its log."""
    return f"lake:{lake_id}"


async def _identity(manager: JobManager) -> str:
    fresh = _Body(str(uuid.uuid4()))
    await manager.store.put_record(
        Record(kind=_KIND, name=_NAME, body_json=msgspec.json.encode(fresh))
    )
    # Whoever came first has named it.
    named = await known_identity(manager)
    assert named is not None
    return named


async def known_identity(manager: JobManager) -> str | None:
    """The identity that the store was given. None: nobody has asked for it yet, so it has no lake."""
    found = await manager.store.records(_KIND, [_NAME])
    return msgspec.json.decode(found[0].body_json, type=_Body).id if found else None
