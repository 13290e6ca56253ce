"""Rows that gather what belongs to them, one per key; and the minutes and hours of a time."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

from tests.spark.oracle import Row

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def minute_of(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


class Groups:
    """Rows by key; each begins with these figures."""

    def __init__(self, **figures: Any) -> None:
        self._figures = figures
        self._rows: dict[tuple[Any, ...], Row] = {}

    def row(self, **key: Any) -> Row:
        """The row of that key, to be added to."""
        place = tuple(key.values())
        if place not in self._rows:
            self._rows[place] = key | copy.deepcopy(self._figures)
        return self._rows[place]

    def rows(self) -> list[Row]:
        """All of them; each knows its hour and its day."""
        for row in self._rows.values():
            row["hour"] = hour_of(row["minute"] if "minute" in row else row["hour"])
            row["day"] = row["hour"].date()
        return list(self._rows.values())
