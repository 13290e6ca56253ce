"""What `df.write.format("headrace")` and `writeStream` can be told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from headrace import validation
from headrace.errors import InvalidInput
from headrace.manager.submission import BATCH_JOBS_MAX
from headrace.model import DEFAULT_QUEUE, Priority
from headrace.redaction import Redacted
from headrace.spark.address import NOT_A_PATH, PATH, for_executors

REJECTS_MAX_DEFAULT = 100_000
WRITE_ID_CHARS_MAX = 64
"""A job's id has 128: a batch's number, a partition's and a row's must find room after it."""

_WRITE_ID = re.compile(rf"[A-Za-z0-9._:-]{{1,{WRITE_ID_CHARS_MAX}}}")
Reader = Callable[[str], Any]

_SPARKS_OWN = frozenset({"checkpointlocation"})
"""Options of a stream that Spark passes on to its sink."""


class SinkOptions(Redacted, frozen=True, kw_only=True):
    """The options of one write, checked."""

    url: str
    type: str | None = None
    """Of rows that name none."""
    queue: str = DEFAULT_QUEUE
    tenant: str | None = None
    """None: that of the application, or the default one."""
    priority: int = Priority.NORMAL
    key_hold: float | None = None
    """For how many seconds a row's key is held, whether or not its job has ended. None: the policy's."""
    atomic: bool = False
    """All rows or none. Otherwise each task stores its own as it goes."""
    rejects: str | None = None
    """Where rows go that cannot be jobs. None: they fail the write."""
    rejects_max: int = REJECTS_MAX_DEFAULT
    """More than these fail the write all the same: then it is not the rows that are wrong."""
    app: str | None = None
    """`module:name` of the application whose policies, tenant and keys hold."""
    keys: str | None = None
    """The file of the key ring; None: that of the application, or of the environment."""
    batch_size: int | None = None
    """How many rows are stored in one step. None: as many as suit the store."""
    write_id: str | None = None
    """The write's name: a second run under the same name stores only what the first did not."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Names in any case. Raises InvalidInput, which says what is known."""
        given = {name.lower(): value for name, value in options.items()}
        given = {name: value for name, value in given.items() if name not in _SPARKS_OWN}
        if PATH in given:
            raise InvalidInput(f"save() takes no path; {validation.UNCHANGED}: {NOT_A_PATH}")
        unknown = given.keys() - _READERS.keys() - {"bad_rows"}
        if unknown:
            raise InvalidInput(
                f"the sink does not know the option {min(unknown)!r}; it knows "
                f"{', '.join(sorted({*_READERS, 'bad_rows'}))}; {validation.UNCHANGED}"
            )
        if "url" not in given:
            raise InvalidInput(
                f'the sink needs to know the store: .option("url", …); {validation.UNCHANGED}'
            )
        _check_rejects(given)
        read = {name: _READERS[name](value) for name, value in given.items() if name in _READERS}
        return cls(**read)


def _check_rejects(given: Mapping[str, str]) -> None:
    way = given.get("bad_rows", "fail").lower()
    if way not in ("fail", "reject"):
        raise InvalidInput(f"bad_rows is {way!r}: it is fail or reject; {validation.UNCHANGED}")
    if (way == "reject") != ("rejects" in given):
        raise InvalidInput(
            "bad_rows = reject and rejects = the path of a table belong together: give both or "
            f"neither; {validation.UNCHANGED}"
        )


def _url(text: str) -> str:
    return for_executors(text, validation.UNCHANGED)


def _flag(text: str) -> bool:
    words = {"true": True, "false": False}
    if (word := text.strip().lower()) in words:
        return words[word]
    raise InvalidInput(f"atomic is {text!r}: it is true or false; {validation.UNCHANGED}")


def _number(what: str, maximum: int = validation.LIMIT_MAX) -> Reader:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise InvalidInput(
                f"{what} is {text!r}, not a whole number; {validation.UNCHANGED}"
            ) from None
        return validation.check_limit(number, what, maximum=maximum)

    return read


def _seconds(what: str) -> Reader:
    def read(text: str) -> float:
        return validation.check_seconds(_plain(text), what)

    return read


def _plain(text: str) -> float | str:
    """Spark hands options over as text: seconds, or a duration such as `24h`."""
    try:
        return float(text)
    except ValueError:
        return text


def _write_id(text: str) -> str:
    if not _WRITE_ID.fullmatch(text):
        raise InvalidInput(
            f"write_id {text[:80]!r} must have 1 to {WRITE_ID_CHARS_MAX} letters, digits, dots, dashes, "
            f"colons or underscores: it begins the ids of the jobs; {validation.UNCHANGED}"
        )
    return text


def _text(what: str) -> Reader:
    def read(text: str) -> str:
        if not text.strip():
            raise InvalidInput(f"the option {what} is empty; {validation.UNCHANGED}")
        return text

    return read


def _path(what: str) -> Reader:
    """Absolute, where it is a path and not a url: a process of Spark may run in another folder."""
    read_text = _text(what)

    def read(text: str) -> str:
        given: str = read_text(text)
        return given if "://" in given else str(Path(given).absolute())

    return read


def _name(what: str) -> Reader:
    def read(text: str) -> str:
        return validation.check_name(text, what)

    return read


_READERS: Mapping[str, Reader] = {
    "url": _url,
    "type": _name("type"),
    "queue": _name("queue"),
    "tenant": _name("tenant"),
    "priority": validation.check_priority,
    "key_hold": _seconds("key_hold"),
    "atomic": _flag,
    "rejects": _path("rejects"),
    "rejects_max": _number("rejects_max"),
    "app": _text("app"),
    "keys": _path("keys"),
    "batch_size": _number("batch_size", BATCH_JOBS_MAX),
    "write_id": _write_id,
}
