"""One statement for many rows.

SQLite's Python module gives the interpreter lock away for every step of a statement, and asks for it
back. While another thread computes, each of those may wait a whole switch interval (5 ms), and
`executemany` steps once per row: a hundred rows would take half a second. So rows are written by
statements of up to 64 rows: literal text, with its one group of placeholders repeated.

Binding a value costs as much as storing it, and rows that are written together have most values in common.
`Wide` rows bind such a value once for all of them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

from headrace.stores.sqlite.sql import query

_VALUES = re.compile(r"(?<!\w)\((?:\?, )*\?\)")
_MATCH = re.compile(r"(?<!\w)\((?:\w+ = \? AND )*\w+ = \?\)")

# Powers of two: few enough statements to stay prepared, and few more steps for a remainder.
_SIZES = (64, 32, 16, 8, 4, 2, 1)
_FEW = 8
_SHAPES_MAX = 16

Shape = tuple[bool, ...]
"""For each column, whether all rows have the same value there."""


class Bulk:
    """The statement of this name, in which one group stands for a row.

    Either `(?, ?)`, a row of values, or `(a = ? AND b = ?)`, which finds a row.
    """

    def __init__(self, name: str) -> None:
        self._texts = for_sizes(query(name))

    def run(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
        for start, size in _chunks(len(rows), self._texts):
            values = chain.from_iterable(rows[start : start + size])
            connection.execute(self._texts[size], list(values))


class Wide:
    """The statement of this name, in which `(?, ?)` stands for a row; the rows are given as columns.

    For few rows `few`, a statement that writes a single one, may do better.
    """

    def __init__(self, name: str, *, few: str | None = None) -> None:
        self._text = query(name)
        self._one = None if few is None else query(few)
        self._sizes = _SIZES if few is None else tuple(size for size in _SIZES if size >= _FEW)
        self._nothing_shared = (False,) * _VALUES.findall(self._text)[0].count("?")
        self._texts: dict[Shape, _Texts] = {}

    def run(self, connection: sqlite3.Connection, columns: Sequence[Sequence[Any]]) -> int:
        """Write them all. The number of the last new row, where rows are added."""
        rows, last = len(columns[0]), 0
        shape = self._nothing_shared
        if rows > 1:
            shape = tuple(column.count(column[0]) == rows for column in columns)
        texts = self._texts_for(shape)
        shared = [column[0] for column, same in zip(columns, texts.shape, strict=True) if same]
        own = [column for column, same in zip(columns, texts.shape, strict=True) if not same]
        written = 0
        for start, size in _chunks(rows, texts.by_size):
            values = zip(*(column[start : start + size] for column in own), strict=True)
            parameters = [*shared, *chain.from_iterable(values)]
            last = connection.execute(texts.by_size[size], parameters).lastrowid or 0
            written = start + size
        if self._one is not None:
            for row in zip(*(column[written:] for column in columns), strict=True):
                connection.execute(self._one, row)
        return last

    def _texts_for(self, shape: Shape) -> _Texts:
        if shape not in self._texts and len(self._texts) > _SHAPES_MAX:
            shape = self._nothing_shared  # statements that take turns would not stay prepared
        if shape not in self._texts:
            self._texts[shape] = _Texts(shape, for_shape(self._text, shape, self._sizes))
        return self._texts[shape]


class _Texts(NamedTuple):
    shape: Shape
    by_size: Mapping[int, str]


def for_sizes(text: str) -> dict[int, str]:
    """The text for so many rows each, the most first; nothing if no group in it stands for a row."""
    values, matches = _VALUES.findall(text), _MATCH.findall(text)
    if len(values) + len(matches) != 1:
        return {}
    (row,) = values + matches
    joint = ", " if values else " OR "
    return {size: text.replace(row, joint.join([row] * size)) for size in _SIZES}


def for_shape(text: str, shape: Shape, sizes: Sequence[int] = _SIZES) -> dict[int, str]:
    """As `for_sizes`; what the rows share are the first parameters, then come the rows' own."""
    (row,) = _VALUES.findall(text)
    texts = {}
    for size in sizes:
        own = count(sum(shape) + 1)
        rows = []
        for _ in range(size):
            shared = count(1)
            marks = (f"?{next(shared if same else own)}" for same in shape)
            rows.append(f"({', '.join(marks)})")
        texts[size] = text.replace(row, ", ".join(rows))
    return texts


def _chunks(rows: int, sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """From where on, and how many: the largest first, as far as they go."""
    start = 0
    for size in sizes:
        while rows - start >= size:
            yield start, size
            start += size
