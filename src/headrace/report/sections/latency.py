"""How long jobs waited and ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section, Trend
from headrace.report.wording import Unit

ROWS_MAX = 12

Row = Mapping[str, Any]


def section(gold: Gold) -> Section:
    title = "Waiting and running"
    rows = gold["latency"].to_pylist()
    if not rows:
        return Section("latency", title, "No attempt started or ended in this time.")
    types = [
        ((queue, named), _figures(group))
        for (queue, named), group in _grouped(rows, "queue", "type").items()
    ]
    names = rollup.labels(key for key, _ in types)
    types.sort(key=lambda one: one[1]["wait_p95"] or 0.0, reverse=True)
    everything = _figures(rows)
    data = _data(gold)
    return Section(
        "latency",
        title,
        _says(everything, types),
        columns=(
            Column("type", Unit.TEXT),
            Column("attempts", rank=1),
            Column("wait p50", Unit.SECONDS, rank=3),
            Column("wait p95", Unit.SECONDS),
            Column("longest wait", Unit.SECONDS, rank=4),
            Column("run p50", Unit.SECONDS),
            Column("run p95", Unit.SECONDS),
        ),
        rows=[
            (
                names[key],
                one["started"],
                one["wait_p50"],
                one["wait_p95"],
                one["wait_max"],
                one["run_p50"],
                one["run_p95"],
            )
            for key, one in types[:ROWS_MAX]
        ],
        data=data,
        drawn="The wait that 95 % of attempts stayed within, by queue and hour.",
        trends=_trends(data),
    )


def wait_p95(rows: Iterable[Row]) -> float | None:
    """Over all rows: about the wait that 95 % of attempts stayed within."""
    wait: float | None = _figures(list(rows))["wait_p95"]
    return wait


def _says(everything: Row, types: list[tuple[tuple[str, str], dict[str, Any]]]) -> str:
    if everything["wait_p95"] is None:
        return "No attempt started in this time."
    says = (
        f"Half of the attempts started within {wording.seconds(everything['wait_p50'])} of being due and "
        f"95 % within {wording.seconds(everything['wait_p95'])}."
    )
    (queue, named), slowest = types[0]
    if len(types) > 1 and (slowest["wait_p95"] or 0) > everything["wait_p95"]:
        says += (
            f" {named} in {queue} waited longest: 95 % within {wording.seconds(slowest['wait_p95'])}, "
            f"once {wording.seconds(slowest['wait_max'])}."
        )
    running = max(types, key=lambda one: one[1]["run_sum"])
    share = running[1]["run_sum"] / everything["run_sum"] if everything["run_sum"] else 0
    if share:
        says += f" {running[0][1]} took {wording.ratio(share)} of all run time."
    return says + " Figures over several hours come from buckets and are about right."


def _grouped(rows: Iterable[Row], *by: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return groups


def _figures(rows: list[Row]) -> dict[str, Any]:
    """One row of gold tells itself exactly; several are put together from their buckets."""
    figures: dict[str, Any] = {
        "started": sum(row["started"] for row in rows),
        "ended": sum(row["ended"] for row in rows),
    }
    for span in ("wait", "run"):
        tops = [row[f"{span}_max_seconds"] for row in rows]
        top = max((one for one in tops if one is not None), default=None)
        buckets = rollup.added(row[f"{span}_buckets"] for row in rows)
        figures[f"{span}_max"] = top
        figures[f"{span}_sum"] = sum(row[f"{span}_sum_seconds"] for row in rows)
        for name, fraction in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            figures[f"{span}_{name}"] = (
                rows[0][f"{span}_{name}_seconds"]
                if len(rows) == 1
                else rollup.percentile(buckets, fraction, top)
            )
    return figures


def _data(gold: Gold) -> pa.Table:
    """`at`, `queue`, `wait_seconds`, `run_seconds`: the 95th percentiles, by step of an hour or more."""
    step = rollup.step_for(gold.span, least=rollup.HOUR)
    table = rollup.stepped(gold["latency"], "hour", step)
    drawn = [
        {"at": at, "queue": queue, "wait_seconds": one["wait_p95"], "run_seconds": one["run_p95"]}
        for (at, queue), group in _grouped(table.to_pylist(), "at", "queue").items()
        for one in [_figures(group)]
    ]
    drawn.sort(key=lambda row: (row["queue"], row["at"]))
    kinds = [
        ("at", rollup.TIME),
        ("queue", pa.string()),
        ("wait_seconds", pa.float64()),
        ("run_seconds", pa.float64()),
    ]
    return pa.Table.from_pylist(drawn, pa.schema(kinds))


def _trends(data: pa.Table) -> list[Trend]:
    groups = _grouped(data.to_pylist(), "queue")
    return [
        Trend(f"{queue} wait p95", [row["wait_seconds"] for row in rows])
        for (queue,), rows in list(groups.items())[:3]
    ]
