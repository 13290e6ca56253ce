"""Durations and times as people write and read them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

Seconds = float | timedelta | str
"""How users give a duration: seconds, a timedelta, or text as `parse` reads it."""

DELAY_SECONDS_MAX = 315_360_000.0
"""Ten years: no delay is longer, so that no sum of a time and a delay leaves the calendar."""

_SECOND = 1.0
_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 86_400.0
_TENTHS_UNTIL = 10.0

_UNITS = {"ms": 0.001, "s": _SECOND, "m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parse(text: str) -> float:
    """Seconds: `90s`, `5m`, `2h`, `30d`, `1h30m`, or a bare number. ValueError otherwise."""
    if _NUMBER.fullmatch(text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def seconds_of(value: object) -> object:
    """A timedelta or a text as seconds; anything else as it is. ValueError for a text that is no duration."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return parse(str.__str__(value)) if isinstance(value, str) else value


def brief(seconds: float) -> str:
    """The largest unit, and under it the next where that matters: `850ms`, `1.5s`, `3m`, `2h5m`, `4d`."""
    if seconds < _SECOND:
        return f"{seconds * 1000:.0f}ms"
    if seconds < _TENTHS_UNTIL and seconds != int(seconds):
        return f"{seconds:.1f}s"
    if seconds < _MINUTE:
        return f"{seconds:.0f}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE:.0f}m"
    if seconds < _DAY:
        minutes = seconds % _HOUR // _MINUTE
        return f"{seconds // _HOUR:.0f}h" + (f"{minutes:.0f}m" if minutes else "")
    return f"{seconds // _DAY:.0f}d"


def exact(seconds: float) -> str:
    """Every unit that counts, nothing rounded, as `parse` reads it: `15m`, `1m30s`, `1d12h`, `2.5s`."""
    text, left = "", seconds
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        count, left = divmod(left, size)
        text += f"{count:.0f}{unit}" if count else ""
    return text + (f"{left:.6f}".rstrip("0").rstrip(".") + "s" if left or not text else "")


def age(moment: datetime, now: datetime) -> str:
    """`3m ago`, `just now`, `in 2h`."""
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return f"in {brief(-seconds)}"
    return "just now" if seconds < 1 else f"{brief(int(seconds))} ago"


def ago(moment: datetime, now: datetime) -> str:
    """As `age`, of what has happened: never ahead, though a clock that was read later may say so."""
    return age(min(moment, now), now)


def stamp(moment: datetime) -> str:
    """To the second, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def stamp_ms(moment: datetime) -> str:
    """To the millisecond, in UTC."""
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%d %H:%M:%S}.{utc.microsecond // 1000:03d}Z"
