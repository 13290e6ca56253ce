"""Columns as the functions of this schema take them: a list, or less where less says the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Column = list[object]


def transposed(rows: Iterable[Sequence[object]], width: int) -> list[Column]:
    """The columns of these rows, so many even if there is no row."""
    columns: list[Column] = [list(column) for column in zip(*rows, strict=True)]
    return columns or [[] for _ in range(width)]


def column(values: Column) -> Column:
    """Nothing for NULL in every row, one element for the same value in every row, else the list.

    The driver spends more time on each element than PostgreSQL does, and most columns of a batch
    are uniform.
    """
    first = values[0] if values else None
    if values.count(first) < len(values):
        return values
    return [] if first is None else [first]
