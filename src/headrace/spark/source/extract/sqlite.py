"""A SQLite file through ADBC.

The driver takes a column's type from the first batch, and a column that is empty there would be taken
for numbers. So every long query begins with a row of the right types, which is taken off again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adbc_driver_sqlite.dbapi
import pyarrow as pa
from adbc_driver_sqlite import StatementOptions

from headrace.clock import to_us
from headrace.errors import InvalidCursor
from headrace.spark.source.extract.adbc import Connection, answer, batches, translated
from headrace.spark.source.extract.base import Pieces, Slice, Table
from headrace.spark.source.extract.ranges import even_cuts
from headrace.spark.source.extract.shape import shaped
from headrace.spark.source.options import Predicates

_BATCH_ROWS = 32_768
_BUSY_MS = 30_000
_VIEW = {"events": "event_log"}
_TIME = {"events": "at"}
_COMPUTED = {"cursor": "CAST(seq AS TEXT)"}


@dataclass(frozen=True)
class SqliteExtract:
    path: Path
    where: str
    predicates: Predicates

    def log_end(self) -> str:
        with self._connection() as connection:
            ((last,),) = answer(connection, "SELECT max(seq) FROM event_log")
            return "" if last is None else str(last)

    def log_start(self) -> str:
        with self._connection() as connection:
            ((first,),) = answer(connection, "SELECT min(seq) FROM event_log")
            return "" if first is None or first == 1 else str(first - 1)

    def further(self, after: str, rows: int, upto: str) -> str:
        return str(min(place(after) + rows, place(upto)))

    def mark(self, cursor: str) -> str | None:
        with self._connection() as connection:
            found = answer(
                connection,
                "SELECT job_id, version, at FROM event_log WHERE seq = ?",
                (place(cursor),),
            )
            return " ".join(str(value) for value in found[0]) if found else None

    def cut_log(self, after: str, upto: str, pieces: Pieces) -> Sequence[Slice]:
        low, high = place(after), place(upto)
        cuts = even_cuts(low, high, pieces.count(high - low))
        return [Slice(str(start), str(end)) for start, end in cuts if end > start]

    def cut(self, table: Table, pieces: Pieces) -> Sequence[Slice]:
        if table != "events":
            raise NotImplementedError(table)
        return self.cut_log(self.log_start(), self.log_end(), pieces)

    def rows(self, table: Table, piece: Slice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        conditions = ["seq > ?", "seq <= ?", *_conditions(self.predicates, _TIME[table])]
        values = [place(piece.after), place(piece.upto), *_values(self.predicates)]
        selected = ", ".join(f"{_COMPUTED.get(name, _quoted(name))}" for name in columns.names)
        sql = (
            f"SELECT {_specimen(columns)} "  # noqa: S608 - our own words; values are bound
            f"UNION ALL SELECT {selected} FROM {_VIEW[table]} WHERE {' AND '.join(conditions)}"
        )
        settings = {StatementOptions.BATCH_ROWS.value: _BATCH_ROWS}
        with self._connection() as connection:
            found = batches(connection, sql, values, settings)
            yield from shaped(_without_first_row(found), columns)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Without `mode=rw`, a file that is not there would be made."""
        with (
            translated(self.where),
            closing(
                adbc_driver_sqlite.dbapi.connect(f"{self.path.as_uri()}?mode=rw")
            ) as connection,
        ):
            answer(connection, f"PRAGMA busy_timeout = {_BUSY_MS:d}")
            yield connection


def place(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return int(cursor or 0)


def _conditions(predicates: Predicates, time: str) -> list[str]:
    conditions = [
        f"{_quoted(name)} IN (SELECT value FROM json_each(?))"  # noqa: S608 - our own words
        for name in ("tenant", "queue", "type", "state")
        if getattr(predicates, name) is not None
    ]
    if predicates.since is not None:
        conditions.append(f"{time} >= ?")
    if predicates.until is not None:
        conditions.append(f"{time} < ?")
    return conditions


def _values(predicates: Predicates) -> list[Any]:
    """For `_conditions`, in the same order."""
    lists = (predicates.tenant, predicates.queue, predicates.type, predicates.state)
    times = (predicates.since, predicates.until)
    return [json.dumps(values) for values in lists if values is not None] + [
        to_us(moment) for moment in times if moment is not None
    ]


def _specimen(columns: pa.Schema) -> str:
    """A literal of each column's type as the file holds it."""
    return ", ".join(
        "''"
        if pa.types.is_string(field.type) or pa.types.is_list(field.type)
        else "0.0"
        if pa.types.is_floating(field.type)
        else "0"
        for field in columns
    )


def _without_first_row(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield next(found).slice(1)
    yield from found


def _quoted(name: str) -> str:
    return f'"{name}"'
