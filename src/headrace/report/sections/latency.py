"""How long jobs waited and ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.percentiles import Estimate, Spread
from headrace.report.section import Column, Section, Trend
from headrace.report.wording import Unit

ROWS_MAX = 12
DRAWN_MAX = 6
"""Types with a line of their own."""

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
    types.sort(key=lambda one: _told(one[1]["wait_p95"]) or 0.0, reverse=True)
    everything = _figures(rows)
    drawn = [key for key, one in types if one["wait_p95"]][:DRAWN_MAX]
    data, step = _data(gold, {key: names[key] for key in drawn})
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
                _told(one["wait_p50"]),
                _told(one["wait_p95"]),
                one["wait_max"],
                _told(one["run_p50"]),
                _told(one["run_p95"]),
            )
            for key, one in types[:ROWS_MAX]
        ],
        data=data,
        drawn=f"The wait that 95 % of attempts stayed within, of {_which(drawn, types)}, "
        f"{rollup.over(step)}.",
        trends=_trends(data),
    )


def wait_p95(rows: Iterable[Row]) -> Estimate | None:
    """Over all rows: the wait that 95 % of attempts stayed within."""
    return Spread(rows, "wait").percentile("p95")


def _told(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.seconds


def _which(drawn: list[tuple[str, str]], types: list[Any]) -> str:
    return (
        "each type" if len(drawn) == len(types) else f"the {len(drawn)} types that waited longest"
    )


def _says(everything: Row, types: list[tuple[tuple[str, str], dict[str, Any]]]) -> str:
    half, most = everything["wait_p50"], everything["wait_p95"]
    if most is None:
        return "No attempt started in this time."
    says = (
        f"Half of the attempts started within {wording.about(half)} of being due and 95 % within "
        f"{wording.about(most)}."
    )
    (queue, named), slowest = types[0]
    worst = slowest["wait_p95"]
    if len(types) > 1 and worst is not None and worst.seconds > most.seconds:
        says += (
            f" {named} in {queue} waited longest: 95 % within {wording.about(worst)}, "
            f"once {wording.seconds(slowest['wait_max'])}."
        )
    running = max(types, key=lambda one: one[1]["run_sum"])
    share = running[1]["run_sum"] / everything["run_sum"] if everything["run_sum"] else 0
    if share:
        says += f" {running[0][1]} took {wording.ratio(share)} of all run time."
    if all(
        one is None or one.is_close for _, row in types for one in row.values() if _is_estimate(one)
    ):
        return says
    return says + " Percentiles of several hours or types together are estimates."


def _is_estimate(value: Any) -> bool:
    return isinstance(value, Estimate)


def _grouped(rows: Iterable[Row], *by: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return groups


def _figures(rows: list[Row]) -> dict[str, Any]:
    """One row of gold tells itself exactly; several are put together."""
    figures: dict[str, Any] = {
        "started": sum(row["started"] for row in rows),
        "ended": sum(row["ended"] for row in rows),
    }
    for span in ("wait", "run"):
        spread = Spread(rows, span)
        figures[f"{span}_max"] = spread.longest
        figures[f"{span}_sum"] = sum(row[f"{span}_sum_seconds"] for row in rows)
        for name in ("p50", "p95"):
            figures[f"{span}_{name}"] = spread.percentile(name)
    return figures


def _data(gold: Gold, named: Mapping[tuple[str, str], str]) -> tuple[pa.Table, timedelta | None]:
    """`at`, `type`, `wait_seconds`: the 95th percentiles, by step of an hour or more."""
    table, step = rollup.hourly(gold["latency"], gold.since, gold.until)
    groups = _grouped(table.to_pylist(), "at", "queue", "type")
    drawn = [
        {"at": at, "type": named[queue, kind], "wait_seconds": _told(wait_p95(group))}
        for (at, queue, kind), group in groups.items()
        if (queue, kind) in named
    ]
    order = list(named.values())
    drawn.sort(key=lambda row: (order.index(row["type"]), row["at"]))
    kinds = [("at", rollup.TIME), ("type", pa.string()), ("wait_seconds", pa.float64())]
    return pa.Table.from_pylist(drawn, pa.schema(kinds)), step


def _trends(data: pa.Table) -> list[Trend]:
    groups = _grouped(data.to_pylist(), "type")
    return [
        Trend(f"{named} wait p95", [row["wait_seconds"] for row in rows])
        for (named,), rows in list(groups.items())[:3]
    ]
