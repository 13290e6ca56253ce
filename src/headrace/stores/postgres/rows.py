"""Jobs and events as rows, by position: this is where a store spends its Python time."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model import Event, Job
from headrace.stores.codec import STATE_OF, WORDS, Dialect, reader
from headrace.stores.columns import EVENT, JOB, Kind, of, own
from headrace.stores.postgres.columns import CLAIMED
from headrace.stores.postgres.drivers import Row
from headrace.stores.postgres.lanes import Lanes

__all__ = ["LANE", "STATE_OF", "read_claimed", "read_event", "read_job", "read_jobs"]

DIALECT = Dialect(reads={Kind.TEXTS: tuple, **WORDS})

LANE = 2
"""The position of the lane in a row of `job_rows` and in one of a claim."""

read_job = reader(Job, JOB, dialect=DIALECT)
"""A row of `job_rows`, and what gives the key of a lane."""

read_claimed = reader(
    Job,
    CLAIMED,
    (own("state", Kind.TEXT), own("assignee", Kind.TEXT), own("nonce", Kind.TEXT)),
    dialect=DIALECT,
    computed={
        "state": "state",
        "assignee": "assignee",
        "assigned_at": "updated_at",
        "token": "f'{attempt}.{nonce}'",
    },
)
"""A row of `claimed_job`, as far as it is about the job; its state, who claimed it, and with which nonce."""

read_event = reader(
    Event,
    (
        own("xid", Kind.TEXT),
        *of(EVENT, without={"job_seq"}),
        own("is_readable", Kind.BOOL),
    ),
    dialect=DIALECT,
    computed={"cursor": "f'{xid}:{seq}'"},
)
"""A row of `read_events`, and what gives the key of a lane."""


async def read_jobs(rows: Sequence[Row], lanes: Lanes) -> list[Job]:
    """Rows of `job_rows`, in order."""
    await lanes.know({row[LANE] for row in rows})
    return [read_job(row, lanes.key) for row in rows]
