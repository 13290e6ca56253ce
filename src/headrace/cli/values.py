"""How options are read: durations, times, priorities, attempts, payloads. What is wrong is a usage error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace import codec, duration, validation
from headrace.errors import HeadraceError
from headrace.model import Priority


class Written(click.ParamType):  # type: ignore[type-arg]  # only newer versions of click make it generic
    """A value read from text by a function whose ValueError says what is wrong with the text."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def seconds(text: str) -> float:
    try:
        return validation.check_seconds(duration.parse(text), "it", zero=True)
    except ValueError:
        raise ValueError(f"{text!r} is not a duration: write 90s, 5m, 2h or 30d") from None
    except HeadraceError as error:
        raise ValueError(error.message) from error


def moment(text: str) -> datetime:
    try:
        return validation.check_time(datetime.fromisoformat(text), "the time")
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time: write 2026-12-01T09:00:00Z") from None
    except HeadraceError:
        raise ValueError(f"{text!r} has no time zone: end it with Z or +02:00") from None


def priority(text: str) -> int:
    """0 to 4, or critical, high, normal, low, bulk."""
    try:
        return validation.check_priority(text)
    except HeadraceError:
        listed = ", ".join(f"{level.value} {level.name.lower()}" for level in Priority)
        raise ValueError(f"{text!r} is not a priority: one of {listed}") from None


def attempts(text: str) -> int | None:
    if text == "unlimited":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is not a number of 1 or more, or the word unlimited")
    return int(text)


def payload(text: str) -> Any:
    """JSON in the argument itself, in a file (`@file`) or on standard input (`-`)."""
    try:
        encoded = _bytes_of(text)
        msgspec.json.decode(encoded)
    except OSError as error:
        raise ValueError(f"{text[1:]} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        given = "" if text.startswith("@") or text == "-" else f" {text!r}"
        raise ValueError(f"the payload{given} is not JSON: {error}") from error
    return codec.decode(encoded)


def _bytes_of(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if text.startswith("@"):
        return Path(text[1:]).read_bytes()
    return text.encode()


SECONDS = Written("duration", seconds)
MOMENT = Written("time", moment)
PRIORITY = Written("priority", priority)
ATTEMPTS = Written("attempts", attempts)
PAYLOAD = Written("json", payload)
