"""How many jobs were due and found no worker, and how many ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section, Trend
from headrace.report.wording import Unit

_LEVELS = ("waiting", "ready", "running")


def section(gold: Gold) -> Section:
    title = "Backlog"
    rows = [row for row in gold["backlog"].to_pylist() if row["minute"] < gold.until]
    if not rows:
        return Section("backlog", title, "No job waited or ran in this time.")
    queues: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["minute"]):
        queues.setdefault(row["queue"], []).append(row)
    step = rollup.step_for(gold.span)
    steps = rollup.steps_of(gold.since, gold.until, step)
    levels = {name: _levels(changes, steps, step) for name, changes in queues.items()}
    told = [(name, _peak(changes, gold), changes[-1]) for name, changes in queues.items()]
    told.sort(key=lambda one: one[1]["ready"], reverse=True)
    return Section(
        "backlog",
        title,
        _says(gold, told),
        columns=(
            Column("queue", Unit.TEXT),
            Column("most ready"),
            Column("at", Unit.TIME, rank=1),
            Column("ready at the end"),
            Column("running at the end", rank=2),
            Column("waiting at the end", rank=3),
        ),
        rows=[
            (name, peak["ready"], peak["minute"], last["ready"], last["running"], last["waiting"])
            for name, peak, last in told
        ],
        # A line at zero is nothing to see.
        data=_data(levels, steps) if any(peak["ready"] for _, peak, _ in told) else None,
        drawn=f"Jobs that were due and unclaimed, by queue, at the end of each {rollup.per(step)}.",
        trends=[
            Trend(name, [None if level is None else level["ready"] for level in levels[name]])
            for name, _, _ in told[:3]
        ],
    )


def _says(gold: Gold, told: Sequence[tuple[str, dict[str, Any], dict[str, Any]]]) -> str:
    name, peak, _ = told[0]
    if not peak["ready"]:
        says = "Whenever a job was due, a worker took it within the minute."
    else:
        says = (
            f"The longest line was in {name}: {wording.counted(peak['ready'], 'job')} due and unclaimed at "
            f"{gold.when(peak['minute'])}."
        )
    left = sum(last["ready"] for _, _, last in told)
    running = sum(last["running"] for _, _, last in told)
    at_the_end = f"{wording.counted(left, 'job')} {'is' if left == 1 else 'are'} due"
    return f"{says} At the end, {at_the_end} and {running:,} run."


def _peak(changes: Sequence[dict[str, Any]], gold: Gold) -> dict[str, Any]:
    """A level from before the report holds at its beginning."""
    within = [row | {"minute": max(row["minute"], gold.since)} for row in changes]
    return max(within, key=lambda row: row["ready"])


def _levels(
    changes: Sequence[dict[str, Any]], steps: Sequence[datetime], step: timedelta
) -> list[dict[str, Any] | None]:
    """The level at the end of each step: that of the last change before it."""
    levels: list[dict[str, Any] | None] = []
    last: dict[str, Any] | None = None
    index = 0
    for at in steps:
        while index < len(changes) and changes[index]["minute"] < at + step:
            last = changes[index]
            index += 1
        levels.append(last)
    return levels


def _data(levels: dict[str, list[dict[str, Any] | None]], steps: Sequence[datetime]) -> pa.Table:
    rows = [
        {"at": at, "queue": name, **{level: (one or {}).get(level, 0) for level in _LEVELS}}
        for name, line in levels.items()
        for at, one in zip(steps, line, strict=True)
    ]
    kinds = [
        ("at", rollup.TIME),
        ("queue", pa.string()),
        *((level, pa.int64()) for level in _LEVELS),
    ]
    return pa.Table.from_pylist(rows, pa.schema(kinds))
