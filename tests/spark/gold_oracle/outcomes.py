"""How attempts ended, and how jobs did."""

from __future__ import annotations

from collections.abc import Iterable

from tests.spark.gold_oracle.grouping import Groups, hour_of
from tests.spark.oracle import Row


def rows(jobs: Iterable[Row], attempts: Iterable[Row]) -> list[Row]:
    groups = Groups(attempts=0, run_us=0, jobs=0)
    for attempt in attempts:
        if attempt["ended_at"] is None:
            continue
        group = groups.row(
            queue=attempt["queue"],
            type=attempt["type"],
            outcome=attempt["outcome"],
            category=attempt["category"] or "none",
            hour=hour_of(attempt["ended_at"]),
        )
        group["attempts"] += 1
        group["run_us"] += attempt["run_us"]
    for job in jobs:
        if job["finalized_at"] is None:
            continue
        succeeded = job["state"] == "completed"
        group = groups.row(
            queue=job["queue"],
            type=job["type"],
            outcome=job["state"],
            # Whatever went wrong before, it is not why the job ended so.
            category="none" if succeeded else job["category"] or "none",
            hour=hour_of(job["finalized_at"]),
        )
        group["jobs"] += 1
    found = groups.rows()
    for row in found:
        row["run_seconds"] = row.pop("run_us") / 1_000_000
    return found
