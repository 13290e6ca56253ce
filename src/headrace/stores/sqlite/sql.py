"""The SQL of this package: files of named blocks, filled in from the list of columns, read once at import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources

import msgspec

from headrace.model import State
from headrace.stores import sqltext
from headrace.stores.columns import (
    COMPARED,
    EVENT,
    JOB,
    LANE_KEY,
    STANDING,
    Column,
    Group,
    of,
)
from headrace.stores.sqltext import marks, names

_NAME = "headrace.stores.sqlite"

_TABLES = {Group.PAYLOAD: "payloads", Group.RESULT: "results", Group.NOTE: "notes"}
"""What never changes and may be large, and what most jobs do not have, stands apart from the narrow rows."""

INSERTED = of(JOB, Group.IDENTITY, Group.STANDING, Group.BODY)
"""What stands in `jobs` itself."""
EVENT_READ = of(EVENT, without=["job_seq"])
EVENT_INSERTED = of(EVENT, Group.EVENT)

LANE_COUNTS = [*State, *(f"{state}_failures" for state in State)]


def _by_list(columns: Iterable[Column]) -> str:
    return ",\n".join(
        f"{column.name} = new.column{number}" for number, column in enumerate(columns, start=1)
    )


def moved(counts: Iterable[str]) -> str:
    """The counts of a lane, each by a parameter."""
    return ", ".join(f"{name} = {name} + ?" for name in counts)


LISTS: Mapping[str, str] = {
    "job.rows": ",\n".join(f"{_TABLES.get(column.group, 'jobs')}.{column.name}" for column in JOB),
    "job.inserted": names(INSERTED),
    "job.marks": marks(INSERTED),
    "job.compared": names(COMPARED, "jobs."),
    "job.changed": ",\n".join(f"{column.name} = ?" for column in STANDING),
    "job.changed_by_list": _by_list(STANDING),
    "job.change_marks": marks(STANDING),
    "job.change_seq": f"new.column{len(STANDING) + 1}",
    "event.columns": names(EVENT_READ),
    "event.inserted": names(EVENT_INSERTED),
    "event.marks": marks(EVENT_INSERTED),
    "lane.key": names(LANE_KEY),
    "lane.of_lanes": names(LANE_KEY, "lanes."),
    "lane.sums": ",\n".join(f"sum({name})" for name in LANE_COUNTS),
    "lane.moved": moved(LANE_COUNTS),
    "lane.jobs": " + ".join(State),
}

STATEMENTS: Mapping[str, str] = sqltext.load(_NAME, "sql", LISTS)
"""Every statement, by name."""


def query(name: str) -> str:
    """The statement of this name in `sql/`."""
    return STATEMENTS[name]


def migrations() -> tuple[str, ...]:
    """The text of every migration, in order: the first takes an empty file to version 1."""
    folder = resources.files(_NAME) / "migrations"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(file.read_text("utf-8") for file in files if file.name.endswith(".sql"))


def json_list(values: Iterable[str | int]) -> str:
    """A list as one parameter: what `json_each(?)` unfolds."""
    return msgspec.json.encode(list(values)).decode()


def json_list_or_none(values: Iterable[str] | None) -> str | None:
    return None if values is None else json_list(values)
