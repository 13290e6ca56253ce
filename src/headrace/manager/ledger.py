"""Rows in order of time, kept for so many days: a record per day, and more for a day with many rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from headrace.errors import StoreCorrupt
from headrace.manager.context import Context
from headrace.manager.records import Again, retried
from headrace.stores.base import Record

LOOK_BACK_DAYS = 365
"""What is too old is looked for this far back, whenever a new day begins."""
_ONE_DAY = timedelta(days=1)

Row = TypeVar("Row", bound=msgspec.Struct)


class Page(msgspec.Struct, Generic[Row]):
    rows: list[Row] = []
    dropped: int = 0
    """Rows for which there was no room any more."""


class Ledger(Generic[Row]):
    """One kind of rows. Whoever appends also forgets what is too old."""

    def __init__(
        self, kind: str, row: type[Row], *, keep_days: int, rows_max: int, pages_max: int
    ) -> None:
        self._kind = kind
        self._keep_days = keep_days
        self._rows_max = rows_max
        self._pages_max = pages_max
        self._decode = msgspec.json.Decoder(Page[row]).decode  # type: ignore[valid-type]

    async def append(self, context: Context, rows: list[Row], at: datetime) -> None:
        """All of them on that day. Where it is full they are only counted."""
        day = at.astimezone(UTC).date()

        async def once() -> None:
            pages = await self._pages_of(context, day)
            number = max(len(pages) - 1, 0)
            if (
                pages
                and len(pages[number][1].rows) >= self._rows_max
                and len(pages) < self._pages_max
            ):
                number += 1
            if number < len(pages):
                record, page = pages[number]
            else:
                record, page = Record(kind=self._kind, name=_name(day, number)), Page[Row]()
            room = max(self._rows_max - len(page.rows), 0)
            full = Page[Row](
                rows=[*page.rows, *rows[:room]], dropped=page.dropped + len(rows[room:])
            )
            body = msgspec.json.encode(full)
            if not await context.store.put_record(replace(record, body_json=body)):
                raise Again
            if record.version == 0 and number == 0:
                await self._forget(context, day)

        await retried(once, f"the {self._kind} of {day} kept changing; nothing was added to it")

    async def change(
        self, context: Context, at: datetime, decide: Callable[[Row], Row | None]
    ) -> None:
        """Put what `decide` makes of a row of that day in its place (None: it is left)."""
        day = at.astimezone(UTC).date()

        async def once() -> None:
            for record, page in await self._pages_of(context, day):
                rows = [decide(row) or row for row in page.rows]
                if rows != page.rows:
                    body = msgspec.json.encode(Page[Row](rows=rows, dropped=page.dropped))
                    if not await context.store.put_record(replace(record, body_json=body)):
                        raise Again

        await retried(once, f"the {self._kind} of {day} kept changing; it was left as it was")

    async def read(self, context: Context, since: datetime, until: datetime) -> Page[Row]:
        """The rows of all days that this time has a part in, oldest first."""
        first = max(since, until - _ONE_DAY * self._keep_days).astimezone(UTC).date()
        last = until.astimezone(UTC).date()
        days = [first + _ONE_DAY * number for number in range((last - first).days + 1)]
        names = [_name(day, 0) for day in days]
        found: dict[str, Page[Row]] = {}
        while names:
            pages = {
                record.name: self._read(record)
                for record in await context.store.records(self._kind, names)
            }
            found |= pages
            names = [
                _next(name) for name, page in pages.items() if len(page.rows) >= self._rows_max
            ]
        whole = Page[Row]()
        whole.rows = [row for name in sorted(found) for row in found[name].rows]
        whole.dropped = sum(page.dropped for page in found.values())
        return whole

    async def _pages_of(self, context: Context, day: date) -> list[tuple[Record, Page[Row]]]:
        names = [_name(day, number) for number in range(self._pages_max)]
        found = await context.store.records(self._kind, names)
        return [(record, self._read(record)) for record in found]

    async def _forget(self, context: Context, today: date) -> None:
        old = [today - _ONE_DAY * (self._keep_days + number) for number in range(LOOK_BACK_DAYS)]
        names = [_name(day, number) for day in old for number in range(self._pages_max)]
        for record in await context.store.records(self._kind, names):
            await context.store.delete_record(record)

    def _read(self, record: Record) -> Page[Row]:
        try:
            return self._decode(record.body_json)
        except msgspec.DecodeError as error:
            raise StoreCorrupt(
                f"the {self._kind} of {record.name} cannot be read ({error}); it was left as it is"
            ) from error


def _name(day: date, number: int) -> str:
    return f"{day.isoformat()}-{number:02}"


def _next(name: str) -> str:
    day, _, number = name.rpartition("-")
    return f"{day}-{int(number) + 1:02}"
