"""One statement for many rows.

SQLite's Python module gives the interpreter lock away for every step of a statement, and asks for it
back. While another thread computes, each of those may wait a whole switch interval (5 ms), and
`executemany` steps once per row: a hundred rows would take half a second. So rows are written by
statements of up to 64 rows: literal text, with its one group of placeholders repeated.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

from headrace.stores.sqlite.sql import query

_VALUES = re.compile(r"\((?:\?, )*\?\)")
_MATCH = re.compile(r"\((?:\w+ = \? AND )*\w+ = \?\)")

# Powers of two: few enough statements to stay prepared, and few more steps for a remainder.
_SIZES = (64, 32, 16, 8, 4, 2, 1)
_FEW = 8


class Bulk:
    """The query of a file in which one group stands for a row.

    Either `(?, ?)`, a row of values, or `(a = ? AND b = ?)`, which finds a row. For few rows another
    file may do better, whose query writes a single one.
    """

    def __init__(self, name: str, *, few: str | None = None) -> None:
        text = query(name)
        values, matches = _VALUES.findall(text), _MATCH.findall(text)
        (row,) = values + matches
        joint = ", " if values else " OR "
        self._texts = {size: text.replace(row, joint.join([row] * size)) for size in _SIZES}
        if few is not None:
            self._texts = {size: text for size, text in self._texts.items() if size >= _FEW}
            self._texts[1] = query(few)

    def run(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
        left = len(rows)
        for size, text in self._texts.items():
            if not left:
                break
            while left >= size:
                start = len(rows) - left
                connection.execute(text, list(chain.from_iterable(rows[start : start + size])))
                left -= size
