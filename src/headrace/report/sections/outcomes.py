"""How jobs ended."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Column, Section
from headrace.report.wording import Unit

ROWS_MAX = 12
BAD = ("failed", "dead")
STATES = ("completed", "failed", "dead", "cancelled", "abandoned")


def section(gold: Gold) -> Section:
    title = "Outcomes"
    counts = _counted(gold)
    if not counts:
        return Section("outcomes", title, "No job came to an end in this time.")
    told = sorted(
        counts.items(), key=lambda one: (_bad(one[1]), sum(one[1].values())), reverse=True
    )
    names = rollup.labels(counts)
    return Section(
        "outcomes",
        title,
        _says(gold, told),
        columns=(
            Column("type", Unit.TEXT),
            Column("ended"),
            Column("success", Unit.RATIO),
            Column("failed"),
            Column("dead"),
            Column("cancelled", rank=2),
        ),
        rows=[
            (
                names[key],
                sum(one.values()),
                success(one),
                one["failed"],
                one["dead"],
                one["cancelled"] + one["abandoned"],
            )
            for key, one in told[:ROWS_MAX]
        ],
        data=_data([(names[key], one) for key, one in told]),
        drawn="Jobs that ended otherwise than completed, by type and state.",
    )


def by_type(gold: Gold) -> list[dict[str, Any]]:
    """Of each queue and type: `judged` that nobody cancelled, `bad` of them, and what part those are."""
    return [
        {
            "queue": queue,
            "type": kind,
            "judged": judged,
            "bad": _bad(ended),
            "failing": _bad(ended) / judged,
        }
        for (queue, kind), ended in _counted(gold).items()
        if (judged := ended["completed"] + _bad(ended))
    ]


def _counted(gold: Gold) -> dict[tuple[str, str], Counter[str]]:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in _jobs_by(gold, "queue", "type", "outcome"):
        counts.setdefault((row["queue"], row["type"]), Counter())[row["outcome"]] += row["jobs"]
    return counts


def success(ended: Counter[str]) -> float | None:
    """Completed jobs among those that completed, failed or died; None of none."""
    judged = ended["completed"] + _bad(ended)
    return ended["completed"] / judged if judged else None


def _bad(ended: Counter[str]) -> int:
    return sum(ended[state] for state in BAD)


def _says(gold: Gold, told: list[tuple[tuple[str, str], Counter[str]]]) -> str:
    everything: Counter[str] = Counter()
    for _, one in told:
        everything.update(one)
    ended = sum(everything.values())
    rate = success(everything)
    says = f"Of {wording.counted(ended, 'ended job')}, {everything['completed']:,} completed"
    says += "." if rate is None else f": {wording.ratio(rate)} of those that nobody cancelled."
    bad = _bad(everything)
    if not bad:
        return says + " None failed."
    (_, named), worst = told[0]
    says += f" {named} failed most often: {_bad(worst):,} of {sum(worst.values()):,}"
    reasons = [row for row in _jobs_by(gold, "outcome", "category") if row["outcome"] in BAD]
    reason = rollup.longest(reasons, "jobs")[0]
    why = f"{reason['category']} ({wording.counted(reason['jobs'], 'job')})"
    return f"{says}; the most frequent reason overall is {why}."


def _jobs_by(gold: Gold, *by: str) -> list[dict[str, Any]]:
    """Jobs that ended, by those columns; what only attempts ended as is left out."""
    if not gold["outcomes"].num_rows:
        return []
    rows: list[dict[str, Any]] = rollup.summed(gold["outcomes"], by, ["jobs"]).to_pylist()
    return [row for row in rows if row["jobs"]]


def _data(told: list[tuple[str, Counter[str]]]) -> pa.Table | None:
    """`type`, `state`, `jobs` of what did not complete; None if everything did."""
    rows = [
        {"type": named, "state": state, "jobs": one[state]}
        for named, one in told[:ROWS_MAX]
        for state in STATES[1:]
        if one[state]
    ]
    kinds = [("type", pa.string()), ("state", pa.string()), ("jobs", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds)) if rows else None
