"""How much came in, and how much came out."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section, Trend
from headrace.report.wording import Unit

ENDS = ("completed", "failed", "dead", "cancelled", "abandoned")
_COUNTS = ("submitted", "started", *ENDS)
SERIES = ("submitted", "completed", "failed or dead", "cancelled")
"""The lines of the chart."""


def section(gold: Gold) -> Section:
    table = gold["throughput"]
    title = "Traffic"
    if not table.num_rows:
        return Section("traffic", title, "Nothing happened in this time.")
    total = rollup.totals(table, _COUNTS)
    step = rollup.step_for(gold.span)
    data = _series(gold, step)
    minutes = max(gold.span / timedelta(minutes=1), 1)
    ended = sum(total[way] for way in ENDS)
    peak = max(_line(data, "submitted"), key=lambda one: one[1])
    says = (
        f"{wording.counted(total['submitted'], 'job')} came in, "
        f"{wording.rate(total['submitted'] / minutes)} a minute, and {ended:,} came to an end. "
        f"Most came in at {gold.when(peak[0])}: {peak[1]:,} in {_in(step)}."
    )
    worst = max(_line(data, "failed or dead"), key=lambda one: one[1])
    if worst[1]:
        says += f" Failed and dead jobs peaked at {gold.when(worst[0])} with {worst[1]:,}."
    used = [name for name in SERIES if name == "submitted" or any(n for _, n in _line(data, name))]
    rows = rollup.summed(table, ["queue"], _COUNTS).to_pylist()
    return Section(
        "traffic",
        title,
        says,
        columns=(
            Column("queue", Unit.TEXT),
            Column("submitted"),
            Column("attempts", rank=2),
            Column("completed"),
            Column("failed"),
            Column("dead"),
            Column("cancelled", rank=1),
        ),
        rows=[
            (
                row["queue"],
                row["submitted"],
                row["started"],
                row["completed"],
                row["failed"],
                row["dead"],
                row["cancelled"] + row["abandoned"],
            )
            for row in rollup.longest(rows, "submitted")
        ],
        data=data.filter(pc.field("series").isin(used)),
        drawn=f"Jobs per {rollup.per(step)}: {', '.join(used)}.",
        trends=[
            Trend(name, [value for _, value in _line(data, name)])
            for name in used
            if name != "cancelled"
        ],
    )


def _in(step: timedelta) -> str:
    named = rollup.per(step)
    return named if named[0].isdigit() else f"{'an' if named == 'hour' else 'a'} {named}"


def _series(gold: Gold, step: timedelta) -> pa.Table:
    """`at`, `series`, `jobs`: every step, also those in which nothing happened."""
    table = rollup.summed(rollup.stepped(gold["throughput"], "minute", step), ["at"], _COUNTS)
    counted = {row["at"]: row for row in table.to_pylist()}
    steps = rollup.steps_of(gold.since, gold.until, step)
    none = dict.fromkeys(_COUNTS, 0)
    values = {
        "submitted": ("submitted",),
        "completed": ("completed",),
        "failed or dead": ("failed", "dead"),
        "cancelled": ("cancelled", "abandoned"),
    }
    return pa.table(
        {
            "at": pa.array([at for _ in SERIES for at in steps], rollup.TIME),
            "series": [name for name in SERIES for _ in steps],
            "jobs": pa.array(
                [
                    sum(counted.get(at, none)[column] for column in values[name])
                    for name in SERIES
                    for at in steps
                ],
                pa.int64(),
            ),
        }
    )


def _line(data: pa.Table, name: str) -> list[tuple[datetime, int]]:
    line = data.filter(pc.field("series") == name)
    return list(zip(line["at"].to_pylist(), line["jobs"].to_pylist(), strict=True))
