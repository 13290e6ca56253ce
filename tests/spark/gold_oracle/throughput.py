"""What happened in each minute."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from tests.spark.gold_oracle.grouping import Groups, minute_of
from tests.spark.oracle import Row


def rows(jobs: Iterable[Row], attempts: Iterable[Row]) -> list[Row]:
    groups = Groups(
        submitted=0,
        started=0,
        retried=0,
        lost=0,
        completed=0,
        failed=0,
        dead=0,
        cancelled=0,
        abandoned=0,
    )

    def count(row: Row, at: datetime, what: str) -> None:
        group = groups.row(
            tenant=row["tenant"], queue=row["queue"], type=row["type"], minute=minute_of(at)
        )
        group[what] += 1

    for job in jobs:
        count(job, job["created_at"], "submitted")
        if job["finalized_at"] is not None:
            count(job, job["finalized_at"], job["state"])
    for attempt in attempts:
        count(attempt, attempt["leased_at"], "started")
        if attempt["outcome"] == "retrying":
            count(attempt, attempt["ended_at"], "retried")
        if attempt["outcome"] == "lost":
            count(attempt, attempt["ended_at"], "lost")
    return groups.rows()
