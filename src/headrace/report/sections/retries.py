"""What trying again cost, and what it brought."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section
from headrace.report.wording import Unit

ROWS_MAX = 12
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
    types = [row for row in by_type(gold) if row["extra_attempts"] or row["wasted_seconds"]]
    if not types:
        return Section(
            "retries", title, "Every job needed one attempt only: nothing was tried again."
        )
    return Section(
        "retries",
        title,
        _says(total, types),
        columns=(
            Column("type", Unit.TEXT),
            Column("extra attempts", rank=1),
            Column("failed"),
            Column("lost", rank=2),
            Column("wasted", Unit.SECONDS),
            Column("of run time", Unit.RATIO),
            Column("recovered", Unit.RATIO),
        ),
        rows=[
            (
                row["name"],
                row["extra_attempts"],
                row["failed_attempts"],
                row["lost_attempts"],
                row["wasted_seconds"],
                share(row["wasted_seconds"], row["run_seconds"]),
                share(row["recovered_jobs"], row["retried_jobs"]),
            )
            for row in types[:ROWS_MAX]
        ],
        data=_data(types[:ROWS_MAX]),
        drawn="Run time that brought nothing, by type: of attempts that failed or were lost.",
    )


def by_type(gold: Gold) -> list[dict[str, Any]]:
    """Sums by queue and type, with a `name` for both, the most wasted time first."""
    if not gold["retries"].num_rows:
        return []
    rows = rollup.summed(gold["retries"], ["queue", "type"], _SUMS).to_pylist()
    names = rollup.labels((row["queue"], row["type"]) for row in rows)
    named = [row | {"name": names[row["queue"], row["type"]]} for row in rows]
    return rollup.longest(named, "wasted_seconds", "extra_attempts")


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _says(total: dict[str, Any], types: list[dict[str, Any]]) -> str:
    wasted = share(total["wasted_seconds"], total["run_seconds"])
    says = (
        f"{wording.counted(total['extra_attempts'], 'attempt')} went beyond a job's first, and failed or "
        f"lost attempts ran for {wording.seconds(total['wasted_seconds'])}"
    )
    says += "." if wasted is None else f", {wording.ratio(wasted)} of all run time."
    worst = types[0]
    if worst["wasted_seconds"]:
        says += f" {worst['name']} wasted most: {wording.seconds(worst['wasted_seconds'])}."
    if total["retried_jobs"]:
        says += (
            f" Of {wording.counted(total['retried_jobs'], 'job')} that needed more than one attempt, "
            f"{total['recovered_jobs']:,} completed."
        )
    return says


def _data(types: list[dict[str, Any]]) -> pa.Table | None:
    """`type`, `wasted_seconds`."""
    rows = [row | {"type": row["name"]} for row in types if row["wasted_seconds"]]
    kinds = [("type", pa.string()), ("wasted_seconds", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds)) if rows else None
