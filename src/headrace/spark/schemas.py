"""The exact columns of the tables that Spark reads from a store: jobs, events, attempts.

Spark takes Arrow batches only if they match to the letter, so this is the one definition: readers cast to
it, Spark's own schemas and the lake's first tables are made from it, and so is the reference documentation.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

TIME = pa.timestamp("us", tz="UTC")
_TEXT, _INT, _LONG, _DOUBLE = pa.string(), pa.int32(), pa.int64(), pa.float64()

_Columns = Mapping[str, tuple[pa.DataType, str]]
"""By name, in order: the type and the meaning. A name that ends in "?" may be null."""

_EVENTS: _Columns = {
    "seq": (_LONG, "The event's number, unique in its store."),
    "cursor": (_TEXT, "Where a reader of the log that has seen this event resumes."),
    "at": (TIME, "When it happened."),
    "tenant": (_TEXT, "The job's tenant."),
    "queue": (_TEXT, "The job's queue."),
    "type": (_TEXT, "The job's type."),
    "job_id": (_TEXT, "The job."),
    "kind": (_TEXT, "What happened: enqueued, leased, completed, …"),
    "before?": (_TEXT, "The job's state before; none when it was enqueued."),
    "after": (_TEXT, "The job's state after."),
    "version": (_INT, "Counts the job's changes, this one included."),
    "attempt": (_INT, "How often the job had been claimed."),
    "failures": (_INT, "How often it had failed."),
    "losses": (_INT, "How often its worker had vanished."),
    "priority": (_INT, "From 0 (critical) to 4 (bulk)."),
    "run_at": (TIME, "When the job was, or will be, due."),
    "worker?": (_TEXT, "Its last worker."),
    "lease_until?": (TIME, "How long the lease holds without a heartbeat."),
    "category?": (_TEXT, "Of the failure that this event tells of."),
    "code?": (_TEXT, "The failure's code."),
    "message?": (_TEXT, "The failure's message, cut to 1,000 characters."),
    "wait_us?": (_LONG, "leased: microseconds from due to claimed."),
    "run_us?": (_LONG, "Leaving a lease: microseconds since the claim."),
    "payload_bytes?": (_LONG, "enqueued: the size of the payload."),
    "result_bytes?": (_LONG, "completed: the size of the result."),
    "detail?": (
        _TEXT,
        "JSON. enqueued: tags, key, links, limits and dependencies. updated: what was changed.",
    ),
}

_JOBS: _Columns = {
    "seq": (_LONG, "The job's number in its store, in order of submission."),
    "id": (_TEXT, "The job's id."),
    "tenant": (_TEXT, "The tenant."),
    "queue": (_TEXT, "The queue."),
    "type": (_TEXT, "The type."),
    "priority": (_INT, "From 0 (critical) to 4 (bulk)."),
    "tags": (pa.list_(_TEXT), "Its tags, sorted."),
    "payload": (_TEXT, "Its payload, as JSON."),
    "state": (_TEXT, "Its state: blocked, pending, running, …"),
    "version": (_INT, "Counts its changes."),
    "attempt": (_INT, "How often it was claimed."),
    "failures": (_INT, "How often it failed."),
    "losses": (_INT, "How often its worker vanished."),
    "created_at": (TIME, "When it was submitted."),
    "run_at": (TIME, "When it was, or will be, due."),
    "updated_at": (TIME, "Its last change."),
    "scheduled_at?": (TIME, "Since when it had been due when it was last claimed."),
    "assigned_at?": (TIME, "When its last worker claimed it."),
    "started_at?": (TIME, "When its first attempt began."),
    "last_failed_at?": (TIME, "When an attempt last failed."),
    "finalized_at?": (TIME, "When it ended."),
    "assignee?": (_TEXT, "Its last worker."),
    "lease_until?": (TIME, "While it is leased: how long that holds without a heartbeat."),
    "category?": (_TEXT, "Of its last failure."),
    "code?": (_TEXT, "The code of its last failure."),
    "message?": (_TEXT, "The message of its last failure."),
    "result?": (_TEXT, "Its result, as JSON."),
    "progress?": (_DOUBLE, "How far its worker said it was, from 0 to 1."),
    "progress_note?": (_TEXT, "What the worker said of that."),
    "checkpoint?": (_TEXT, "What its worker kept for the next attempt, as JSON."),
    "log?": (_TEXT, "The last lines that its attempts logged, as a JSON list."),
    "key?": (_TEXT, "Its idempotency key."),
    "previous_id?": (_TEXT, "The job that it runs again."),
    "parent_id?": (_TEXT, "The job that spawned it."),
    "correlation_id?": (_TEXT, "Its correlation id."),
    "callback_url?": (_TEXT, "Who is told of its end."),
    "limit_key?": (_TEXT, "What its queue's limits per key count it by."),
    "depth": (_INT, "The longest chain of dependencies above it."),
    "max_attempts?": (_INT, "Its budget of failures and losses; none is without end."),
    "lease_seconds?": (_DOUBLE, "How long a claim holds without a heartbeat; none is without end."),
    "timeout_seconds?": (_DOUBLE, "How long an attempt may take."),
    "expires_at?": (TIME, "The end of its lifetime."),
    "backoff?": (_TEXT, "Its own backoff, as JSON; none takes its queue's."),
}

_ATTEMPTS: _Columns = {
    "job_id": (_TEXT, "The job."),
    "born_seq?": (
        _LONG,
        "Which life of the job: the seq of its enqueued event; none if the log began after it.",
    ),
    "attempt": (_INT, "1 for the first claim."),
    "tenant": (_TEXT, "The job's tenant."),
    "queue": (_TEXT, "The job's queue."),
    "type": (_TEXT, "The job's type."),
    "priority": (_INT, "The job's priority."),
    "worker": (_TEXT, "Who claimed it."),
    "ready_at": (TIME, "Since when it had been due."),
    "leased_at": (TIME, "When it was claimed."),
    "ended_at?": (TIME, "When the lease was left; none while it runs."),
    "outcome?": (_TEXT, "The kind of the event that ended it: completed, retrying, lost, …"),
    "state_after?": (_TEXT, "The job's state then."),
    "category?": (_TEXT, "Of the failure that ended it."),
    "code?": (_TEXT, "The failure's code."),
    "message?": (_TEXT, "The failure's message, cut to 1,000 characters."),
    "wait_us": (_LONG, "Microseconds from due to claimed."),
    "run_us?": (_LONG, "Microseconds from claimed to ended."),
    "result_bytes?": (_LONG, "The size of the result, if it completed with one."),
    "leased_seq": (_LONG, "The seq of the event that began it."),
    "ended_seq?": (_LONG, "The seq of the event that ended it."),
}


def _schema(columns: _Columns) -> pa.Schema:
    return pa.schema(
        [pa.field(name.removesuffix("?"), kind) for name, (kind, _) in columns.items()]
    )


EVENTS = _schema(_EVENTS)
"""One row per change of a job, as in `headrace.model.Event`; `detail` is JSON text."""

JOBS = _schema(_JOBS)
"""One row per job as it stands, as in `headrace.model.Job`, but for the lease token, which nobody but the
worker that holds it should know. Payload, result, checkpoint, log and backoff are JSON text."""

ATTEMPTS = _schema(_ATTEMPTS)
"""One row per claim of a job. `outcome` is the kind of the event that ended it, NULL while it runs;
`born_seq` is the seq of the event with which the job's life began, NULL if the log no longer holds it."""

TABLES: Mapping[str, pa.Schema] = {"jobs": JOBS, "events": EVENTS, "attempts": ATTEMPTS}
_COLUMNS: Mapping[str, _Columns] = {"jobs": _JOBS, "events": _EVENTS, "attempts": _ATTEMPTS}


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns in Spark's words, all of them nullable."""
    return from_arrow_schema(schema)


def meanings(table: str, *names: str) -> dict[str, str]:
    """What the columns of a table mean: those of these names, or all. One that ends in "?" may be null."""
    known = {
        name.removesuffix("?"): (name, meaning) for name, (_, meaning) in _COLUMNS[table].items()
    }
    return dict(known[name] for name in names or known)
