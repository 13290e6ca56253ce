"""A report: its head, its sections and its advice, from the gold tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace.report import advice, rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Advice, Figure, Section
from headrace.report.sections import (
    backlog,
    errors,
    latency,
    objectives,
    outcomes,
    paths,
    retries,
    tenants,
    traffic,
    workers,
)

GOOD_SUCCESS = 0.99
"""At the head, a success ratio below this is marked."""
_SECTIONS = (
    traffic.section,
    backlog.section,
    latency.section,
    objectives.section,
    outcomes.section,
    errors.section,
    retries.section,
    workers.section,
    tenants.section,
    paths.section,
)


@dataclass(frozen=True)
class Report:
    """Everything a report says, for a page, a terminal or a program to show."""

    since: datetime
    until: datetime
    queues: Sequence[str]
    figures: Sequence[Figure]
    sections: Sequence[Section]
    advice: Sequence[Advice]


def build(gold: Gold) -> Report:
    """The report on what these tables hold."""
    return Report(
        since=gold.since,
        until=gold.until,
        queues=gold.queues,
        figures=_figures(gold),
        sections=[section(gold) for section in _SECTIONS],
        advice=advice.on(gold),
    )


def _figures(gold: Gold) -> list[Figure]:
    return [_jobs(gold), _success(gold), _wait(gold), _retries(gold), _error(gold)]


def _jobs(gold: Gold) -> Figure:
    total = rollup.totals(gold["throughput"], ["submitted"])
    ended = rollup.totals(gold["outcomes"], ["jobs"])
    return Figure("jobs ended", f"{ended['jobs']:,}", f"{total['submitted']:,} submitted")


def _success(gold: Gold) -> Figure:
    ended: Counter[str] = Counter()
    for row in gold["outcomes"].to_pylist():
        ended[row["outcome"]] += row["jobs"]
    rate = outcomes.success(ended)
    if rate is None:
        return Figure("success", "–", "no job ended")
    bad = sum(ended[state] for state in outcomes.BAD)
    return Figure(
        "success", wording.ratio(rate), f"{bad:,} failed or dead", is_bad=rate < GOOD_SUCCESS
    )


def _wait(gold: Gold) -> Figure:
    rows = gold["latency"].to_pylist()
    wait = latency.wait_p95(rows) if rows else None
    if wait is None:
        return Figure("p95 wait", "–", "no attempt started")
    longest = max(row["wait_max_seconds"] or 0.0 for row in rows)
    return Figure("p95 wait", wording.seconds(wait), f"longest {wording.seconds(longest)}")


def _retries(gold: Gold) -> Figure:
    total = rollup.totals(gold["retries"], ["wasted_seconds", "run_seconds"])
    part = retries.share(total["wasted_seconds"], total["run_seconds"])
    detail = "no run time" if part is None else f"{wording.ratio(part)} of run time"
    return Figure("retries' cost", wording.seconds(total["wasted_seconds"]), detail)


def _error(gold: Gold) -> Figure:
    found = errors.groups(gold)
    if not found:
        return Figure("worst error", "none", "nothing failed")
    worst = found[0]
    detail = f"{worst['type']}: {errors.said(worst)}"
    return Figure("worst error", f"{worst['occurrences']:,}×", detail, is_bad=worst["fatal"] > 0)
