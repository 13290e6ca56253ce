"""Who used what share of the whole."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section
from headrace.report.wording import Unit

ROWS_MAX = 10
DRAWN_MAX = 5


def section(gold: Gold) -> Section | None:
    """None of a single tenant: there is no share to tell."""
    title = "Tenants"
    table = gold["tenants"]
    total = rollup.totals(table, ["attempts", "run_seconds"])
    if not total["attempts"] and not total["run_seconds"]:
        return None
    rows = rollup.summed(table, ["tenant"], ["attempts", "run_seconds"]).to_pylist()
    if len(rows) == 1:
        return None
    tenants = [
        row
        | {
            "attempts_share": row["attempts"] / (total["attempts"] or 1),
            "run_share": row["run_seconds"] / (total["run_seconds"] or 1),
        }
        for row in rollup.longest(rows, "run_seconds", "attempts")
    ]
    data, step = _data(gold, [row["tenant"] for row in tenants])
    return Section(
        "tenants",
        title,
        _says(gold, tenants),
        columns=(
            Column("tenant", Unit.TEXT),
            Column("attempts"),
            Column("of attempts", Unit.RATIO),
            Column("run time", Unit.SECONDS),
            Column("of run time", Unit.RATIO),
        ),
        rows=[
            (
                row["tenant"],
                row["attempts"],
                row["attempts_share"],
                row["run_seconds"],
                row["run_share"],
            )
            for row in tenants[:ROWS_MAX]
        ],
        data=data,
        drawn=f"Each tenant's share of the run time, {rollup.over(step)}.",
    )


def _says(gold: Gold, tenants: list[dict[str, Any]]) -> str:
    first = tenants[0]
    others = wording.counted(len(tenants) - 1, "other tenant")
    return (
        f"{first['tenant']} took {wording.ratio(first['run_share'])} of the run time{gold.of_queues} and "
        f"{wording.ratio(first['attempts_share'])} of the attempts; {others} had the rest."
    )


def _data(gold: Gold, tenants: list[str]) -> tuple[pa.Table, timedelta | None]:
    """`at`, `tenant`, `run_seconds`: the largest by name, the rest as one."""
    table, step = rollup.hourly(gold["tenants"], gold.since, gold.until, points=48)
    named = set(tenants[:DRAWN_MAX])
    sums: dict[tuple[datetime, str], float] = {}
    for row in table.to_pylist():
        where = (row["at"], row["tenant"] if row["tenant"] in named else "all others")
        sums[where] = sums.get(where, 0.0) + row["run_seconds"]
    rows = [{"at": at, "tenant": name, "run_seconds": value} for (at, name), value in sums.items()]
    kinds = [("at", rollup.TIME), ("tenant", pa.string()), ("run_seconds", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds)), step
