"""One statement for many rows.

SQLite's Python module gives the interpreter lock away for every step of a statement, and asks for it
back. While another thread computes, each of those may wait a whole switch interval (5 ms), and
`executemany` steps once per row: a hundred rows would take half a second. So rows are written by
statements of up to 64 rows: literal text, with its one group of placeholders repeated.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from headrace.stores.sqlite.sql import query

_VALUES = re.compile(r"(?<!\w)\((?:\?, )*\?\)")
_MATCH = re.compile(r"(?<!\w)\((?:\w+ = \? AND )*\w+ = \?\)")

# Powers of two: few enough statements to stay prepared, and few more steps for a remainder.
_SIZES = (64, 32, 16, 8, 4, 2, 1)
_FEW = 8


class Bulk:
    """The statement of this name, in which one group stands for a row.

    Either `(?, ?)`, a row of values, or `(a = ? AND b = ?)`, which finds a row. For few rows another
    may do better, that writes a single one.
    """

    def __init__(self, name: str, *, few: str | None = None) -> None:
        self._texts = dict(for_sizes(query(name)))
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


def for_sizes(text: str) -> Mapping[int, str]:
    """The text for so many rows each, the most first; nothing if no group in it stands for a row."""
    values, matches = _VALUES.findall(text), _MATCH.findall(text)
    if len(values) + len(matches) != 1:
        return {}
    (row,) = values + matches
    joint = ", " if values else " OR "
    return {size: text.replace(row, joint.join([row] * size)) for size in _SIZES}
