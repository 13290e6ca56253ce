"""What was promised, and how fast the allowance for breaking it was spent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section
from headrace.report.wording import Unit

ROWS_MAX = 12
_SUMS = ("started", "started_in_time", "completed", "completed_in_time", "ended")
BURNS = {"start": "late starts", "finish": "late finishes", "success": "failures"}


def section(gold: Gold) -> Section:
    title = "Objectives"
    table = gold["slo"]
    if not table.num_rows:
        return Section("objectives", title, "No job started or came to an end in this time.")
    judged = rollup.longest(by_type(gold), "worst_burn", "ended")
    data, step = _data(gold, judged)
    return Section(
        "objectives",
        title,
        _says(judged),
        columns=(
            Column("type", Unit.TEXT),
            Column("in-time starts", Unit.RATIO, rank=2),
            Column("in-time ends", Unit.RATIO, rank=3),
            Column("success", Unit.RATIO),
            Column("burn", Unit.FACTOR),
            Column("by", Unit.TEXT),
        ),
        rows=[
            (
                row["name"],
                row["start_met"],
                row["finish_met"],
                row["success_met"],
                row["worst_burn"],
                row["worst_by"] if row["worst_burn"] else None,
            )
            for row in judged[:ROWS_MAX]
        ],
        # A type that never burned is nothing to see.
        data=data if data.num_rows else None,
        drawn="The fastest burn rate of the error budgets of each type that burned any, "
        f"{rollup.over(step)}; above 1 breaks the objective.",
    )


def by_type(gold: Gold) -> list[dict[str, Any]]:
    """Each type over the whole time, against the objectives it was last judged by."""
    if not gold["slo"].num_rows:
        return []
    sums = rollup.summed(gold["slo"], ["queue", "type"], _SUMS).to_pylist()
    latest = {(row["queue"], row["type"]): row for row in gold["slo"].sort_by("hour").to_pylist()}
    names = rollup.labels(latest)
    return [
        _judged(row, latest[key]) | {"name": names[key]}
        for row in sums
        for key in [(row["queue"], row["type"])]
    ]


def late(gold: Gold) -> list[dict[str, Any]]:
    """The types that broke what was promised of their starts, the worst first."""
    return rollup.longest((row for row in by_type(gold) if row["start_burn"] > 1), "start_burn")


def _judged(row: dict[str, Any], promised: dict[str, Any]) -> dict[str, Any]:
    met = {
        "start": _share(row["started_in_time"], row["started"]),
        "finish": _share(row["completed_in_time"], row["completed"]),
        "success": _share(row["completed"], row["ended"]),
    }
    burns = {
        name: 0.0 if part is None else (1 - part) / (1 - promised[f"{name}_ratio"])
        for name, part in met.items()
    }
    worst = max(burns, key=lambda name: burns[name])
    return {
        **row,
        **{f"{name}_met": part for name, part in met.items()},
        **{f"{name}_burn": burn for name, burn in burns.items()},
        **{f"{name}_ratio": promised[f"{name}_ratio"] for name in met},
        "start_seconds": promised["start_seconds"],
        "finish_seconds": promised["finish_seconds"],
        "worst_burn": burns[worst],
        "worst_by": BURNS[worst],
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _says(judged: list[dict[str, Any]]) -> str:
    broken = [row for row in judged if row["worst_burn"] > 1]
    types = wording.counted(len(judged), "type")
    if not broken:
        return (
            f"All {types} kept their objectives." if len(judged) > 1 else "It kept its objectives."
        )
    worst = broken[0]
    of = f"{len(broken)} of {types}"
    if len(broken) == len(judged) > 1:
        of = "Both types" if len(judged) == 2 else f"All {types}"  # noqa: PLR2004 - what both means
    return (
        f"{of} broke an objective. {worst['name']} burns its budget fastest: "
        f"{wording.told(worst['worst_burn'], Unit.FACTOR)} what was promised, by {worst['worst_by']} "
        f"({_promise(worst)})."
    )


def _promise(row: dict[str, Any]) -> str:
    match row["worst_by"]:
        case "late starts":
            within = f"started within {wording.seconds(row['start_seconds'])}"
            name = "start"
        case "late finishes":
            within = f"completed within {wording.seconds(row['finish_seconds'])}"
            name = "finish"
        case _:
            within, name = "succeeded", "success"
    return f"{wording.ratio(row[f'{name}_met'])} {within}, {wording.ratio(row[f'{name}_ratio'])} should"


def _data(gold: Gold, judged: list[dict[str, Any]]) -> tuple[pa.Table, timedelta | None]:
    """`at`, `type`, `burn`: the fastest of the three burn rates in any hour of the step."""
    table, step = rollup.hourly(gold["slo"], gold.since, gold.until, points=48)
    burned = [row for row in judged[:ROWS_MAX] if row["worst_burn"]]
    shown = {(row["queue"], row["type"]): row["name"] for row in burned}
    burns: dict[tuple[Any, str], float] = {}
    for row in table.to_pylist():
        if (row["queue"], row["type"]) in shown:
            where = (row["at"], shown[row["queue"], row["type"]])
            burns[where] = max(burns.get(where, 0.0), *(row[f"{name}_burn"] for name in BURNS))
    rows = [{"at": at, "type": named, "burn": burn} for (at, named), burn in burns.items()]
    kinds = [("at", rollup.TIME), ("type", pa.string()), ("burn", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds)), step
