"""What trying again cost, and what it brought.

An attempt costs a retry when it was tried again. What failed for good at its last attempt is no such cost.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section
from headrace.report.wording import Unit

ROWS_MAX = 12
_AGAIN = ("retrying", "lost")
"""The ends of attempts that are tried again."""
_WORTH_TELLING = 1.0
"""Seconds."""
_SUMS = (
    "attempts",
    "extra_attempts",
    "failed_attempts",
    "lost_attempts",
    "run_seconds",
    "wasted_seconds",
    "retried_jobs",
    "recovered_jobs",
    "given_up_jobs",
)


def section(gold: Gold) -> Section:
    title = "Retries and what they cost"
    table = gold["retries"]
    total = rollup.totals(table, _SUMS)
    if not total["attempts"] and not total["run_seconds"]:
        return Section("retries", title, "No attempt started or ended in this time.")
    types = [row for row in by_type(gold) if row["extra_attempts"] or row["retried_seconds"]]
    if not types:
        return Section(
            "retries", title, "Every job needed one attempt only: nothing was tried again."
        )
    return Section(
        "retries",
        title,
        _says(total | {"retried_seconds": cost(gold)}, types),
        columns=(
            Column("type", Unit.TEXT),
            Column("extra attempts", rank=1),
            Column("failed"),
            Column("lost", rank=2),
            Column("cost", Unit.SECONDS),
            Column("of run time", Unit.RATIO),
            Column("recovered", Unit.RATIO),
        ),
        rows=[
            (
                row["name"],
                row["extra_attempts"],
                row["failed_attempts"],
                row["lost_attempts"],
                row["retried_seconds"],
                share(row["retried_seconds"], row["run_seconds"]),
                share(row["recovered_jobs"], row["retried_jobs"]),
            )
            for row in types[:ROWS_MAX]
        ],
        data=_data(types[:ROWS_MAX]),
        drawn="Run time of attempts that failed or were lost and were tried again, by type.",
    )


def by_type(gold: Gold) -> list[dict[str, Any]]:
    """Sums by queue and type, with a `name` for both, those whose retries cost most first."""
    if not gold["retries"].num_rows:
        return []
    rows = rollup.summed(gold["retries"], ["queue", "type"], _SUMS).to_pylist()
    names = rollup.labels((row["queue"], row["type"]) for row in rows)
    costs = {
        (row["queue"], row["type"]): row["run_seconds"] for row in _again(gold, "queue", "type")
    }
    named = [
        row | {"name": names[key], "retried_seconds": costs.get(key, 0.0)}
        for row in rows
        for key in [(row["queue"], row["type"])]
    ]
    return rollup.longest(named, "retried_seconds", "extra_attempts")


def cost(gold: Gold) -> float:
    """How long the attempts ran that were tried again."""
    return float(sum(row["run_seconds"] for row in _again(gold)))


def _again(gold: Gold, *by: str) -> list[dict[str, Any]]:
    if not gold["outcomes"].num_rows:
        return []
    tried_again = gold["outcomes"].filter(pc.field("outcome").isin(list(_AGAIN)))
    summed: list[dict[str, Any]] = rollup.summed(tried_again, by, ["run_seconds"]).to_pylist()
    return summed


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _says(total: dict[str, Any], types: list[dict[str, Any]]) -> str:
    part = share(total["retried_seconds"], total["run_seconds"])
    says = (
        f"{wording.counted(total['extra_attempts'], 'attempt')} went beyond a job's first, and what was "
        f"tried again had run for {wording.seconds(total['retried_seconds'])}"
    )
    says += "." if part is None else f", {wording.ratio(part)} of all run time."
    worst = types[0]
    if worst["retried_seconds"] and len(types) > 1:
        says += f" {worst['name']} cost most: {wording.seconds(worst['retried_seconds'])}."
    final = total["wasted_seconds"] - total["retried_seconds"]
    if final >= _WORTH_TELLING:
        says += f" Attempts after which jobs had failed for good ran for {wording.seconds(final)}."
    if total["retried_jobs"]:
        says += (
            f" Of {wording.counted(total['retried_jobs'], 'job')} that needed more than one attempt, "
            f"{total['recovered_jobs']:,} completed."
        )
    return says


def _data(types: list[dict[str, Any]]) -> pa.Table | None:
    """`type`, `retried_seconds`."""
    rows = [row | {"type": row["name"]} for row in types if row["retried_seconds"]]
    kinds = [("type", pa.string()), ("retried_seconds", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds)) if rows else None
