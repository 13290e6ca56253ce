"""What went wrong, in groups."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace.model import failure_told
from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section, Trend
from headrace.report.wording import Unit

ROWS_MAX = 10
DRAWN_MAX = 4
"""Groups with a colour of their own."""
_GROUP = ("queue", "type", "category", "code", "message")


def section(gold: Gold) -> Section:
    title = "Errors"
    found = groups(gold)
    if not found:
        return Section("errors", title, "No attempt failed and none was lost in this time.")
    total = sum(one["occurrences"] for one in found)
    worst = found[0]
    says = (
        f"{wording.counted(total, 'error')} in {wording.counted(len(found), 'group')}; "
        f"the largest makes up {wording.ratio(worst['occurrences'] / total)}: “{worst['message']}” in "
        f"{worst['type']}, last seen at {gold.when(worst['last_seen'])}, {_fatal(worst)}."
    )
    step = rollup.step_for(gold.span, least=rollup.HOUR)
    data = _data(gold, found, step)
    return Section(
        "errors",
        title,
        says,
        columns=(
            Column("count"),
            Column("fatal", rank=1),
            Column("type", Unit.TEXT),
            Column("category", Unit.TEXT, rank=3),
            Column("message", Unit.TEXT),
            Column("last seen", Unit.TIME, rank=2),
            Column("for example", Unit.TEXT, rank=4),
        ),
        rows=[
            (
                one["occurrences"],
                one["fatal"],
                one["type"],
                one["category"],
                said(one),
                one["last_seen"],
                one["example_job_id"],
            )
            for one in found[:ROWS_MAX]
        ],
        data=data,
        drawn=f"Errors per {rollup.per(step)}, of the largest groups and of all others together.",
        is_wide=True,
        trends=[Trend(f"all, per {rollup.per(step)}", _all(data, gold, step))],
    )


def groups(gold: Gold) -> list[dict[str, Any]]:
    """The error groups over all hours, the most frequent first."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in gold["errors"].to_pylist():
        key = tuple(row[name] for name in _GROUP)
        one = merged.setdefault(key, row | {"occurrences": 0, "fatal": 0, "run_seconds": 0.0})
        for name in ("occurrences", "fatal", "run_seconds"):
            one[name] += row[name]
        one["first_seen"] = min(one["first_seen"], row["first_seen"])
        if row["last_seen"] >= one["last_seen"]:
            one |= {"last_seen": row["last_seen"], "example_job_id": row["example_job_id"]}
    return rollup.longest(merged.values(), "occurrences", "fatal", "last_seen")


def said(group: dict[str, Any]) -> str:
    """What the errors of a group say: the class, or code, and the message."""
    return failure_told(group["code"], group["message"])


def _fatal(group: dict[str, Any]) -> str:
    if not group["fatal"]:
        return "no job ended by it"
    return f"and {wording.counted(group['fatal'], 'job')} ended by it"


def _name(group: dict[str, Any]) -> str:
    return f"{group['type']}: {said(group)}"


def _data(gold: Gold, found: list[dict[str, Any]], step: timedelta) -> pa.Table:
    """`at`, `group`, `errors`: the largest groups by name, the rest as one."""
    named = {tuple(one[name] for name in _GROUP): _name(one) for one in found[:DRAWN_MAX]}
    counts: dict[tuple[datetime, str], int] = {}
    for row in rollup.stepped(gold["errors"], "hour", step).to_pylist():
        key = tuple(row[name] for name in _GROUP)
        where = (row["at"], named.get(key, "all others"))
        counts[where] = counts.get(where, 0) + row["occurrences"]
    rows = [{"at": at, "group": group, "errors": count} for (at, group), count in counts.items()]
    kinds = [("at", rollup.TIME), ("group", pa.string()), ("errors", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def _all(data: pa.Table, gold: Gold, step: timedelta) -> list[float]:
    counts = {
        row["at"]: row["errors"] for row in rollup.summed(data, ["at"], ["errors"]).to_pylist()
    }
    return [counts.get(at, 0) for at in rollup.steps_of(gold.since, gold.until, step)]
