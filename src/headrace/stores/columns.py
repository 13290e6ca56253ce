"""The columns of a job, an event and a lane: the one list that every store reads, writes and selects by.

A store takes its SQL lists from here (`sqltext`), and its readers and writers of rows (`codec`). What only
one store has, it adds to its own lists with `own`.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from headrace.model import State


class Kind(enum.StrEnum):
    """What a value is, whatever a store makes of it."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    FREE_TEXT = "free_text"
    """What a handler said: any text, also one that a server cannot store."""
    TEXTS = "texts"
    JSON = "json"
    """Encoded, as bytes."""
    TIME = "time"
    STATE = "state"
    CATEGORY = "category"
    EVENT_KIND = "event_kind"
    LANE = "lane"
    """The number of a lane, which stands for the words of its key."""


class Group(enum.StrEnum):
    """Columns that are written together."""

    IDENTITY = "identity"
    STANDING = "standing"
    """Where a job stands: every change writes it."""
    BODY = "body"
    """Who a job is and how it may run: written once, but for what an update may change."""
    PAYLOAD = "payload"
    RESULT = "result"
    NOTE = "note"
    """What a worker says meanwhile: heartbeats of its own, no change."""
    LANE_KEY = "lane_key"
    LANE_COUNT = "lane_count"
    EVENT = "event"
    OWN = "own"
    """A store's own: in its rows, and in no job or event."""


class Column(msgspec.Struct, frozen=True):
    name: str
    """In tables and views."""
    field: str
    """Of the job or event; `failure.code` is a part of a part. Empty: of neither."""
    kind: Kind
    group: Group
    nullable: bool = False
    compared: bool = False
    """A commit is refused when the stored row has another value than the job it was computed from."""


def _columns(group: Group, *lines: str) -> tuple[Column, ...]:
    """One line per column: name, kind, then `null`, `compared` and, where it is another, `=field`."""
    return tuple(_column(group, *line.split()) for line in lines)


def _column(group: Group, name: str, kind: str, *more: str) -> Column:
    (field,) = [word[1:] for word in more if word.startswith("=")] or [name]
    return Column(name, field, Kind(kind), group, "null" in more, "compared" in more)


JOB: tuple[Column, ...] = (
    *_columns(Group.IDENTITY, "seq int", "id text", "lane lane ="),
    *_columns(
        Group.STANDING,
        "state state compared",
        "version int compared",
        "run_at time",
        "updated_at time",
        "attempt int compared",
        "failures int compared",
        "losses int compared",
        "token text null compared",
        "lease_until time null",
        "assignee text null compared",
        "assigned_at time null",
        "scheduled_at time null",
        "started_at time null",
        "last_failed_at time null",
        "finalized_at time null",
        "failure_message free_text null =failure.message",
        "failure_category category null =failure.category",
        "failure_code free_text null =failure.code",
    ),
    *_columns(
        Group.BODY,
        "tags texts",
        "created_at time",
        "key text null",
        "previous_id text null",
        "parent_id text null",
        "correlation_id text null",
        "callback_url text null",
        "depth int",
        "max_attempts int null",
        "lease_seconds float null",
        "timeout_seconds float null",
        "expires_at time null",
        "backoff json null =backoff_json",
    ),
    *_columns(Group.PAYLOAD, "payload json =payload_json"),
    *_columns(Group.RESULT, "result json null =result_json"),
    *_columns(
        Group.NOTE,
        "progress float null",
        "progress_note free_text null",
        "checkpoint json null =checkpoint_json",
        "log json null =log_json",
    ),
)
"""A job as a row. Its lane stands for tenant, queue, type, priority and limit key."""

EVENT: tuple[Column, ...] = (
    *_columns(Group.IDENTITY, "seq int"),
    *_columns(
        Group.EVENT,
        "at time",
        "lane lane =",
        "job_seq int =",
        "job_id text",
        "kind event_kind",
        "before state null",
        "after state",
        "version int",
        "attempt int",
        "failures int",
        "losses int",
        "run_at time",
        "worker text null",
        "lease_until time null",
        "category category null",
        "code free_text null",
        "message free_text null",
        "wait_us int null",
        "run_us int null",
        "payload_bytes int null",
        "result_bytes int null",
        "detail json null =detail_json",
    ),
)
"""An event as a row. `job_seq` is the seq of its job, by which the log is indexed."""

LANE_KEY: tuple[Column, ...] = _columns(
    Group.LANE_KEY,
    "tenant text compared",
    "queue text compared",
    "type text compared",
    "priority int compared",
    "limit_key text null compared",
)
"""What all jobs of a lane have in common."""


class LaneKey(NamedTuple):
    """Its values."""

    tenant: str
    queue: str
    type: str
    priority: int
    limit_key: str | None


LANE: tuple[Column, ...] = (
    *LANE_KEY,
    *_columns(Group.LANE_COUNT, *(f"{state} int =" for state in State)),
    *_columns(Group.LANE_COUNT, *(f"{state}_failures int =" for state in State)),
)
"""A lane as a row: its key; its jobs by state, and the failures of those jobs by state."""

STANDING = tuple(column for column in JOB if column.group is Group.STANDING)

COMPARED = tuple(column for column in JOB if column.compared)


def own(name: str, kind: Kind, *, nullable: bool = False) -> Column:
    """A column of one store only."""
    return Column(name, "", kind, Group.OWN, nullable)


def of(
    columns: Iterable[Column], *groups: Group, without: Collection[str] = ()
) -> tuple[Column, ...]:
    """Those of these groups (of all, if none is given), in order, without those of these names."""
    return tuple(
        column
        for column in columns
        if (not groups or column.group in groups) and column.name not in without
    )


def named(columns: Sequence[Column], *names: str) -> tuple[Column, ...]:
    """Those with these names, in the order of the names."""
    by_name = {column.name: column for column in columns}
    return tuple(by_name[name] for name in names)
