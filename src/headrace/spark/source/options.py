"""The options of `spark.read.format("headrace")`: which store, which table, which rows, in what pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from headrace import address
from headrace.errors import InvalidInput, InvalidTime, UnknownStore
from headrace.model import State
from headrace.spark.address import NOT_A_PATH, PATH
from headrace.spark.schemas import TABLES

ROWS_PER_PARTITION = 100_000
MAX_ROWS_PER_BATCH = 250_000
RETRY_SECONDS = 60.0
EARLIEST = "earliest"
LATEST = "latest"

SQLITE = frozenset({"sqlite"})
POSTGRES = frozenset({"postgresql", "postgres"})
REDIS = frozenset({"redis", "rediss"})

_NOTHING = "nothing was read"


@dataclass(frozen=True)
class Predicates:
    """Which rows. None does not filter; every one that is given must hold."""

    tenant: tuple[str, ...] | None = None
    queue: tuple[str, ...] | None = None
    type: tuple[str, ...] | None = None
    state: tuple[str, ...] | None = None
    """Of a job now, after an event, or in which an attempt left its job; running while it has not."""
    since: datetime | None = None
    """At or after this."""
    until: datetime | None = None
    """Before this."""


@dataclass(frozen=True)
class SourceOptions:
    """What to read. `repr` keeps the url to itself: it may hold a password."""

    url: str = field(repr=False)
    table: str
    where: str
    """The store in messages: without user, password and options."""
    predicates: Predicates = Predicates()
    partitions: int | None = None
    """So many; None: as many as `rows_per_partition` makes."""
    rows_per_partition: int = ROWS_PER_PARTITION
    max_rows_per_batch: int = MAX_ROWS_PER_BATCH
    starting_cursor: str = EARLIEST
    """Where a stream without a checkpoint starts: earliest, latest, or behind the event with this cursor."""
    retry_seconds: float = RETRY_SECONDS
    """How long a store that is away is waited for."""

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def sqlite_path(self) -> Path:
        return Path(unquote(urlsplit(self.url).path.removeprefix("/")))

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Spark's options, whose names it spells in any case. Raises InvalidInput for any that is wrong."""
        given = {_known(name): value for name, value in options.items()}
        for name, example in (("url", "…"), ("table", " | ".join(sorted(TABLES)))):
            if name not in given:
                raise InvalidInput(
                    f'the option {name!r} is missing; {_NOTHING}: add .option("{name}", "{example}")'
                )
        url, where = _address(given.pop("url"))
        table = given.pop("table")
        if table not in TABLES:
            raise InvalidInput(
                f"there is no table {table!r}; {_NOTHING}: it is one of {', '.join(sorted(TABLES))}"
            )
        chosen: dict[str, Any] = {
            _FIELDS[name]: _READ[name](name, value)
            for name, value in given.items()
            if name not in _PREDICATES
        }
        predicates = {
            name: _READ[name](name, value) for name, value in given.items() if name in _PREDICATES
        }
        return cls(url=url, table=table, where=where, predicates=Predicates(**predicates), **chosen)


def _known(name: str) -> str:
    """The name as in `_READ`: small letters, words run together."""
    plain = name.lower().replace("_", "")
    if plain == PATH:
        raise InvalidInput(f"load() takes no path; {_NOTHING}: {NOT_A_PATH}")
    if plain not in _READ:
        raise InvalidInput(
            f"{name!r} is not an option of this source; {_NOTHING}: it takes {', '.join(_SPELLED)}"
        )
    return plain


def _address(url: str) -> tuple[str, str]:
    """The url as executors need it, and as messages may show it."""
    try:
        parts = address.split(url)
    except UnknownStore as error:
        raise UnknownStore(f"the option 'url' is not a url: {error.message}; {_NOTHING}") from None
    where = address.shown(url)
    url = address.joined(parts)
    if parts.scheme == "memory":
        raise InvalidInput(
            "a memory: store lives in one process and Spark's executors are others: they cannot see it; "
            f"{_NOTHING}: use sqlite:///path, postgresql://… or redis://…"
        )
    if parts.scheme not in SQLITE | POSTGRES | REDIS:
        raise UnknownStore(
            f"no store that Spark can read answers to a url with {parts.scheme or 'no scheme'!r}; "
            f"{_NOTHING}: use sqlite:///path, postgresql://… or redis://…"
        )
    if parts.scheme in SQLITE:
        path = unquote(parts.path.removeprefix("/"))
        if parts.user or parts.hosts or not path:
            raise UnknownStore(
                f"{where} names no file; {_NOTHING}: write sqlite:///jobs.db or sqlite:////absolute/jobs.db"
            )
        # A task may run in another folder than the one that the path was written for.
        query = f"?{parts.query}" if parts.query else ""
        return f"sqlite:///{quote(str(Path(path).absolute()))}{query}", where
    return url, where


# --- reading values ------------------------------------------------------------------------------


def _values(name: str, text: str) -> tuple[str, ...]:
    """`a,b` or `["a","b"]`: the latter for values with commas, and for programs: `[]` matches nothing."""
    if text.lstrip().startswith("["):
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise InvalidInput(
                f'{name} {text!r} is not a JSON list of texts; {_NOTHING}: write a,b or ["a", "b"]'
            )
        return tuple(values)
    named = tuple(value for part in text.split(",") if (value := part.strip()))
    if not named:
        raise InvalidInput(
            f"the option {name!r} names nothing; {_NOTHING}: leave it out to read every {name}"
        )
    return named


def _states(name: str, text: str) -> tuple[str, ...]:
    states = _values(name, text)
    for state in states:
        if state not in set(State):
            raise InvalidInput(
                f"{state!r} is not a state; {_NOTHING}: it is one of {', '.join(sorted(State))}"
            )
    return states


def _time(name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidTime(
            f"{name} {text!r} is not a time; {_NOTHING}: write it as 2026-07-01T00:00:00Z"
        ) from None
    if moment.tzinfo is None:
        raise InvalidTime(
            f"{name} {text!r} has no time zone; {_NOTHING}: write it as 2026-07-01T00:00:00Z"
        )
    return moment.astimezone(UTC)


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InvalidInput(f"{name} {text!r} must be a whole number of 1 or more; {_NOTHING}")
    return int(text)


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InvalidInput(f"{name} {text!r} must be a number of seconds; {_NOTHING}")
    return seconds


def _text(name: str, text: str) -> str:  # noqa: ARG001 - one signature for all
    return text.strip()


_PREDICATES = frozenset({"tenant", "queue", "type", "state", "since", "until"})
_READ: Mapping[str, Callable[[str, str], Any]] = {
    "url": _text,
    "table": _text,
    "tenant": _values,
    "queue": _values,
    "type": _values,
    "state": _states,
    "since": _time,
    "until": _time,
    "partitions": _count,
    "rowsperpartition": _count,
    "maxrowsperbatch": _count,
    "startingcursor": _text,
    "retryseconds": _seconds,
}
_FIELDS: Mapping[str, str] = {
    "partitions": "partitions",
    "rowsperpartition": "rows_per_partition",
    "maxrowsperbatch": "max_rows_per_batch",
    "startingcursor": "starting_cursor",
    "retryseconds": "retry_seconds",
}
_SPELLED = (
    *("url", "table", "tenant", "queue", "type", "state", "since", "until", "partitions"),
    *("rowsPerPartition", "maxRowsPerBatch", "startingCursor", "retrySeconds"),
)
