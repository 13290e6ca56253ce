"""Rows that share values are stored as if each had been written alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.stores.sqlite import bulk
from headrace.stores.sqlite.bulk import Wide

Row = tuple[int | None, ...]

WIDTH = 5
TEXTS = {
    "add": "INSERT INTO t (a, b, c, d, e) VALUES (?, ?, ?, ?, ?)",
    "change": "UPDATE t SET a = new.column1, b = new.column2, c = new.column3, d = new.column4"
    " FROM (VALUES (?, ?, ?, ?, ?)) AS new WHERE t.e = new.column5",
    "change_one": "UPDATE t SET a = ?, b = ?, c = ?, d = ? WHERE e = ?",
}

rows = st.lists(
    st.tuples(*[st.none() | st.integers(0, 1)] * (WIDTH - 1)), min_size=1, max_size=150
).map(lambda some: [(*row, number) for number, row in enumerate(some)])
"""Few values, so that some columns are the same in all rows; the last is a row's own."""


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setattr(bulk, "query", TEXTS.__getitem__)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("CREATE TABLE t (a, b, c, d, e)")
        yield opened


def columns(of: Sequence[Row]) -> list[list[int | None]]:
    return [list(column) for column in zip(*of, strict=True)]


def stored(connection: sqlite3.Connection) -> list[Row]:
    return connection.execute("SELECT * FROM t ORDER BY rowid").fetchall()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(added=rows, salt=st.integers(0, 1))
def test_rows_are_added_and_changed_as_they_are(
    connection: sqlite3.Connection, added: list[Row], salt: int
) -> None:
    connection.execute("DELETE FROM t")
    assert Wide("add").run(connection, columns(added)) == len(added)
    assert stored(connection) == added
    changed = [(row[1], row[0], salt, None, row[-1]) for row in added]
    Wide("change", few="change_one").run(connection, columns(changed))
    assert stored(connection) == changed


def test_no_rows_are_nothing(connection: sqlite3.Connection) -> None:
    Wide("add").run(connection, [[] for _ in range(WIDTH)])
    Wide("change", few="change_one").run(connection, [[] for _ in range(WIDTH)])
    assert stored(connection) == []


def test_many_shapes_take_no_more_statements_than_a_few(connection: sqlite3.Connection) -> None:
    """What does not stay prepared is prepared for each call."""
    wide = Wide("add")
    added: list[Row] = []
    for shape in range(2 ** (WIDTH - 1)):
        for number in range(3):
            differs = [shape >> column & 1 for column in range(WIDTH - 1)]
            added.append((*(number if differs_here else 7 for differs_here in differs), number))
        wide.run(connection, columns(added[-3:]))
    wide.run(connection, [[8, 8], [8, 8], [8, 8], [8, 8], [8, 8]])
    assert stored(connection) == [*added, (8,) * 5, (8,) * 5]
    assert len(wide._texts) <= bulk._SHAPES_MAX + 1
