"""Who used what share of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from tests.spark.gold_oracle.grouping import Groups, hour_of
from tests.spark.oracle import Row


def rows(attempts: Iterable[Row]) -> list[Row]:
    groups = Groups(attempts=0, run_us=0)
    all_attempts: Counter[datetime] = Counter()
    all_run_us: Counter[datetime] = Counter()
    for attempt in attempts:
        hour = hour_of(attempt["leased_at"])
        groups.row(tenant=attempt["tenant"], hour=hour)["attempts"] += 1
        all_attempts[hour] += 1
        if attempt["ended_at"] is not None:
            hour = hour_of(attempt["ended_at"])
            groups.row(tenant=attempt["tenant"], hour=hour)["run_us"] += attempt["run_us"]
            all_run_us[hour] += attempt["run_us"]
    found = groups.rows()
    for row in found:
        run_us = row.pop("run_us")
        row["run_seconds"] = run_us / 1_000_000
        row["attempts_share"] = _share(row["attempts"], all_attempts[row["hour"]])
        row["run_share"] = _share(run_us, all_run_us[row["hour"]])
    return found


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
