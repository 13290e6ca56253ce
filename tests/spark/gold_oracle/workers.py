"""How busy each worker was."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from tests.spark.gold_oracle.endings import is_failed, is_lost
from tests.spark.gold_oracle.grouping import HOUR, Groups, hour_of
from tests.spark.oracle import Row


def rows(attempts: Iterable[Row]) -> list[Row]:
    groups = Groups(attempts=0, completed=0, failures=0, losses=0, busy=timedelta(0))
    for attempt in attempts:
        worker, begin, end = attempt["worker"], attempt["leased_at"], attempt["ended_at"]
        groups.row(worker=worker, hour=hour_of(begin))["attempts"] += 1
        if end is None:
            continue
        hour = hour_of(begin)
        while hour <= end:
            busy = groups.row(worker=worker, hour=hour)
            busy["busy"] += min(end, hour + HOUR) - max(begin, hour)
            hour += HOUR
        last = groups.row(worker=worker, hour=hour_of(end))
        last["completed"] += attempt["outcome"] == "completed"
        last["failures"] += is_failed(attempt)
        last["losses"] += is_lost(attempt)
    found = groups.rows()
    for row in found:
        busy = row.pop("busy")
        row["busy_seconds"] = busy / timedelta(seconds=1)
        row["utilisation"] = busy / HOUR
    return found
