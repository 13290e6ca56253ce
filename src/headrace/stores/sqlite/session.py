"""What the functions of this package work on: a connection inside a transaction, and its lanes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.stores.sqlite.lanes import Lanes

_NUMBERS = msgspec.json.Decoder(list[int])


class Snapshot:
    """One consistent view of the store: nothing another process commits shows until it ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lanes = Lanes(connection)

    def numbers(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[int]:
        """The answer of a query that gives all its numbers as one JSON list.

        Row by row, each would cost a step: see `bulk`.
        """
        (answer,) = self.connection.execute(sql, parameters).fetchone()
        return _NUMBERS.decode(answer)


class Transaction(Snapshot):
    """A snapshot that may be written to, by the one writer."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.grew = False
        """Events were appended: whoever waits for the log is to be woken."""
