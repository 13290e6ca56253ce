"""Cutting ranges of numbers."""

from __future__ import annotations


def even_cuts(after: int, upto: int, parts: int) -> list[tuple[int, int]]:
    """(after, upto] in so many ranges of equal length, or fewer if there are not so many numbers."""
    parts = max(1, min(parts, upto - after))
    places = [after + (upto - after) * part // parts for part in range(parts + 1)]
    return list(zip(places, places[1:], strict=False))
