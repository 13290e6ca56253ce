"""The chain of jobs that determined when a job with dependencies ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from tests.spark.gold_oracle.grouping import hour_of
from tests.spark.oracle import Row


def rows(jobs: Iterable[Row]) -> list[Row]:
    lives: dict[str, list[Row]] = {}
    for job in sorted(jobs, key=_birth):
        lives.setdefault(job["job_id"], []).append(job)
    found = []
    for life in lives.values():
        for job in life:
            if job["finalized_at"] is not None:
                path = _path(job, lives)
                if len(path) > 1:
                    found.append(_row(path))
    return found


def _path(job: Row, lives: dict[str, list[Row]]) -> list[Row]:
    path = [job]
    while (before := _predecessor(path[0], lives)) is not None:
        path.insert(0, before)
    return path


def _predecessor(job: Row, lives: dict[str, list[Row]]) -> Row | None:
    """The dependency that ended last before the job did, if that held the job up at all."""
    held_up_by = []
    for need in job["dependencies"]:
        other = _meant(need["job_id"], job, lives)
        if other is None or other["finalized_at"] is None:
            continue
        if job["created_at"] < other["finalized_at"] <= job["finalized_at"]:
            held_up_by.append(other)
    return max(held_up_by, key=lambda one: (one["finalized_at"], one["job_id"]), default=None)


def _meant(job_id: str, by: Row, lives: dict[str, list[Row]]) -> Row | None:
    """The life of that id that was there when the job came to need it; both may have come in one batch."""
    there = [
        one
        for one in lives.get(job_id, [])
        if _birth(one) < _birth(by) or one["created_at"] == by["created_at"]
    ]
    return there[-1] if there else None


def _birth(job: Row) -> int:
    seq: int = job["timeline"][0]["seq"]
    return seq


def _row(path: list[Row]) -> Row:
    last = path[-1]
    elapsed = last["finalized_at"] - path[0]["created_at"]
    return {
        **{name: last[name] for name in ("job_id", "born_seq", "tenant", "queue", "type", "state")},
        "hour": hour_of(last["finalized_at"]),
        "day": last["finalized_at"].date(),
        "finalized_at": last["finalized_at"],
        "length": len(path),
        "elapsed_seconds": elapsed / timedelta(seconds=1),
        "wait_seconds": sum(job["wait_us"] or 0 for job in path) / 1_000_000,
        "run_seconds": sum(job["run_us"] or 0 for job in path) / 1_000_000,
        "steps": [
            {
                "job_id": job["job_id"],
                "type": job["type"],
                "wait_seconds": (job["wait_us"] or 0) / 1_000_000,
                "run_seconds": (job["run_us"] or 0) / 1_000_000,
            }
            for job in path
        ],
    }
