"""Gold tables written by hand: small, with every column, and without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")
BUCKETS = 22

Rows = Sequence[Mapping[str, Any]]

_COUNT, _TEXT, _REAL = pa.int64(), pa.string(), pa.float64()
_STEP = pa.struct(
    [("job_id", _TEXT), ("type", _TEXT), ("wait_seconds", _REAL), ("run_seconds", _REAL)]
)
_SPAN = ("p50_seconds", "p90_seconds", "p95_seconds", "p99_seconds", "max_seconds", "sum_seconds")

COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "throughput": {
        **dict.fromkeys(("tenant", "queue", "type"), _TEXT),
        "minute": TIME,
        **dict.fromkeys(("submitted", "started", "retried", "lost", "completed"), _COUNT),
        **dict.fromkeys(("failed", "dead", "cancelled", "abandoned"), _COUNT),
    },
    "latency": {
        **dict.fromkeys(("queue", "type"), _TEXT),
        **dict.fromkeys(("started", "ended"), _COUNT),
        **{f"{span}_{name}": _REAL for span in ("wait", "run") for name in _SPAN},
        **dict.fromkeys(("wait_buckets", "run_buckets"), pa.list_(_COUNT)),
    },
    "outcomes": {
        **dict.fromkeys(("queue", "type", "outcome", "category"), _TEXT),
        "attempts": _COUNT,
        "run_seconds": _REAL,
        "jobs": _COUNT,
    },
    "errors": {
        **dict.fromkeys(("queue", "type", "category", "code", "message"), _TEXT),
        **dict.fromkeys(("occurrences", "jobs", "fatal"), _COUNT),
        "run_seconds": _REAL,
        "first_seen": TIME,
        "last_seen": TIME,
        "example_job_id": _TEXT,
    },
    "retries": {
        **dict.fromkeys(("queue", "type"), _TEXT),
        **dict.fromkeys(("attempts", "extra_attempts", "failed_attempts", "lost_attempts"), _COUNT),
        "run_seconds": _REAL,
        "wasted_seconds": _REAL,
        **dict.fromkeys(
            ("retried_jobs", "recovered_jobs", "given_up_jobs", "stopped_jobs"), _COUNT
        ),
    },
    "workers": {
        "worker": _TEXT,
        **dict.fromkeys(("attempts", "completed", "failures", "losses"), _COUNT),
        "busy_seconds": _REAL,
        "utilisation": _REAL,
    },
    "tenants": {
        "tenant": _TEXT,
        "attempts": _COUNT,
        "run_seconds": _REAL,
        "attempts_share": _REAL,
        "run_share": _REAL,
    },
    "slo": {
        **dict.fromkeys(("queue", "type"), _TEXT),
        **dict.fromkeys(("started", "started_in_time", "completed", "completed_in_time"), _COUNT),
        "ended": _COUNT,
        **dict.fromkeys(("start_seconds", "start_ratio", "finish_seconds", "finish_ratio"), _REAL),
        **dict.fromkeys(("success_ratio", "start_burn", "finish_burn", "success_burn"), _REAL),
    },
    "backlog": {
        "queue": _TEXT,
        "minute": TIME,
        **dict.fromkeys(("waiting", "ready", "running"), _COUNT),
    },
    "paths": {
        "job_id": _TEXT,
        "born_seq": _COUNT,
        **dict.fromkeys(("tenant", "queue", "type", "state"), _TEXT),
        "finalized_at": TIME,
        "length": pa.int32(),
        **dict.fromkeys(("elapsed_seconds", "wait_seconds", "run_seconds"), _REAL),
        "steps": pa.list_(_STEP),
    },
}
"""All but `hour` and `day`, which every table has."""

_TEXTS = {"tenant": "acme", "queue": "mail", "type": "send", "category": "temporary", "code": ""}
_PROMISED = {
    "start_seconds": 60.0,
    "start_ratio": 0.99,
    "finish_seconds": 900.0,
    "finish_ratio": 0.99,
    "success_ratio": 0.99,
}


def at(minute: float) -> datetime:
    """Minutes from noon."""
    return NOON + timedelta(minutes=minute)


def buckets(**counts: int) -> list[int]:
    """`b3=7`: seven in the fourth bucket."""
    made = [0] * BUCKETS
    for name, count in counts.items():
        made[int(name[1:])] = count
    return made


def table(name: str, rows: Rows) -> pa.Table:
    """Rows with what they name; counts are 0, names the usual ones, the hour is noon or its minute's."""
    columns = COLUMNS[name] | {"hour": TIME, "day": pa.date32()}
    return pa.Table.from_pylist([_whole(columns, row) for row in rows], pa.schema(columns.items()))


def _whole(columns: Mapping[str, pa.DataType], row: Mapping[str, Any]) -> dict[str, Any]:
    unknown = set(row) - set(columns)
    assert not unknown, unknown
    made: dict[str, Any] = {}
    for name, kind in columns.items():
        if pa.types.is_integer(kind):
            made[name] = 0
        elif "_p" in name:
            made[name] = None  # no percentile of its own, unless it is named
        elif pa.types.is_floating(kind):
            made[name] = _PROMISED.get(name, 0.0)
        elif pa.types.is_string(kind):
            made[name] = _TEXTS.get(name, "")
        elif pa.types.is_list(kind):
            made[name] = [] if name == "steps" else [0] * BUCKETS
        elif pa.types.is_timestamp(kind):
            made[name] = NOON
    made |= row
    if "hour" not in row:
        moment: datetime = made.get("minute", made.get("finalized_at", made["hour"]))
        made["hour"] = moment.replace(minute=0, second=0, microsecond=0)
    return made | {"day": made["hour"].date()}


def write(lake: Path, tables: Mapping[str, Rows]) -> Path:
    """A lake of these tables; those not named are there and empty."""
    for name in COLUMNS:
        rows = table(name, tables.get(name, ()))
        write_deltalake(lake / "gold" / name, rows, mode="overwrite", partition_by=["day"])
    return lake


AFTERNOON: dict[str, Rows] = {
    "throughput": [
        {"minute": at(0), "submitted": 5, "started": 5, "completed": 3},
        {"minute": at(1), "submitted": 1, "started": 2, "dead": 1, "retried": 2},
        {"minute": at(61), "queue": "web", "type": "fetch", "submitted": 9, "completed": 9},
    ],
    "latency": [
        {
            "hour": at(0),
            "started": 7,
            "wait_p50_seconds": 0.4,
            "wait_p95_seconds": 80.0,
            "wait_max_seconds": 90.0,
            "wait_buckets": buckets(b8=6, b15=1),
            "ended": 6,
            "run_p50_seconds": 3.0,
            "run_p95_seconds": 30.0,
            "run_max_seconds": 40.0,
            "run_sum_seconds": 60.0,
            "run_buckets": buckets(b11=5, b14=1),
        },
        {
            "hour": at(60),
            "queue": "web",
            "type": "fetch",
            "started": 9,
            "wait_max_seconds": 0.1,
            "wait_buckets": buckets(b6=9),
            "ended": 9,
            "run_max_seconds": 1.0,
            "run_sum_seconds": 9.0,
            "run_buckets": buckets(b9=9),
        },
    ],
    "outcomes": [
        {"hour": at(0), "outcome": "completed", "category": "none", "attempts": 3, "jobs": 3},
        {"hour": at(0), "outcome": "retrying", "attempts": 2, "run_seconds": 9.0},
        {"hour": at(0), "outcome": "dead", "attempts": 1, "jobs": 1},
        {
            "hour": at(60),
            "queue": "web",
            "type": "fetch",
            "outcome": "completed",
            "category": "none",
            "attempts": 9,
            "jobs": 9,
        },
    ],
    "errors": [
        {
            "hour": at(0),
            "message": "cannot reach <text> & <script>",
            "occurrences": 3,
            "jobs": 2,
            "fatal": 1,
            "run_seconds": 12.0,
            "first_seen": at(0),
            "last_seen": at(1),
            "example_job_id": "job-7",
        },
        {"hour": at(0), "message": "rare", "occurrences": 1, "jobs": 1, "example_job_id": "job-8"},
    ],
    "retries": [
        {
            "hour": at(0),
            "attempts": 7,
            "extra_attempts": 2,
            "failed_attempts": 3,
            "run_seconds": 60.0,
            "wasted_seconds": 12.0,
            "retried_jobs": 2,
            "recovered_jobs": 1,
            "given_up_jobs": 1,
        },
        {"hour": at(60), "queue": "web", "type": "fetch", "attempts": 9, "run_seconds": 9.0},
    ],
    "workers": [
        {"hour": at(0), "worker": "w1", "attempts": 7, "failures": 3, "busy_seconds": 60.0},
        {"hour": at(60), "worker": "w2", "attempts": 9, "completed": 9, "busy_seconds": 9.0},
    ],
    "tenants": [
        {"hour": at(0), "attempts": 7, "run_seconds": 60.0},
        {"hour": at(60), "tenant": "bolt", "attempts": 9, "run_seconds": 9.0},
    ],
    "slo": [
        {
            "hour": at(0),
            "started": 5,
            "started_in_time": 4,
            "completed": 3,
            "completed_in_time": 3,
            "ended": 4,
            "start_burn": 20.0,
            "success_burn": 25.0,
        },
        {
            "hour": at(60),
            "queue": "web",
            "type": "fetch",
            "started": 9,
            "started_in_time": 9,
            "completed": 9,
            "completed_in_time": 9,
            "ended": 9,
        },
    ],
    "backlog": [
        {"minute": at(0), "waiting": 3, "ready": 2, "running": 2},
        {"minute": at(1), "waiting": 1, "ready": 0, "running": 0},
        {"minute": at(61), "queue": "web"},
        {"minute": at(9000), "waiting": 1, "ready": 1},  # one is due in six days
    ],
    "paths": [
        {
            "job_id": "job-9",
            "finalized_at": at(1),
            "length": 2,
            "elapsed_seconds": 60.0,
            "wait_seconds": 10.0,
            "run_seconds": 45.0,
            "steps": [
                {"job_id": "job-1", "type": "fetch", "wait_seconds": 1.0, "run_seconds": 40.0},
                {"job_id": "job-9", "type": "send", "wait_seconds": 9.0, "run_seconds": 5.0},
            ],
        }
    ],
}
"""Two hours: mail has trouble in the first, web runs well in the second."""
