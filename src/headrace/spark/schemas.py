"""The exact columns of the tables that Spark reads from a store: jobs, events, attempts.

Spark takes Arrow batches only if they match to the letter, so these schemas are the one definition:
readers cast to them, and Spark's own schemas are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

TIME = pa.timestamp("us", tz="UTC")

EVENTS = pa.schema(
    [
        pa.field("seq", pa.int64()),
        pa.field("cursor", pa.string()),
        pa.field("at", TIME),
        pa.field("tenant", pa.string()),
        pa.field("queue", pa.string()),
        pa.field("type", pa.string()),
        pa.field("job_id", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
        pa.field("version", pa.int32()),
        pa.field("attempt", pa.int32()),
        pa.field("failures", pa.int32()),
        pa.field("losses", pa.int32()),
        pa.field("priority", pa.int32()),
        pa.field("run_at", TIME),
        pa.field("worker", pa.string()),
        pa.field("lease_until", TIME),
        pa.field("category", pa.string()),
        pa.field("code", pa.string()),
        pa.field("message", pa.string()),
        pa.field("wait_us", pa.int64()),
        pa.field("run_us", pa.int64()),
        pa.field("payload_bytes", pa.int64()),
        pa.field("result_bytes", pa.int64()),
        pa.field("detail", pa.string()),
    ]
)
"""One row per change of a job, as in `headrace.model.Event`; `detail` is JSON text."""

JOBS = pa.schema(
    [
        pa.field("seq", pa.int64()),
        pa.field("id", pa.string()),
        pa.field("tenant", pa.string()),
        pa.field("queue", pa.string()),
        pa.field("type", pa.string()),
        pa.field("priority", pa.int32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("payload", pa.string()),
        pa.field("state", pa.string()),
        pa.field("version", pa.int32()),
        pa.field("attempt", pa.int32()),
        pa.field("failures", pa.int32()),
        pa.field("losses", pa.int32()),
        pa.field("created_at", TIME),
        pa.field("run_at", TIME),
        pa.field("updated_at", TIME),
        pa.field("scheduled_at", TIME),
        pa.field("assigned_at", TIME),
        pa.field("started_at", TIME),
        pa.field("last_failed_at", TIME),
        pa.field("finalized_at", TIME),
        pa.field("assignee", pa.string()),
        pa.field("lease_until", TIME),
        pa.field("category", pa.string()),
        pa.field("code", pa.string()),
        pa.field("message", pa.string()),
        pa.field("result", pa.string()),
        pa.field("progress", pa.float64()),
        pa.field("progress_note", pa.string()),
        pa.field("checkpoint", pa.string()),
        pa.field("log", pa.string()),
        pa.field("key", pa.string()),
        pa.field("previous_id", pa.string()),
        pa.field("parent_id", pa.string()),
        pa.field("correlation_id", pa.string()),
        pa.field("callback_url", pa.string()),
        pa.field("limit_key", pa.string()),
        pa.field("depth", pa.int32()),
        pa.field("max_attempts", pa.int32()),
        pa.field("lease_seconds", pa.float64()),
        pa.field("timeout_seconds", pa.float64()),
        pa.field("expires_at", TIME),
        pa.field("backoff", pa.string()),
    ]
)
"""One row per job as it stands, as in `headrace.model.Job`, but for the lease token, which nobody but the
worker that holds it should know. Payload, result, checkpoint, log and backoff are JSON text."""

ATTEMPTS = pa.schema(
    [
        pa.field("job_id", pa.string()),
        pa.field("born_seq", pa.int64()),
        pa.field("attempt", pa.int32()),
        pa.field("tenant", pa.string()),
        pa.field("queue", pa.string()),
        pa.field("type", pa.string()),
        pa.field("priority", pa.int32()),
        pa.field("worker", pa.string()),
        pa.field("ready_at", TIME),
        pa.field("leased_at", TIME),
        pa.field("ended_at", TIME),
        pa.field("outcome", pa.string()),
        pa.field("state_after", pa.string()),
        pa.field("category", pa.string()),
        pa.field("code", pa.string()),
        pa.field("message", pa.string()),
        pa.field("wait_us", pa.int64()),
        pa.field("run_us", pa.int64()),
        pa.field("result_bytes", pa.int64()),
        pa.field("leased_seq", pa.int64()),
        pa.field("ended_seq", pa.int64()),
    ]
)
"""One row per claim of a job. `outcome` is the kind of the event that ended it, NULL while it runs;
`born_seq` is the seq of the event with which the job's life began, NULL if the log no longer holds it."""

TABLES: Mapping[str, pa.Schema] = {"jobs": JOBS, "events": EVENTS, "attempts": ATTEMPTS}


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns in Spark's words, all of them nullable."""
    return from_arrow_schema(schema)
