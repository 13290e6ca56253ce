"""What trying again costs, and what it brings."""

from __future__ import annotations

from collections.abc import Iterable

from tests.spark.gold_oracle.endings import is_failed, is_lost
from tests.spark.gold_oracle.grouping import Groups, hour_of
from tests.spark.oracle import Row


def rows(jobs: Iterable[Row], attempts: Iterable[Row]) -> list[Row]:
    groups = Groups(
        attempts=0,
        extra_attempts=0,
        failed_attempts=0,
        lost_attempts=0,
        run_us=0,
        wasted_us=0,
        retried_jobs=0,
        recovered_jobs=0,
        given_up_jobs=0,
        stopped_jobs=0,
    )
    for attempt in attempts:
        where = {"queue": attempt["queue"], "type": attempt["type"]}
        begun = groups.row(**where, hour=hour_of(attempt["leased_at"]))
        begun["attempts"] += 1
        begun["extra_attempts"] += attempt["attempt"] > 1
        if attempt["ended_at"] is None:
            continue
        ended = groups.row(**where, hour=hour_of(attempt["ended_at"]))
        failed, lost = is_failed(attempt), is_lost(attempt)
        ended["failed_attempts"] += failed
        ended["lost_attempts"] += lost
        ended["run_us"] += attempt["run_us"]
        ended["wasted_us"] += attempt["run_us"] if failed or lost else 0
    for job in jobs:
        if job["finalized_at"] is None or job["attempt"] <= 1:
            continue
        rest = groups.row(queue=job["queue"], type=job["type"], hour=hour_of(job["finalized_at"]))
        rest["retried_jobs"] += 1
        rest["recovered_jobs"] += job["state"] == "completed"
        rest["given_up_jobs"] += job["state"] in {"failed", "dead"}
        rest["stopped_jobs"] += job["state"] in {"cancelled", "abandoned"}
    found = groups.rows()
    for row in found:
        row["run_seconds"] = row.pop("run_us") / 1_000_000
        row["wasted_seconds"] = row.pop("wasted_us") / 1_000_000
    return found
