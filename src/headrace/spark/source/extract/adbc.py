"""What the two ADBC drivers have in common: short answers, long answers, and what their errors mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
from adbc_driver_manager import Error

from headrace.errors import HeadraceError, StoreError, StoreUnavailable

Connection = Any
"""The drivers ship without types."""

_AWAY = ("08", "57P", "53")  # SQLSTATEs: connection lost, shutting down, too many connections


def answer(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[Sequence[Any]]:
    """All rows of a short answer."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(sql, parameters=tuple(values) or None)
        rows: list[Sequence[Any]] = cursor.fetchall()
        return rows


def run(connection: Connection, sql: str) -> None:
    """A statement without an answer."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(sql)


def batches(
    connection: Connection, sql: str, values: Sequence[Any], settings: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """A long answer, as it comes."""
    with closing(connection.cursor()) as cursor:
        cursor.adbc_statement.set_options(**settings)
        cursor.execute(sql, parameters=tuple(values) or None)
        with cursor.fetch_record_batch() as reader:
            yield from reader


@contextmanager
def translated(where: str) -> Iterator[None]:
    """The drivers' errors as ours. Neither names a password: they quote no url."""
    try:
        yield
    except HeadraceError:
        raise
    except (Error, OSError, pa.ArrowException) as error:
        state = getattr(error, "sqlstate", None)
        away = state.startswith(_AWAY) if state else isinstance(error, Error | OSError)
        kind = StoreUnavailable if away else StoreError
        raise kind(f"{where} could not be read ({error}); nothing was changed") from error
