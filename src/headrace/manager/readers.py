"""The readers of the log: who relies on it, and up to where each holds it by itself. A record each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from headrace import validation
from headrace.errors import InvalidInput, LogTrimmed, StoreCorrupt
from headrace.manager.context import Context
from headrace.manager.records import change_record
from headrace.model import Event
from headrace.stores.base import EventQuery, Record

KIND = "reader"
LABEL_CHARS_MAX = 1000
BEHIND_MAX = 1000
"""How far a reader is behind is counted up to this: past it the number says no more."""


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever relies on the log: nothing is trimmed that it does not hold."""

    name: str
    cursor: str
    """Up to here it holds everything, also after a crash. "": nothing yet."""
    label: str | None = None
    """What it is, for people: a lake's folder."""
    since: datetime
    """When it was first heard of."""
    reached_at: datetime
    """When it was last heard of."""


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a reader is behind the end of the log."""

    events: int
    at_least: bool = False
    """There are more than those."""
    oldest_at: datetime | None = None
    """The time of the first event that it does not hold. None: it holds all there is."""
    trimmed: bool = False
    """Events that it does not hold are gone: they were trimmed before it was heard of, or went back."""


async def reached(context: Context, name: str, cursor: str, label: str | None) -> Reader:
    check_operator(context)
    validation.check_name(name, "reader")
    validation.check_message(cursor, "the cursor")
    if label is not None:
        validation.check_text(label, "the label", LABEL_CHARS_MAX)
    # A cursor that is none, or from before what was trimmed, is refused by whoever reads there.
    await context.store.events(EventQuery(after=cursor, limit=1))

    def decide(record: Record) -> tuple[Record, Reader]:
        now = context.now()
        known = _read(record) if record.version else None
        reader = Reader(
            name=name,
            cursor=cursor,
            label=known.label if label is None and known is not None else label,
            since=now if known is None else known.since,
            reached_at=now,
        )
        return replace(record, body_json=msgspec.json.encode(reader)), reader

    return await change_record(context.store, KIND, name, decide, what=f"reader {name}")


async def find_all(context: Context) -> tuple[Reader, ...]:
    """In order of name."""
    check_operator(context)
    return tuple(_read(record) for record in await context.store.records(KIND))


async def forget(context: Context, name: str) -> bool:
    """True if there was one."""
    check_operator(context)
    return await change_record(
        context.store,
        KIND,
        name,
        lambda record: (None, bool(record.version)),
        what=f"reader {name}",
    )


async def lag_of(context: Context, reader: Reader) -> Lag:
    check_operator(context)
    try:
        query = EventQuery(after=reader.cursor, limit=BEHIND_MAX + 1)
        missing = await context.store.events(query)
    except LogTrimmed:
        missing = await context.store.events(EventQuery(limit=BEHIND_MAX + 1))
        return msgspec.structs.replace(_lag(missing), trimmed=True)
    return _lag(missing)


async def first_missing(context: Context, reader: Reader) -> Event | None:
    """The first event of the log that the reader does not hold. None: it holds all there is."""
    try:
        found = await context.store.events(EventQuery(after=reader.cursor, limit=1))
    except LogTrimmed:
        found = await context.store.events(EventQuery(limit=1))
    return found[0] if found else None


def check_operator(context: Context) -> None:
    if context.tenant is not None:
        raise InvalidInput(
            "the log is that of all tenants: who acts for one of them can neither trim it nor speak for its "
            f"readers; {validation.UNCHANGED}"
        )


def _lag(missing: Sequence[Event]) -> Lag:
    return Lag(
        events=min(len(missing), BEHIND_MAX),
        at_least=len(missing) > BEHIND_MAX,
        oldest_at=missing[0].at if missing else None,
    )


def _read(record: Record) -> Reader:
    try:
        return msgspec.json.decode(record.body_json, type=Reader)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"reader {record.name} cannot be read ({error}); it was left as it is: let whoever reads the log "
            f"report again, or headrace events forget {record.name}"
        ) from error
