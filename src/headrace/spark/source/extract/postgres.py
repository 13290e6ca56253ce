"""PostgreSQL through ADBC, which reads by COPY.

COPY takes no parameters. So what a user gave goes into settings of the transaction, by parameter, and
the query asks for the settings; only numbers of our own stand in its text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import adbc_driver_postgresql.dbapi
import pyarrow as pa
from adbc_driver_postgresql import StatementOptions

from headrace.errors import InvalidCursor
from headrace.spark.source.extract.adbc import Connection, answer, batches, translated
from headrace.spark.source.extract.base import Pieces, Slice, Table
from headrace.spark.source.extract.shape import shaped
from headrace.spark.source.options import Predicates

_BATCH_BYTES = 8_000_000
_VIEW = {"events": "event_log"}
_TIME = {"events": "at"}


class Place(NamedTuple):
    """Where an event stands in the log."""

    xid: int
    seq: int

    def __str__(self) -> str:
        return f"{self.xid}:{self.seq}"

    @property
    def sql(self) -> str:
        return f"('{self.xid:d}'::xid8, {self.seq:d})"


@dataclass(frozen=True)
class PostgresExtract:
    dsn: str = field(repr=False)
    schema: str
    where: str
    predicates: Predicates

    def log_end(self) -> str:
        return self._cursor("ORDER BY xid DESC, seq DESC LIMIT 1") or ""

    def log_start(self) -> str:
        first = self._cursor("ORDER BY xid, seq LIMIT 1")
        if first is None:
            return ""
        start = place(first)
        return str(start._replace(seq=start.seq - 1))

    def further(self, after: str, rows: int, upto: str) -> str:
        found = self._cursor(
            f"WHERE (xid, seq) > {place(after).sql} AND (xid, seq) <= {place(upto).sql} "
            f"ORDER BY xid, seq OFFSET {rows - 1:d} LIMIT 1"
        )
        return found or upto

    def mark(self, cursor: str) -> str | None:
        with self._connection() as connection:
            found = answer(
                connection,
                f"SELECT job_id, version, at FROM {self._view('events')} "  # noqa: S608 - our own words
                f"WHERE (xid, seq) = {place(cursor).sql}",
            )
            return " ".join(str(value) for value in found[0]) if found else None

    def cut_log(self, after: str, upto: str, pieces: Pieces) -> Sequence[Slice]:
        return [Slice(after, upto)] if place(upto) > place(after) else []

    def cut(self, table: Table, pieces: Pieces) -> Sequence[Slice]:
        if table != "events":
            raise NotImplementedError(table)
        return self.cut_log(self.log_start(), self.log_end(), pieces)

    def rows(self, table: Table, piece: Slice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        conditions = [
            f"(xid, seq) > {place(piece.after).sql}",
            f"(xid, seq) <= {place(piece.upto).sql}",
            *_conditions(self.predicates, _TIME[table]),
        ]
        sql = (
            f"SELECT {', '.join(_quoted(name) for name in columns.names)} "  # noqa: S608 - our own words
            f"FROM {self._view(table)} WHERE {' AND '.join(conditions)}"
        )
        hint = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: _BATCH_BYTES}
        with self._connection() as connection:
            for name, value in _settings(self.predicates).items():
                answer(connection, "SELECT set_config($1, $2, true)", (name, value))
            yield from shaped(batches(connection, sql, (), hint), columns)

    def _cursor(self, which: str) -> str | None:
        with self._connection() as connection:
            found = answer(
                connection,
                # Under another name: ORDER BY would take the text of the same name.
                f"SELECT xid::text AS writer, seq FROM {self._view('events')} {which}",  # noqa: S608 - our own words
            )
            return f"{found[0][0]}:{found[0][1]}" if found else None

    def _view(self, table: Table) -> str:
        return f"{_quoted(self.schema)}.{_VIEW[table]}"

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """In a transaction that reads only, and that ends with the block."""
        with (
            translated(self.where),
            closing(adbc_driver_postgresql.dbapi.connect(self.dsn)) as connection,
        ):
            with closing(connection.cursor()) as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
            yield connection


def place(cursor: str) -> Place:
    if not cursor:
        return Place(0, 0)
    xid, _, seq = cursor.partition(":")
    if not (cursor.isascii() and xid.isdigit() and seq.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return Place(int(xid), int(seq))


def _conditions(predicates: Predicates, time: str) -> list[str]:
    conditions = [
        f"{_quoted(name)} = ANY(ARRAY(SELECT jsonb_array_elements_text("  # noqa: S608 - our own words
        f"current_setting('headrace.{name}')::jsonb)))"
        for name in ("tenant", "queue", "type", "state")
        if getattr(predicates, name) is not None
    ]
    if predicates.since is not None:
        conditions.append(f"{time} >= current_setting('headrace.since')::timestamptz")
    if predicates.until is not None:
        conditions.append(f"{time} < current_setting('headrace.until')::timestamptz")
    return conditions


def _settings(predicates: Predicates) -> dict[str, str]:
    lists = {name: getattr(predicates, name) for name in ("tenant", "queue", "type", "state")}
    times = {"since": predicates.since, "until": predicates.until}
    return {
        f"headrace.{name}": json.dumps(values)
        for name, values in lists.items()
        if values is not None
    } | {
        f"headrace.{name}": moment.isoformat()
        for name, moment in times.items()
        if moment is not None
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
