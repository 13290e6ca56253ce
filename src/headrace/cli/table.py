"""Tables that fit: on a narrow terminal the least important columns go, ids are never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.text import Text

_GAP = 2
_SHORTEST = 12
"""A column that may be cut keeps at least this much."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column. The highest `rank` is the first to go when there is no room; 0 never goes."""

    name: str
    rank: int = 0
    right: bool = False
    """Numbers stand to the right."""
    cut: bool = False
    """Free text: may be shortened with an ellipsis."""
    usual: str | None = None
    """A column in which every cell reads like this says nothing, and is left out."""


def lay_out(
    columns: Sequence[Column], rows: Sequence[Sequence[Text | str]], width: int
) -> Iterator[Text]:
    """The table's lines, header first, none wider than `width` unless the ids alone are."""
    cells = [[_text(cell) for cell in row] for row in rows]
    kept, widths = _fit(columns, cells, width)
    yield _line(columns, kept, widths, [Text(column.name.upper(), "dim") for column in columns])
    for row in cells:
        yield _line(columns, kept, widths, row)


def _fit(
    columns: Sequence[Column], cells: Sequence[Sequence[Text]], width: int
) -> tuple[list[int], dict[int, int]]:
    """Which columns stay, and how wide each is."""
    natural = {
        index: max([len(column.name), *(row[index].cell_len for row in cells)])
        for index, column in enumerate(columns)
    }
    least = {
        index: min(natural[index], _SHORTEST) if column.cut else natural[index]
        for index, column in enumerate(columns)
    }
    kept = [
        index
        for index, column in enumerate(columns)
        if column.usual is None or any(row[index].plain != column.usual for row in cells)
    ]
    while _total(least[index] for index in kept) > width:
        spare = [index for index in kept if columns[index].rank > 0]
        if not spare:
            break
        kept.remove(max(spare, key=lambda index: columns[index].rank))
    room = width - _total(least[index] for index in kept)
    widths = {}
    for index in kept:
        grown = min(natural[index] - least[index], max(room, 0))
        widths[index] = least[index] + grown
        room -= grown
    return kept, widths


def _total(widths: Iterator[int]) -> int:
    listed = list(widths)
    return sum(listed) + _GAP * (len(listed) - 1)


def _line(
    columns: Sequence[Column], kept: Sequence[int], widths: dict[int, int], row: Sequence[Text]
) -> Text:
    line = Text()
    for position, index in enumerate(kept):
        cell = row[index].copy()
        cell.truncate(widths[index], overflow="ellipsis")
        blank = " " * (widths[index] - cell.cell_len)
        line.append(" " * _GAP if position else "")
        line.append_text(Text(blank) + cell if columns[index].right else cell + Text(blank))
    line.rstrip()
    return line


def _text(cell: Text | str) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)
