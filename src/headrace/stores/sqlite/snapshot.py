"""What the functions of this package work on: a connection inside a transaction, and its lanes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.stores.sqlite.lanes import Lanes
from headrace.stores.sqlite.sql import query

_NUMBERS = msgspec.json.Decoder(list[int])
_LANES_OF_TENANT = query("lanes_of_tenant")


class Snapshot:
    """One consistent view of the store: nothing another process commits shows until it ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lanes = Lanes(connection)

    def lanes_of_tenant(self, tenant: str | None) -> str | None:
        """The lanes of a tenant as a JSON list; None when there is nothing to filter."""
        if tenant is None:
            return None
        (lanes,) = self.connection.execute(_LANES_OF_TENANT, (tenant,)).fetchone()
        return str(lanes)

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
