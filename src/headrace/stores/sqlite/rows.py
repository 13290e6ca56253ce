"""How SQLite holds jobs and events: positional rows, times as microseconds, lists as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

import msgspec

from headrace.clock import from_us, to_us
from headrace.model import Event, Job
from headrace.stores.codec import STATE_OF, WORDS, Dialect, lists_writer, reader
from headrace.stores.columns import JOB, STANDING, Kind, named
from headrace.stores.sqlite.session import Snapshot
from headrace.stores.sqlite.sql import EVENT_INSERTED, EVENT_READ, INSERTED, json_list, query

__all__ = [
    "STATE_OF",
    "change_columns",
    "event_columns",
    "insert_columns",
    "jobs_by_seq",
    "read_event",
    "read_job",
    "read_list",
    "read_time",
    "seqs_of_ids",
    "tags_text",
    "us_or_none",
]

_JOBS_BY_SEQ = query("job_rows")
_SEQS_OF_IDS = query("seqs_of_ids")

_NO_TAGS = "[]"
_TAGS_DECODER = msgspec.json.Decoder(tuple[str, ...])


def us_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_us(moment)


read_time = lru_cache(maxsize=4096)(from_us)
"""Times come in groups: a job's first three are one, and a batch is claimed at one."""


def read_list(text: str) -> tuple[str, ...]:
    return () if text == _NO_TAGS else _TAGS_DECODER.decode(text)


def tags_text(tags: tuple[str, ...]) -> str:
    return json_list(tags) if tags else _NO_TAGS


DIALECT = Dialect(
    reads=WORDS | {Kind.TIME: read_time, Kind.TEXTS: read_list},
    # Enumerations go in as plain text: SQLite's module takes a slow path for anything else.
    writes={
        Kind.TIME: to_us,
        Kind.TEXTS: tags_text,
        Kind.STATE: str,
        Kind.CATEGORY: str,
        Kind.EVENT_KIND: str,
    },
)

read_job = reader(Job, JOB, dialect=DIALECT)
"""A row of `job_rows`, and what gives the key of a lane."""

insert_columns = lists_writer(INSERTED, dialect=DIALECT, given=["seq", "lane"])
"""For `job_add`, of jobs, their seqs and their lanes."""

change_columns = lists_writer(
    (*STANDING, *named(JOB, "seq")), dialect=DIALECT, given=["seq", "lease_until"]
)
"""For `job_change`, of jobs, their seqs and the ends of their leases."""

read_event = reader(Event, EVENT_READ, dialect=DIALECT, computed={"cursor": "str(seq)"})
"""A row of `events`, and what gives the key of a lane."""

event_columns = lists_writer(EVENT_INSERTED, dialect=DIALECT, given=["job_seq", "lane"])
"""For `event_add`, of events, the seqs of their jobs, and their lanes."""


def jobs_by_seq(view: Snapshot, seqs: Sequence[int]) -> list[Job]:
    """The jobs with these seqs, in this order; those that are gone are left out."""
    lanes = view.lanes
    rows = view.connection.execute(_JOBS_BY_SEQ, (json_list(seqs),)).fetchall()
    lanes.learn(row[2] for row in rows)
    by_seq = {row[0]: row for row in rows}
    return [read_job(by_seq[seq], lanes.key) for seq in seqs if seq in by_seq]


def seqs_of_ids(view: Snapshot, ids: Sequence[str]) -> list[int]:
    """The seqs of those ids that are stored, each once."""
    return view.numbers(_SEQS_OF_IDS, (json_list(dict.fromkeys(ids)),))
