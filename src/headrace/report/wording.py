"""Figures as people read them. Every place that shows a figure writes it in these words."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from headrace.report.percentiles import Estimate

_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 86_400.0
_TEN = 10.0
_LAST = 0.1
"""Where there are decimals, one."""
_NEARLY_ALL = 0.9995
_BARS = "▁▂▃▄▅▆▇█"


class Unit(enum.StrEnum):
    """What a column holds, and so how it is written."""

    TEXT = "text"
    COUNT = "count"
    SECONDS = "seconds"
    RATIO = "ratio"
    FACTOR = "factor"
    NUMBER = "number"
    TIME = "time"

    @property
    def is_figure(self) -> bool:
        return self not in (Unit.TEXT, Unit.TIME)


def told(value: Any, unit: Unit) -> str:
    """One value in the words of its unit; a dash where there is none."""
    if value is None:
        return "–"
    match unit:
        case Unit.TEXT:
            return str(value)
        case Unit.COUNT:
            return f"{value:,}"
        case Unit.SECONDS:
            return seconds(value)
        case Unit.RATIO:
            return ratio(value)
        case Unit.FACTOR:
            return f"{rate(value)}×"
        case Unit.NUMBER:
            return f"{value:.2f}"
        case Unit.TIME:
            return moment(value)


def seconds(value: float) -> str:
    """`0 ms`, `35 ms`, `1.5 s`, `45 s`, `3 m 20 s`, `2 h 5 m`, `3.5 d`."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < _TEN:
        return f"{_short(value)} s"
    if value < _MINUTE - 0.5:
        return f"{value:.0f} s"
    if value < _HOUR - 0.5:
        whole, rest = divmod(round(value), 60)
        return f"{whole} m {rest} s" if rest else f"{whole} m"
    if value < _DAY:
        whole, rest = divmod(round(value / _MINUTE), 60)
        return f"{whole} h {rest} m" if rest else f"{whole} h"
    return f"{_short(value / _DAY)} d"


def rate(value: float) -> str:
    """How many a minute, or times: `0.4`, `2.5`, `15`, `14,674`."""
    if 0 < value < _LAST / 2:
        return f"< {_LAST}"
    return _short(value) if value < _TEN - _LAST / 2 else f"{value:,.0f}"


def ratio(value: float) -> str:
    """A share in percent. What is not quite all never reads 100 %, nor what is not quite nothing 0 %."""
    if _NEARLY_ALL <= value < 1:
        return "> 99.9 %"
    if 0 < value < 1 - _NEARLY_ALL:
        return "< 0.1 %"
    return f"{_short(value * 100)} %"


def _short(value: float) -> str:
    """One decimal, and none where it would be 0."""
    return f"{value:,.1f}".removesuffix(".0")


def about(estimate: Estimate) -> str:
    """As it is where its bounds are close; else with the bound that it surely keeps."""
    told = seconds(estimate.seconds)
    most = seconds(estimate.most)
    return told if estimate.is_close or told == most else f"about {told} (at most {most})"


def moment(value: datetime) -> str:
    """To the minute, UTC."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def span(begin: datetime, end: datetime) -> str:
    """`2026-11-15 08:00 to 17:30 UTC`, with the second day where it is another."""
    if begin == end:
        return "no events yet"
    begin, end = begin.astimezone(UTC), end.astimezone(UTC)
    last = f"{end:%H:%M}" if begin.date() == end.date() else moment(end)
    return f"{moment(begin)} to {last} UTC"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = list(words) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def sparkline(values: Iterable[float | None]) -> str:
    """One bar per value, the tallest the largest; a blank where there is none."""
    drawn = [None if value is None or math.isnan(value) else max(value, 0.0) for value in values]
    top = max((value for value in drawn if value is not None), default=0.0)
    if not top:
        return "".join(" " if value is None else _BARS[0] for value in drawn)
    steps = len(_BARS) - 1
    return "".join(
        " " if value is None else _BARS[math.ceil(value / top * steps)] for value in drawn
    )
