"""What names, ids, tags, times and numbers may be. Each check raises one named error."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import urlsplit

from headrace import duration
from headrace.duration import DELAY_SECONDS_MAX
from headrace.errors import (
    InvalidId,
    InvalidInput,
    InvalidKey,
    InvalidLimit,
    InvalidName,
    InvalidPriority,
    InvalidTime,
)
from headrace.model import Priority

ID_CHARS_MAX = 128
NAME_CHARS_MAX = 128
TAG_CHARS_MAX = 256
TAGS_MAX = 64
KEY_CHARS_MAX = 256
URL_CHARS_MAX = 2048
LIMIT_MAX = 2**31 - 1
YEAR_MIN, YEAR_MAX = 1970, 9000

_LEVELS = {text: level for level in Priority for text in (level.name.lower(), str(level.value))}

UNCHANGED = "nothing was stored or changed"
_TOLD_CHARS_MAX = 80
_TOLD_DIGITS_MAX = 40
_TOLD = (str, bytes, float, bool, type(None), datetime)


def told(value: object) -> str:
    """A value for a message: short, and without asking it anything that it could answer badly."""
    if isinstance(value, int) and not isinstance(value, bool):
        number = int.__index__(value)
        return str(number) if abs(number) < 10**_TOLD_DIGITS_MAX else "a number of many digits"
    if type(value) in _TOLD:
        text = repr(value[:_TOLD_CHARS_MAX] if isinstance(value, str | bytes) else value)
        return text if len(text) <= _TOLD_CHARS_MAX else f"{text[:_TOLD_CHARS_MAX]}…"
    if isinstance(value, enum.Enum):
        return str(value.name)
    return f"a {type(value).__name__}"


def check_id(value: object) -> str:
    return _text(value, "a job id", ID_CHARS_MAX, InvalidId)


def check_ids(values: Iterable[object]) -> tuple[str, ...]:
    """In order, without repeats."""
    return tuple(dict.fromkeys(check_id(value) for value in listed(values, "ids")))


def check_name(value: object, what: str) -> str:
    return _text(value, f"the {what}", NAME_CHARS_MAX, InvalidName)


def check_names(values: Iterable[object] | None, what: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    return tuple(dict.fromkeys(check_name(value, what) for value in listed(values, f"{what}s")))


def check_key(value: object) -> str:
    return _text(value, "the idempotency key", KEY_CHARS_MAX, InvalidKey, printable=False)


def check_tags(values: Iterable[object] | Mapping[str, object]) -> tuple[str, ...]:
    """Sorted, without repeats. A map entry is the tag `key=value`."""
    if isinstance(values, Mapping):
        values = [
            f"{_text(name, 'a tag', TAG_CHARS_MAX, InvalidName)}={_tag_value(value)}"
            for name, value in values.items()
        ]
    tags = {_text(value, "a tag", TAG_CHARS_MAX, InvalidName) for value in listed(values, "tags")}
    if len(tags) > TAGS_MAX:
        raise InvalidName(f"there are {len(tags)} tags, the limit is {TAGS_MAX}; {UNCHANGED}")
    return tuple(sorted(tags))


def check_priority(value: object) -> int:
    """0 to 4, or the name of the level: `critical`, `high`, `normal`, `low`, `bulk`."""
    if isinstance(value, str):
        value = _LEVELS.get(str.__str__(value).strip().lower(), value)
    elif isinstance(value, int) and not isinstance(value, bool):
        value = int.__index__(value)
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value not in Priority.__members__.values()
    ):
        names = ", ".join(f"{level.value} {level.name}" for level in Priority)
        raise InvalidPriority(f"priority {told(value)} is not one of {names}; {UNCHANGED}")
    return int(value)


def check_time(value: object, what: str) -> datetime:
    """The same moment in UTC."""
    if not isinstance(value, datetime):
        raise InvalidTime(f"{what} is {told(value)}, not a datetime; {UNCHANGED}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidTime(f"{what} {value.isoformat()} has no time zone; {UNCHANGED}")
    try:
        moment = value.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise InvalidTime(
            f"{what} {value.isoformat()} is outside the calendar; {UNCHANGED}"
        ) from error
    if not YEAR_MIN <= moment.year <= YEAR_MAX:
        raise InvalidTime(
            f"{what} {value.isoformat()} is outside {YEAR_MIN} to {YEAR_MAX}; {UNCHANGED}"
        )
    return moment


def check_limit(value: object, what: str, *, minimum: int = 1, maximum: int = LIMIT_MAX) -> int:
    number = (
        int.__index__(value) if isinstance(value, int) and not isinstance(value, bool) else None
    )
    if number is None or number < minimum:
        raise InvalidLimit(
            f"{what} is {told(value)}; it must be a whole number of {minimum} or more; {UNCHANGED}"
        )
    if number > maximum:
        raise InvalidLimit(f"{what} is {told(number)}, the limit is {maximum}; {UNCHANGED}")
    return number


def check_seconds(value: object, what: str, *, zero: bool = False) -> float:
    """A finite duration, more than 0 (or 0 too), at most ten years; given as users do, `Seconds`."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = int.__index__(value)
    elif isinstance(value, float):
        value = float.__float__(value)
    try:
        value = duration.seconds_of(value)
    except ValueError as error:
        raise InvalidLimit(
            f"{what} is {told(value)}, not a duration: write 90s, 5m, 2h or 30d; {UNCHANGED}"
        ) from error
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > DELAY_SECONDS_MAX:
        raise InvalidLimit(
            f"{what} is out of range, the limit is {DELAY_SECONDS_MAX:.0f}; {UNCHANGED}"
        )
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < 0 or (value == 0 and not zero):  # type: ignore[operator]  # a number by now
        least = "0 or more" if zero else "more than 0"
        raise InvalidLimit(f"{what} is {told(value)}; it must be {least} seconds; {UNCHANGED}")
    seconds = float(value)  # type: ignore[arg-type]  # a number by now
    if seconds > DELAY_SECONDS_MAX:
        raise InvalidLimit(
            f"{what} is {seconds} seconds, the limit is {DELAY_SECONDS_MAX:.0f}; {UNCHANGED}"
        )
    return seconds


_Word = TypeVar("_Word", bound=enum.Enum)


def check_word(value: object, words: type[_Word]) -> _Word:
    """One of an enumeration's words, given as such or as its text."""
    try:
        return words(value)
    except Exception as error:  # also one that cannot be compared
        known = ", ".join(str(word.value) for word in words)
        raise InvalidInput(f"{told(value)} is not one of {known}; {UNCHANGED}") from error


def check_message(value: object, what: str) -> str:
    """Free text for people to read; may be empty."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is {type(value).__name__}, not text; {UNCHANGED}")
    return value


def check_text(value: object, what: str, chars_max: int) -> str:
    """Any text that every store can keep, line breaks included."""
    return _text(value, what, chars_max, InvalidName, printable=False)


def check_url(value: object, what: str) -> str:
    """A http or https url that a request can be sent to as it stands: with a host, without credentials."""
    url = check_text(value, what, URL_CHARS_MAX)
    if not url.isascii() or not url.isprintable() or not {" ", "\\"}.isdisjoint(url):
        raise InvalidInput(f"{what} has characters that must be percent-encoded; {UNCHANGED}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"{what} is not a url: {error}; {UNCHANGED}") from error
    if parts.scheme not in ("https", "http"):
        raise InvalidInput(f"{what} must start with https:// or http://; {UNCHANGED}")
    if not parts.hostname or port == 0:
        raise InvalidInput(f"{what} names no host that can be reached; {UNCHANGED}")
    if "@" in parts.netloc:
        # It would stand in the job, in listings and in logs for everybody to read.
        raise InvalidInput(f"{what} must not hold a user name or a password; {UNCHANGED}")
    return url


def _text(
    value: object, what: str, chars_max: int, error: type[InvalidInput], *, printable: bool = True
) -> str:
    if not isinstance(value, str):
        raise error(f"{what} is {type(value).__name__}, not text; {UNCHANGED}")
    value = str.__str__(value)  # plain text, whatever subclass of it was given
    if not value.strip():
        raise error(f"{what} is empty; {UNCHANGED}")
    if len(value) > chars_max:
        raise error(f"{what} has {len(value)} characters, the limit is {chars_max}; {UNCHANGED}")
    if not value.isprintable() and (printable or "\0" in value or not _is_unicode(value)):
        raise error(f"{what} {value[:40]!r} has a character that cannot be printed; {UNCHANGED}")
    return value


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False  # a lone surrogate
    return True


def _tag_value(value: object) -> str:
    try:
        return f"{value}"
    except Exception as error:
        raise InvalidName(
            f"the value of a tag is {told(value)}, which cannot be written; {UNCHANGED}"
        ) from error


def listed(values: object, what: str) -> list[object]:
    """A lone string is an iterable of its letters: never what was meant."""
    if not isinstance(values, Iterable):
        raise InvalidName(f"{what} must be a list, not {told(values)}; {UNCHANGED}")
    if isinstance(values, str | bytes):
        raise InvalidName(f"{what} must be a list, not one text ({told(values)}); {UNCHANGED}")
    try:
        return list(values)
    except Exception as error:
        raise InvalidName(
            f"{what} cannot be gone through: {type(error).__name__}; {UNCHANGED}"
        ) from error


def is_subset(wanted: Sequence[str], present: Sequence[str]) -> bool:
    """Tag matching: AND, case-sensitive, and the empty filter matches all."""
    return set(wanted) <= set(present)
