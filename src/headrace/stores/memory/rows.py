"""What one row becomes when something other than the lifecycle has written to it."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from headrace.history import UPDATED
from headrace.model import Job
from headrace.stores.base import Note, Rewrite
from headrace.stores.columns import COMPARED, JOB, LANE_KEY, Group, of

_compared = attrgetter("id", *(column.field for column in (*LANE_KEY, *COMPARED)))
_NOTES = [column.field for column in of(JOB, Group.PAYLOAD, Group.NOTE)]


def is_as_read(stored: Job, read: Job) -> bool:
    """Whether a change computed from `read` is one of the stored row: see `JobStore.commit`."""
    return bool(_compared(stored) == _compared(read))


def keep_newer(after: Job, stored: Job) -> Job:
    """What heartbeats, notes and rewrites wrote since the change's job was read stays."""
    kept: dict[str, Any] = {field: getattr(stored, field) for field in _NOTES}
    if stored.is_leased and after.is_leased:
        kept["lease_until"] = stored.lease_until
    return replace(after, **kept)


def annotated(job: Job, note: Note) -> Job:
    """The job with what its worker says."""
    return replace(job, **_given(note))


def updated(stored: Job, after: Job) -> Job:
    """The job with what an update says of it."""
    said = {name: getattr(after, name) for name in ("version", *UPDATED)}
    return replace(stored, **said)


def rewritten(job: Job, rewrite: Rewrite) -> Job:
    """The job with what is given. A failure's message is replaced only where there is a failure."""
    given = _given(rewrite)
    message = given.pop("failure_message", None)
    if message is not None and job.failure is not None:
        given["failure"] = replace(job.failure, message=message)
    return replace(job, **given)


def _given(said: Note | Rewrite) -> dict[str, Any]:
    """What is to be written: everything but the address that is not None."""
    return {
        name: value
        for name in said.__struct_fields__
        if name not in ("job_id", "version") and (value := getattr(said, name)) is not None
    }
