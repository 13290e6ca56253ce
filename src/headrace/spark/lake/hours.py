"""Which hours of gold a batch has changed: what a commit of silver notes, and gold computes anew.

Hours are counted from 1970. A span is the first hour and the one after the last; without a last it is open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SPANS_MAX = 40
"""Beyond so many, neighbours are taken together: an hour that is computed anew for nothing stays the same."""
FOR_EVER = 24 * 366 * 8000
"""The hour at which open spans end."""
_HOUR_US = 3_600_000_000
_HOURS_OF_A_DAY = 24
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGINNING = _EPOCH
"""For "all of it"."""

Span = tuple[int, int]


class Hours(NamedTuple):
    """Spans in order, none touching the next."""

    spans: tuple[Span, ...]

    @property
    def first(self) -> datetime:
        return _EPOCH + timedelta(hours=self.spans[0][0])

    def times(self) -> list[tuple[datetime, datetime | None]]:
        """When each span begins and ends; None: it does not."""
        return [
            (_time(first), None if after >= FOR_EVER else _time(after))
            for first, after in self.spans
        ]

    def touch_day(self, day: date) -> bool:
        """Whether any hour of the day is among them."""
        start = (day - _EPOCH.date()).days * _HOURS_OF_A_DAY
        return any(first < start + _HOURS_OF_A_DAY and after > start for first, after in self.spans)


def union(found: Iterable[Span]) -> Hours | None:
    """The same hours in as few spans. None: no hour at all."""
    spans: list[Span] = []
    for first, after in sorted(found):
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], after))
        else:
            spans.append((first, after))
    while len(spans) > SPANS_MAX:
        gaps = [later[0] - earlier[1] for earlier, later in itertools.pairwise(spans)]
        place = gaps.index(min(gaps))
        spans[place : place + 2] = [(spans[place][0], spans[place + 1][1])]
    return Hours(tuple(spans)) if spans else None


def hours_of(*times: pa.ChunkedArray) -> list[Span]:
    """The hours in which these times lie; those that are missing lie in none."""
    numbers = np.unique(np.concatenate([_numbers(column) for column in times]))
    return _compact([(int(hour), int(hour) + 1) for hour in numbers])


def hours_between(begins: pa.ChunkedArray, ends: pa.ChunkedArray) -> list[Span]:
    """The hours from each beginning to its end; without an end, that of the beginning."""
    ends = pc.coalesce(ends, begins)
    low, high = _numbers(begins), _numbers(ends)
    pairs = np.unique(np.stack([np.minimum(low, high), np.maximum(low, high) + 1], 1), axis=0)
    return _compact([(int(first), int(after)) for first, after in pairs])


def since(*times: pa.ChunkedArray) -> list[Span]:
    """All hours from the first of these times on."""
    numbers = np.concatenate([_numbers(column) for column in times])
    return [(int(numbers.min()), FOR_EVER)] if len(numbers) else []


def decoded(noted: Sequence[Sequence[Any]]) -> list[Span]:
    """As a note in JSON has kept them."""
    return [(int(first), int(after)) for first, after in noted]


def _compact(spans: list[Span]) -> list[Span]:
    found = union(spans)
    return list(found.spans) if found else []


def _numbers(times: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    known = pc.drop_null(times).cast(pa.int64()).to_numpy()
    return np.asarray(known // _HOUR_US, np.int64)


def _time(hour: int) -> datetime:
    return _EPOCH + timedelta(hours=hour)
