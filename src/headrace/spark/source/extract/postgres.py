# ruff: noqa: S608 - the texts are put together from our own words and numbers; values are bound
"""PostgreSQL through ADBC, which reads by COPY.

COPY takes no parameters. So what a user gave goes into settings of the transaction, by parameter, and
the query asks for the settings; only numbers of our own stand in its text.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import adbc_driver_postgresql.dbapi
import pyarrow as pa
from adbc_driver_postgresql import StatementOptions

from headrace.errors import InvalidCursor, LogTrimmed
from headrace.spark.source.extract.adbc import Connection, answer, batches, run, translated
from headrace.spark.source.extract.base import (
    LIST_COLUMNS,
    TIME_COLUMN,
    Pieces,
    Slice,
    Table,
)
from headrace.spark.source.extract.ranges import PROBE_ROWS, Probe, cut_by_probes, probe_starts
from headrace.spark.source.extract.shape import shaped
from headrace.spark.source.options import Predicates

SETTLE_SECONDS = 0.25
"""How long a batch waits for transactions in its way: mostly they are about to end, and then whoever has
just written reads what it wrote."""

_PAUSE_SECONDS = 0.02
_BATCH_BYTES = 8_000_000
_VIEW = {"events": "event_log", "histories": "event_log", "jobs": "job_list"}
_PLACE = {"histories": "job_seq", "jobs": "seq"}
_BY_INDEX = ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort")
"""Turned off where a few rows are probed: the statistics may be from a time when the tables were empty."""


class Place(NamedTuple):
    """Where an event stands in the log."""

    xid: int
    seq: int

    def __str__(self) -> str:
        return f"{self.xid}:{self.seq}"

    @property
    def sql(self) -> str:
        return f"'{self.xid:d}'::xid8, {self.seq:d}"


@dataclass(frozen=True)
class PostgresExtract:
    dsn: str = field(repr=False)
    schema: str
    where: str
    predicates: Predicates

    def place(self, cursor: str) -> Place:
        return place(cursor)

    def log_end(self, *, settled: bool = False) -> str:
        end = time.monotonic() + (SETTLE_SECONDS if settled else 0)
        while True:
            left = end - time.monotonic()
            told = self._tail(only_readable=left <= 0)
            if not told:
                return ""
            xid, seq, readable = told[0]
            if readable:
                return f"{xid}:{seq}"
            time.sleep(min(max(left, 0), _PAUSE_SECONDS))

    def _tail(self, *, only_readable: bool) -> Sequence[Sequence[Any]]:
        with self.connection() as connection:
            return answer(connection, f"SELECT * FROM {self._name('log_tail')}({only_readable})")

    def log_start(self) -> str:
        with self.connection() as connection:
            return self._begin(connection)

    def further(self, after: str, rows: int, upto: str) -> str:
        with self.connection() as connection:
            found = answer(
                connection,
                f"SELECT * FROM {self._name('log_further')}"
                f"({place(after).sql}, {place(upto).sql}, {rows:d})",
            )
            return _cursor(found) or upto

    def mark(self, cursor: str) -> str | None:
        with self.connection() as connection:
            found = answer(
                connection,
                f"SELECT job_id, version, at::text FROM {self._name('event_log')} "
                f"WHERE (xid, seq) = ({place(cursor).sql})",
            )
            return " ".join(str(value) for value in found[0]) if found else None

    def cut_log(self, after: str, upto: str, pieces: Pieces) -> Sequence[Slice]:
        start, end = place(after), place(upto)
        if end <= start:
            return []
        parts = "NULL" if pieces.parts is None else f"{pieces.parts:d}"
        with self.connection() as connection:
            found = answer(
                connection,
                f"SELECT * FROM {self._name('log_cuts')}"
                f"({start.sql}, {end.sql}, {pieces.rows_each:d}, {parts})",
            )
        cuts = {cut for cut in (Place(*row) for row in found) if start < cut < end}
        places = [start, *sorted(cuts), end]
        return [Slice(str(low), str(high)) for low, high in itertools.pairwise(places)]

    def count_log(self, after: str, upto: str) -> tuple[int, int]:
        with self.connection() as connection:
            bounds = " AND ".join(_bounds("events", Slice(after, upto)))
            counted = "SELECT count(*), coalesce(sum(seq), 0)::text"
            sql = f"{counted} FROM {self._name('event_log')} WHERE {bounds}"
            ((events, seqs),) = answer(connection, sql)
            return int(events), int(seqs)

    def cut(self, table: Table, pieces: Pieces) -> Sequence[Slice]:
        if table == "events":
            return self.cut_log(self.log_start(), self.log_end(settled=True), pieces)
        log_end = self.log_end(settled=True)
        with self.connection() as connection:
            for way in _BY_INDEX:
                run(connection, f"SET LOCAL enable_{way} = off")
            first, last = self._ends(connection, table)
            if not last:
                return []
            probes = self._probes(connection, table, first - 1, last)
            cuts = cut_by_probes(first - 1, last, probes, pieces)
            return [Slice(str(start), str(end), log_end) for start, end in cuts]

    def rows(self, table: Table, piece: Slice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self.connection() as connection:
            if piece.unbroken:
                self._check_unbroken(connection, piece)
            yield from shaped(self._batches(connection, table, piece, columns), columns)

    def _batches(
        self, connection: Connection, table: Table, piece: Slice, columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """As the driver hands them out."""
        conditions = [*_bounds(table, piece), *_conditions(self.predicates, table)]
        sql = (
            f"SELECT {', '.join(_quoted(name) for name in columns.names)} "
            f"FROM {self._name(_VIEW[table])} WHERE {' AND '.join(conditions)}"
        )
        for name, value in _settings(self.predicates, table).items():
            answer(connection, "SELECT set_config($1, $2, true)", (name, value))
        hint = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: _BATCH_BYTES}
        return batches(connection, sql, (), hint)

    def _begin(self, connection: Connection) -> str:
        return _cursor(answer(connection, f"SELECT * FROM {self._name('log_begin')}()"))

    def _check_unbroken(self, connection: Connection, piece: Slice) -> None:
        begin = self._begin(connection)
        if place(begin) > place(piece.after):
            raise LogTrimmed(piece.after, begin)

    def _ends(self, connection: Connection, table: Table) -> tuple[int, int]:
        """The first and last place of a table; (1, 0) if it is empty."""
        number, view = _PLACE[table], self._name(_VIEW[table])
        # Not min and max: on a view of several tables they would walk all of it.
        ((first, last),) = answer(
            connection,
            f"SELECT (SELECT {number} FROM {view} ORDER BY {number} LIMIT 1), "
            f"(SELECT {number} FROM {view} ORDER BY {number} DESC LIMIT 1)",
        )
        return (1, 0) if first is None else (first, last)

    def _probes(self, connection: Connection, table: Table, after: int, upto: int) -> list[Probe]:
        number, view = _PLACE[table], self._name(_VIEW[table])
        starts = ", ".join(f"{start:d}" for start in probe_starts(after, upto))
        found = answer(
            connection,
            f"SELECT start, max(n), count(*) FROM unnest(ARRAY[{starts}]::bigint[]) AS start "
            f"CROSS JOIN LATERAL (SELECT {number} AS n FROM {view} WHERE {number} >= start "
            f"ORDER BY {number} LIMIT {PROBE_ROWS:d}) AS probed GROUP BY start ORDER BY start",
        )
        return [Probe(*row) for row in found]

    def _name(self, name: str) -> str:
        return f"{_quoted(self.schema)}.{name}"

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """In a transaction that reads only, all of it one moment."""
        with (
            translated(self.where),
            closing(adbc_driver_postgresql.dbapi.connect(self.dsn)) as connection,
        ):
            run(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection


def place(cursor: str) -> Place:
    if not cursor:
        return Place(0, 0)
    xid, _, seq = cursor.partition(":")
    if not (cursor.isascii() and xid.isdigit() and seq.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return Place(int(xid), int(seq))


def _cursor(found: Sequence[Sequence[Any]]) -> str:
    return f"{found[0][0]}:{found[0][1]}" if found else ""


def _bounds(table: Table, piece: Slice) -> list[str]:
    if table == "events":
        return [
            f"(xid, seq) > ({place(piece.after).sql})",
            f"(xid, seq) <= ({place(piece.upto).sql})",
        ]
    number = _PLACE[table]
    bounds = [f"{number} > {int(piece.after):d}", f"{number} <= {int(piece.upto):d}"]
    if table == "histories":
        bounds.append(f"(xid, seq) <= ({place(piece.log_end).sql})")
    return bounds


def _conditions(predicates: Predicates, table: Table) -> list[str]:
    conditions = [
        f"{_quoted(column)} = ANY(ARRAY(SELECT jsonb_array_elements_text("
        f"current_setting('headrace.{name}')::jsonb)))"
        for name, column in LIST_COLUMNS[table].items()
        if getattr(predicates, name) is not None
    ]
    moment = TIME_COLUMN.get(table)
    if moment is not None and predicates.since is not None:
        conditions.append(f"{moment} >= current_setting('headrace.since')::timestamptz")
    if moment is not None and predicates.until is not None:
        conditions.append(f"{moment} < current_setting('headrace.until')::timestamptz")
    return conditions


def _settings(predicates: Predicates, table: Table) -> dict[str, str]:
    """What the conditions ask for."""
    settings = {
        f"headrace.{name}": json.dumps(values)
        for name in LIST_COLUMNS[table]
        if (values := getattr(predicates, name)) is not None
    }
    for name in ("since", "until"):
        if (moment := getattr(predicates, name)) is not None:
            settings[f"headrace.{name}"] = moment.isoformat()
    return settings


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
