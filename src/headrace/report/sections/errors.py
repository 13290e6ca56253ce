"""What went wrong, in groups, and how to run again what it ended."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace.error_groups import VARIABLE_PARTS
from headrace.model import failure_told
from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Command, Section, Trend
from headrace.report.wording import Unit

ROWS_MAX = 10
DRAWN_MAX = 4
"""Groups with a colour of their own."""
_LITERAL_MIN = 4
"""Fewer characters of a message find too much."""
_STAND_IN = re.compile("|".join(sorted({one for _, one in VARIABLE_PARTS if one.strip()})))
_FAILURES = ("retried", "lost", "failed", "dead")
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
        f"the largest makes up {wording.ratio(worst['occurrences'] / total)}: “{said(worst)}” in "
        f"{worst['type']}, last seen at {gold.when(worst['last_seen'])}, {_fatal(worst)}."
    )
    is_short = gold.span < rollup.SHORT
    step = rollup.step_for(gold.span, least=rollup.STEPS[0] if is_short else rollup.HOUR)
    data = _of_types(gold, step) if is_short else _data(gold, found, step)
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
        data=data if data.num_rows else None,
        drawn=f"Attempts that failed or were lost, per {rollup.per(step)}, by type: the lake has groups of "
        "errors by the hour only."
        if is_short
        else f"Errors per {rollup.per(step)}, of the largest groups and of all others together.",
        is_wide=True,
        trends=[Trend(f"all, per {rollup.per(step)}", _all(data, gold, step))],
        commands=[
            Command(
                f"{one['type']}: {said(one)} ({wording.counted(one['fatal'], 'job')})", redrive(one)
            )
            for one in found[:ROWS_MAX]
            if one["fatal"]
        ],
    )


def groups(gold: Gold) -> list[dict[str, Any]]:
    """The error groups over all hours, the most frequent first."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in gold["errors"].to_pylist():
        one = merged.setdefault(key(row), row | {"occurrences": 0, "fatal": 0, "run_seconds": 0.0})
        for name in ("occurrences", "fatal", "run_seconds"):
            one[name] += row[name]
        one["first_seen"] = min(one["first_seen"], row["first_seen"])
        if row["last_seen"] >= one["last_seen"]:
            one |= {"last_seen": row["last_seen"], "example_job_id": row["example_job_id"]}
    return rollup.longest(merged.values(), "occurrences", "fatal", "last_seen")


def key(group: dict[str, Any]) -> tuple[str, ...]:
    """What makes two rows the same group."""
    return tuple(group[name] for name in _GROUP)


def said(group: dict[str, Any]) -> str:
    """What the errors of a group say: the class, or code, and the message."""
    return failure_told(group["code"], group["message"])


def redrive(group: dict[str, Any]) -> str:
    """What runs the jobs again that the errors of a group ended; as it stands, it only says which.

    A group has many messages: the longest part that all of them have is looked for.
    """
    wanted = {"queue": group["queue"], "type": group["type"], "code": group["code"]}
    literal = max((part.strip() for part in _STAND_IN.split(group["message"])), key=len)
    if len(literal) >= _LITERAL_MIN:
        wanted["error"] = literal
    wanted["since"] = f"{group['first_seen'].astimezone(UTC):%Y-%m-%dT%H:%M:00Z}"
    filters = [word for name, value in wanted.items() if value for word in (f"--{name}", value)]
    return shlex.join(
        ["headrace", "redrive", "--state", "failed", "--state", "dead", *filters, "--dry-run"]
    )


def _fatal(group: dict[str, Any]) -> str:
    if not group["fatal"]:
        return "no job ended by it"
    return f"and {wording.counted(group['fatal'], 'job')} ended by it"


def _name(group: dict[str, Any]) -> str:
    return f"{group['type']}: {said(group)}"


def _data(gold: Gold, found: list[dict[str, Any]], step: timedelta) -> pa.Table:
    """`at`, `group`, `errors`: the largest groups by name, the rest as one."""
    named = {key(one): _name(one) for one in found[:DRAWN_MAX]}
    counts: dict[tuple[datetime, str], int] = {}
    for row in rollup.stepped(gold["errors"], "hour", step).to_pylist():
        where = (row["at"], named.get(key(row), "all others"))
        counts[where] = counts.get(where, 0) + row["occurrences"]
    return _drawn(counts, gold, step)


def _of_types(gold: Gold, step: timedelta) -> pa.Table:
    """`at`, `group`, `errors` by the minute: of a group there is its type; the most frequent by name."""
    table = rollup.summed(
        rollup.stepped(gold["throughput"], "minute", step), ["at", "queue", "type"], _FAILURES
    )
    failed = [
        (row["at"], (row["queue"], row["type"]), sum(row[name] for name in _FAILURES))
        for row in table.to_pylist()
    ]
    totals: Counter[tuple[str, str]] = Counter()
    for _, key, count in failed:
        totals[key] += count
    names = rollup.labels(totals)
    named = {key: names[key] for key, _ in totals.most_common(DRAWN_MAX)}
    counts: Counter[tuple[datetime, str]] = Counter()
    for at, key, count in failed:
        counts[at, named.get(key, "all others")] += count
    return _drawn(counts, gold, step)


def _drawn(counts: Mapping[tuple[datetime, str], int], gold: Gold, step: timedelta) -> pa.Table:
    """`at`, `group`, `errors`: of every step, also where nothing failed."""
    found = {where: count for where, count in counts.items() if count}
    if found:
        steps = rollup.steps_of(gold.since, gold.until, step)
        _, some = max(found, key=lambda where: found[where])
        found = {(at, some): 0 for at in steps} | found
    rows = [
        {"at": at, "group": group, "errors": count} for (at, group), count in sorted(found.items())
    ]
    kinds = [("at", rollup.TIME), ("group", pa.string()), ("errors", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def _all(data: pa.Table, gold: Gold, step: timedelta) -> list[float]:
    counts = {
        row["at"]: row["errors"] for row in rollup.summed(data, ["at"], ["errors"]).to_pylist()
    }
    return [counts.get(at, 0) for at in rollup.steps_of(gold.since, gold.until, step)]
