# ruff: noqa: S608 - the texts are put together from our own words and numbers; values are bound
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
import pyarrow.compute as pc
from adbc_driver_sqlite import StatementOptions

from headrace.clock import to_us
from headrace.errors import InvalidCursor, LogTrimmed
from headrace.spark.source.extract.adbc import Connection, answer, batches, translated
from headrace.spark.source.extract.base import (
    LIST_COLUMNS,
    TIME_COLUMN,
    Pieces,
    Slice,
    Table,
)
from headrace.spark.source.extract.ranges import (
    PROBE_ROWS,
    Probe,
    cut_by_probes,
    even_cuts,
    probe_starts,
)
from headrace.spark.source.extract.shape import shaped
from headrace.spark.source.options import Predicates

_BATCH_ROWS = 32_768
_BUSY_MS = 30_000
_VIEW = {"events": "event_log", "histories": "event_log", "jobs": "job_list"}
_PLACE = {"events": "seq", "histories": "job_seq", "jobs": "seq"}
_OF_LANE = frozenset({"tenant", "queue", "type", "priority"})
"""Of events: few different values in many rows, so they are put in here and not by a join."""
_COMPUTED = {"cursor": pa.int64()}
"""Made from the seq."""


@dataclass(frozen=True)
class SqliteExtract:
    path: Path
    where: str
    predicates: Predicates

    def place(self, cursor: str) -> int:
        return place(cursor)

    def log_end(self, *, settled: bool = False) -> str:  # noqa: ARG002 - writers take turns
        with self.connection() as connection:
            _, end = _log_ends(connection)
            return str(end or "")

    def log_start(self) -> str:
        with self.connection() as connection:
            start, _ = _log_ends(connection)
            return str(start or "")

    def further(self, after: str, rows: int, upto: str) -> str:
        return str(min(place(after) + rows, place(upto)))

    def mark(self, cursor: str) -> str | None:
        with self.connection() as connection:
            sql = "SELECT job_id, version, at FROM event_log WHERE seq = ?"
            found = answer(connection, sql, (place(cursor),))
            return " ".join(str(value) for value in found[0]) if found else None

    def cut_log(self, after: str, upto: str, pieces: Pieces) -> Sequence[Slice]:
        """Numbers of events have no gaps, so ranges of equal length hold equally many."""
        low, high = place(after), place(upto)
        cuts = even_cuts(low, high, pieces.count(high - low))
        return [Slice(str(start), str(end)) for start, end in cuts if end > start]

    def count_log(self, after: str, upto: str) -> tuple[int, int]:
        with self.connection() as connection:
            sql = "SELECT count(*), coalesce(sum(seq), 0) FROM event_log WHERE seq > ? AND seq <= ?"
            ((events, seqs),) = answer(connection, sql, (place(after), place(upto)))
            return int(events), int(seqs)

    def cut(self, table: Table, pieces: Pieces) -> Sequence[Slice]:
        if table == "events":
            return self.cut_log(self.log_start(), self.log_end(), pieces)
        with self.connection() as connection:
            first, last = _ends(connection, table)
            if not last:
                return []
            _, log_end = _log_ends(connection)
            probes = _probes(connection, table, first - 1, last)
            cuts = cut_by_probes(first - 1, last, probes, pieces)
            return [Slice(str(start), str(end), str(log_end or "")) for start, end in cuts]

    def rows(self, table: Table, piece: Slice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self.connection() as connection:
            if piece.unbroken:
                _check_unbroken(connection, piece)
            asked = _asked(table, columns)
            found = _without_first_row(self._batches(connection, table, piece, asked))
            if "lane" in asked.names:
                found = _spelled_out(found, columns.names, _lanes(connection))
            yield from shaped(found, columns)

    def _batches(
        self, connection: Connection, table: Table, piece: Slice, columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """As the driver hands them out, the row that tells the types first."""
        conditions = [f"{_PLACE[table]} > ?", f"{_PLACE[table]} <= ?"]
        values: list[Any] = [place(piece.after), place(piece.upto)]
        if table == "histories":
            conditions.append("seq <= ?")
            values.append(place(piece.log_end))
        for condition, value in _filters(self.predicates, table):
            conditions.append(condition)
            values.append(value)
        selected = ", ".join(
            "seq" if name in _COMPUTED else _quoted(name) for name in columns.names
        )
        sql = (
            f"SELECT {_specimen(columns)} "
            f"UNION ALL SELECT {selected} FROM {_VIEW[table]} WHERE {' AND '.join(conditions)}"
        )
        return batches(connection, sql, values, {StatementOptions.BATCH_ROWS.value: _BATCH_ROWS})

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """In one transaction, so that all its answers are of one moment."""
        # Without `mode=rw`, a file that is not there would be made.
        uri = f"{self.path.as_uri()}?mode=rw"
        with translated(self.where), closing(adbc_driver_sqlite.dbapi.connect(uri)) as connection:
            answer(connection, f"PRAGMA busy_timeout = {_BUSY_MS:d}")
            yield connection


def place(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return int(cursor or 0)


def _log_ends(connection: Connection) -> tuple[int, int]:
    ((start, end),) = answer(connection, 'SELECT "start", "end" FROM log_ends')
    return start, end


def _ends(connection: Connection, table: Table) -> tuple[int, int]:
    """The first and last place of a table; (1, 0) if it is empty."""
    number, view = _PLACE[table], _VIEW[table]
    # Not min and max: on a view of several tables they would walk all of it.
    ((first, last),) = answer(
        connection,
        f"SELECT (SELECT {number} FROM {view} ORDER BY {number} LIMIT 1), "
        f"(SELECT {number} FROM {view} ORDER BY {number} DESC LIMIT 1)",
    )
    return (1, 0) if first is None else (first, last)


def _probes(connection: Connection, table: Table, after: int, upto: int) -> list[Probe]:
    number, view = _PLACE[table], _VIEW[table]
    found = answer(
        connection,
        f"SELECT value, (SELECT json_array(max(n), count(*)) FROM (SELECT {number} AS n FROM {view} "
        f"WHERE {number} >= value ORDER BY {number} LIMIT {PROBE_ROWS:d})) FROM json_each(?)",
        (json.dumps(probe_starts(after, upto)),),
    )
    return [Probe(start, *json.loads(told)) for start, told in found]


def _check_unbroken(connection: Connection, piece: Slice) -> None:
    begin, _ = _log_ends(connection)
    if begin > place(piece.after):
        raise LogTrimmed(piece.after, str(begin))


def _filters(predicates: Predicates, table: Table) -> Iterator[tuple[str, Any]]:
    """Conditions, each with its value."""
    for name, column in LIST_COLUMNS[table].items():
        if (values := getattr(predicates, name)) is not None:
            yield f"{_quoted(column)} IN (SELECT value FROM json_each(?))", json.dumps(values)
    time = TIME_COLUMN.get(table)
    if time is not None and predicates.since is not None:
        yield f"{time} >= ?", to_us(predicates.since)
    if time is not None and predicates.until is not None:
        yield f"{time} < ?", to_us(predicates.until)


def _asked(table: Table, columns: pa.Schema) -> pa.Schema:
    """What the query gives instead: of events one number for all that the lane tells, and for the cursor."""
    if table == "jobs":
        return columns
    asked = [
        field.with_type(_COMPUTED.get(field.name, field.type))
        for field in columns
        if field.name not in _OF_LANE
    ]
    if len(asked) < len(columns):
        asked.append(pa.field("lane", pa.int64()))
    return pa.schema(asked)


def _lanes(connection: Connection) -> pa.Table:
    with closing(connection.cursor()) as cursor:
        cursor.execute("SELECT id, tenant, queue, type, priority FROM event_lanes")
        return cursor.fetch_arrow_table().combine_chunks()


def _spelled_out(
    found: Iterator[pa.RecordBatch], names: Sequence[str], lanes: pa.Table
) -> Iterator[pa.RecordBatch]:
    """The columns of these names, those of the lane by its number, which comes last."""
    for batch in found:
        columns = dict(
            zip((name for name in names if name not in _OF_LANE), batch.columns, strict=False)
        )
        places = pc.index_in(batch.columns[-1], value_set=lanes["id"].combine_chunks())
        for name in _OF_LANE.intersection(names):
            columns[name] = lanes[name].combine_chunks().take(places)
        yield pa.RecordBatch.from_arrays([columns[name] for name in names], names=list(names))


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
