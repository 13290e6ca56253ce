"""Values as PostgreSQL takes them: columns as lists, or less where less says the same; and its texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

Column = list[object]

_MICROSECOND = timedelta(microseconds=1)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


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


def storable(text: str) -> str:
    """The text without what cannot be stored: the character NUL, and halves of surrogate pairs.

    An error's message must never keep a worker from reporting the error, and a token or id with such
    characters matches nothing anyway.
    """
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", _REPLACEMENT)
    return (
        text.encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .replace("\0", _REPLACEMENT)
    )


def storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)


def us_or_none(seconds: float | None) -> int | None:
    """Rounded as Python rounds a duration, so that a claim adds exactly what the lifecycle adds."""
    return None if seconds is None else timedelta(seconds=seconds) // _MICROSECOND


def array_literal(tags: Sequence[str]) -> str:
    """A list of texts as one text: an array of arrays of different lengths cannot be sent."""
    if not tags:
        return "{}"
    quoted = ('"' + tag.replace("\\", "\\\\").replace('"', '\\"') + '"' for tag in tags)
    return "{" + ",".join(quoted) + "}"
