"""Where the time goes in chains of jobs."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any

import pyarrow as pa

from headrace.report import wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section
from headrace.report.wording import Unit

ROWS_MAX = 10
PARTS = ("running", "waiting for a worker")


def section(gold: Gold) -> Section | None:
    """None where no job was held up by another."""
    title = "Critical paths"
    paths = gold["paths"].to_pylist()
    if not paths:
        return None
    ends: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        ends[path["queue"], path["type"]].append(path)
    told = sorted(ends.items(), key=lambda one: _median(one[1]), reverse=True)
    steps = by_step(gold)
    return Section(
        "paths",
        title,
        _says(gold, paths, steps),
        columns=(
            Column("ends with", Unit.TEXT),
            Column("paths"),
            Column("jobs long", rank=2),
            Column("median", Unit.SECONDS),
            Column("longest", Unit.SECONDS),
            Column("running", Unit.RATIO),
            Column("waiting", Unit.RATIO, rank=1),
        ),
        rows=[
            (
                named,
                len(group),
                max(one["length"] for one in group),
                _median(group),
                max(one["elapsed_seconds"] for one in group),
                _part(group, "run_seconds"),
                _part(group, "wait_seconds"),
            )
            for (_, named), group in told[:ROWS_MAX]
        ],
        data=_data(steps[:ROWS_MAX]),
        drawn="Time spent on critical paths, by the type of the job: running, and waiting for a worker.",
    )


def by_step(gold: Gold) -> list[dict[str, Any]]:
    """`type`, `run_seconds`, `wait_seconds` over whole paths, each job counted once, the longest first."""
    seen: dict[str, dict[str, Any]] = {}
    for path in gold["paths"].to_pylist():
        seen.update({step["job_id"]: step for step in path["steps"]})
    sums: dict[str, dict[str, Any]] = {}
    for step in seen.values():
        one = sums.setdefault(
            step["type"], {"type": step["type"], "run_seconds": 0.0, "wait_seconds": 0.0}
        )
        one["run_seconds"] += step["run_seconds"]
        one["wait_seconds"] += step["wait_seconds"]
    return sorted(
        sums.values(), key=lambda one: one["run_seconds"] + one["wait_seconds"], reverse=True
    )


def _median(paths: list[dict[str, Any]]) -> float:
    return float(statistics.median(one["elapsed_seconds"] for one in paths))


def _part(paths: list[dict[str, Any]], name: str) -> float | None:
    whole = sum(one["elapsed_seconds"] for one in paths)
    return sum(one[name] for one in paths) / whole if whole else None


def _says(gold: Gold, paths: list[dict[str, Any]], steps: list[dict[str, Any]]) -> str:
    longest = max(paths, key=lambda one: one["elapsed_seconds"])
    whole = sum(one["run_seconds"] + one["wait_seconds"] for one in steps) or 1.0
    first = steps[0]
    part = (first["run_seconds"] + first["wait_seconds"]) / whole
    return (
        f"{wording.counted(len(paths), 'job')} had to wait for other jobs. On their critical paths, "
        f"{first['type']} takes {wording.ratio(part)} of the time spent waiting for workers and running. The "
        f"longest path took {wording.seconds(longest['elapsed_seconds'])} and ended with "
        f"{longest['job_id']} at {gold.when(longest['finalized_at'])}."
    )


def _data(steps: list[dict[str, Any]]) -> pa.Table:
    """`type`, `part`, `seconds`."""
    rows = [
        {"type": one["type"], "part": part, "seconds": one[name]}
        for one in steps
        for part, name in zip(PARTS, ("run_seconds", "wait_seconds"), strict=True)
    ]
    kinds = [("type", pa.string()), ("part", pa.string()), ("seconds", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))
