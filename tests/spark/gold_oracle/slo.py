"""Each hour against its objectives, and how fast the error budget burns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from headrace.spark.lake.gold.objectives import Objective
from tests.spark.gold_oracle.grouping import Groups, hour_of
from tests.spark.oracle import Row

_PROMISED = ("start_seconds", "start_ratio", "finish_seconds", "finish_ratio", "success_ratio")


def rows(
    jobs: Iterable[Row], attempts: Iterable[Row], objectives: Sequence[Objective]
) -> list[Row]:
    groups = Groups(started=0, started_in_time=0, completed=0, completed_in_time=0, ended=0)
    for attempt in attempts:
        if attempt["attempt"] != 1:
            continue
        group = groups.row(
            queue=attempt["queue"], type=attempt["type"], hour=hour_of(attempt["leased_at"])
        )
        waited = attempt["leased_at"] - attempt["ready_at"]
        promised = _objective(objectives, attempt)
        group["started"] += 1
        group["started_in_time"] += waited <= timedelta(seconds=promised.start_seconds)
    for job in jobs:
        if job["state"] not in {"completed", "failed", "dead"}:
            continue
        group = groups.row(queue=job["queue"], type=job["type"], hour=hour_of(job["finalized_at"]))
        group["ended"] += 1
        if job["state"] == "completed":
            due = max(job["created_at"], job["timeline"][0]["run_at"])
            promised = _objective(objectives, job)
            group["completed"] += 1
            group["completed_in_time"] += job["finalized_at"] - due <= timedelta(
                seconds=promised.finish_seconds
            )
    found = groups.rows()
    for row in found:
        promised = _objective(objectives, row)
        row |= {name: getattr(promised, name) for name in _PROMISED}
        late = row["started"] - row["started_in_time"]
        row["start_burn"] = _burn(late, row["started"], promised.start_ratio)
        late = row["completed"] - row["completed_in_time"]
        row["finish_burn"] = _burn(late, row["completed"], promised.finish_ratio)
        bad = row["ended"] - row["completed"]
        row["success_burn"] = _burn(bad, row["ended"], promised.success_ratio)
    return found


def _objective(objectives: Sequence[Objective], row: Row) -> Objective:
    """The first that is meant for the row's queue and type; the default is meant for all."""
    for one in objectives:
        if one.queue in {None, row["queue"]} and one.type in {None, row["type"]}:
            return one
    raise AssertionError(objectives)


def _burn(bad: int, whole: int, ratio: float) -> float:
    """1 where just as many are bad as was promised at most."""
    return bad / whole / (1 - ratio) if whole else 0.0
