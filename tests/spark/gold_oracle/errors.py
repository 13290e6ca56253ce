"""Errors that mean the same, counted together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from headrace.error_groups import MESSAGE_CHARS_MAX, VARIABLE_PARTS
from tests.spark.gold_oracle.endings import is_failed, is_lost
from tests.spark.gold_oracle.grouping import Groups, hour_of
from tests.spark.oracle import Row


def rows(jobs: Iterable[Row], attempts: Iterable[Row]) -> list[Row]:
    groups = Groups(hits=[], run_us=0, fatal=0)

    def hit(row: Row, error: Mapping[str, Any], at: datetime, run_us: int, *, fatal: bool) -> None:
        group = groups.row(
            queue=row["queue"],
            type=row["type"],
            category=error["category"] or "none",
            code=error["code"] or "",
            message=_collapsed(error["message"] or ""),
            hour=hour_of(at),
        )
        group["hits"].append((at, row["job_id"], row["born_seq"]))
        group["run_us"] += run_us
        group["fatal"] += fatal

    for attempt in attempts:
        if is_failed(attempt) or is_lost(attempt):
            fatal = attempt["state_after"] in {"failed", "dead"}
            hit(attempt, attempt, attempt["ended_at"], attempt["run_us"], fatal=fatal)
    for job in jobs:
        last = job["timeline"][-1]
        # While it waited, so that no attempt tells of it.
        if job["state"] in {"failed", "dead"} and last["before"] not in {"running", "cancelling"}:
            hit(job, last, last["at"], 0, fatal=True)
    found = groups.rows()
    for row in found:
        hits = row.pop("hits")
        row["occurrences"] = len(hits)
        row["jobs"] = len({(job_id, born_seq) for _, job_id, born_seq in hits})
        row["run_seconds"] = row.pop("run_us") / 1_000_000
        row["first_seen"] = min(at for at, _, _ in hits)
        row["last_seen"] = max(at for at, _, _ in hits)
        row["example_job_id"] = max((at, job_id) for at, job_id, _ in hits)[1]
    return found


def _collapsed(message: str) -> str:
    for pattern, stand_in in VARIABLE_PARTS:
        message = re.sub(pattern, stand_in, message)
    return message.strip()[:MESSAGE_CHARS_MAX]
