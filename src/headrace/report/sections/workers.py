"""How busy each worker was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section, Trend
from headrace.report.wording import Unit

ROWS_MAX = 20
_SUMS = ("attempts", "completed", "failures", "losses", "busy_seconds")


def section(gold: Gold) -> Section:
    title = "Workers"
    table = gold["workers"]
    if not table.num_rows:
        return Section("workers", title, "No worker held a job in this time.")
    seconds = gold.span / timedelta(seconds=1)
    workers = [
        row | {"busy": row["busy_seconds"] / seconds}
        for row in rollup.summed(table, ["worker"], _SUMS).to_pylist()
    ]
    workers = rollup.longest(workers, "busy_seconds")
    data, step = _data(gold, [row["worker"] for row in workers[:ROWS_MAX]])
    return Section(
        "workers",
        title,
        _says(gold, workers),
        columns=(
            Column("worker", Unit.TEXT),
            Column("attempts"),
            Column("completed", rank=1),
            Column("failures"),
            Column("losses"),
            Column("busy", Unit.SECONDS, rank=2),
            Column("jobs at once", Unit.NUMBER),
        ),
        rows=[
            (
                row["worker"],
                row["attempts"],
                row["completed"],
                row["failures"],
                row["losses"],
                row["busy_seconds"],
                row["busy"],
            )
            for row in workers[:ROWS_MAX]
        ],
        data=data,
        drawn=f"Jobs that each worker held at once, on average, {rollup.over(step)}.",
        trends=[Trend("all, jobs at once", _together(gold, data, step))],
    )


def _says(gold: Gold, workers: list[dict[str, Any]]) -> str:
    at_once = sum(row["busy"] for row in workers)
    says = (
        f"{wording.counted(len(workers), 'worker')}{gold.of_queues} ran {wording.rate(at_once)} jobs at "
        f"once on average; the busiest is {workers[0]['worker']} with {workers[0]['busy']:.2f}."
    )
    lossy = [row for row in rollup.longest(workers, "losses") if row["losses"]]
    if lossy:
        says += f" {lossy[0]['worker']} lost {wording.counted(lossy[0]['losses'], 'attempt')}"
        says += "." if len(lossy) == 1 else f", more than any other of {len(lossy)} that lost some."
    return says


def _data(gold: Gold, shown: list[str]) -> tuple[pa.Table, timedelta | None]:
    """`at`, `worker`, `at_once`: one cell for each step, also for those in which it held nothing."""
    stepped, step = rollup.hourly(gold["workers"], gold.since, gold.until, points=48)
    table = rollup.summed(stepped, ["at", "worker"], ["busy_seconds"])
    busy = {(row["at"], row["worker"]): row["busy_seconds"] for row in table.to_pylist()}
    rows = [
        {
            "at": at,
            "worker": name,
            "at_once": busy.get((at, name), 0.0)
            / rollup.seconds_in(at, step, gold.since, gold.until),
        }
        for name in shown
        for at in rollup.steps_of(gold.since, gold.until, step)
    ]
    kinds = [("at", rollup.TIME), ("worker", pa.string()), ("at_once", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds)), step


def _together(gold: Gold, data: pa.Table, step: timedelta | None) -> list[float]:
    sums = {
        row["at"]: row["at_once"] for row in rollup.summed(data, ["at"], ["at_once"]).to_pylist()
    }
    return [sums.get(at, 0.0) for at in rollup.steps_of(gold.since, gold.until, step)]
