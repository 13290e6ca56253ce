"""A report: its head, its sections and its advice, from the gold tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

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
    """Those that there is anything to say of."""
    advice: Sequence[Advice]
    note: str = ""
    """Why it does not begin when it was asked to."""

    @property
    def verdict(self) -> str:
        """What to say where there is no advice."""
        bad = [f"{one.name} ({one.value})" for one in self.figures if one.is_bad]
        if not bad:
            return "Nothing in these figures asks for a change."
        return (
            f"No rule knows a remedy, yet {wording.listed(bad)} {'is' if len(bad) == 1 else 'are'} not as "
            "promised: see Objectives and Errors."
        )


def build(gold: Gold) -> Report:
    """The report on what these tables hold."""
    made = [section(gold) for section in _SECTIONS]
    return Report(
        since=gold.since,
        until=gold.until,
        queues=gold.queues,
        figures=_figures(gold),
        sections=[one for one in made if one is not None],
        advice=advice.on(gold),
        note=_note(gold),
    )


def _note(gold: Gold) -> str:
    if gold.asked is None:
        return ""
    return (
        f"Asked for from {gold.when(gold.asked)} on; most of the lake's tables are by the hour, so it begins "
        f"at {gold.when(gold.since)}."
    )


def _figures(gold: Gold) -> list[Figure]:
    figures = [one(gold) for one in _HEAD]
    if gold.before is None:
        return figures
    before = [one(gold.before).value for one in _HEAD[:-1]]
    before.append(_error_before(gold, gold.before))
    span = "day" if gold.span == timedelta(days=1) else wording.seconds(gold.span.total_seconds())
    return [
        one._replace(before=f"the {span} before: {value}")
        for one, value in zip(figures, before, strict=True)
    ]


def _jobs(gold: Gold) -> Figure:
    total = rollup.totals(gold["throughput"], ["submitted", *traffic.ENDS])
    ended = sum(total[way] for way in traffic.ENDS)
    return Figure("jobs ended", f"{ended:,}", f"{total['submitted']:,} submitted")


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
    told = wording.seconds(wait.seconds)
    detail = f"longest {wording.seconds(longest)}"
    if not wait.is_close and wording.seconds(wait.most) != told:
        detail = f"at most {wording.seconds(wait.most)}, {detail}"
    late = objectives.late(gold)
    if late:
        others = f" and {wording.counted(len(late) - 1, 'more type')}" if late[1:] else ""
        detail += (
            f"; {late[0]['name']}{others} promised {wording.seconds(late[0]['start_seconds'])}"
        )
    return Figure("p95 wait", told, detail, is_bad=bool(late))


def _retries(gold: Gold) -> Figure:
    cost = retries.cost(gold)
    part = retries.share(cost, rollup.totals(gold["retries"], ["run_seconds"])["run_seconds"])
    detail = "no run time" if part is None else f"{wording.ratio(part)} of run time"
    return Figure("retries' cost", wording.seconds(cost), detail)


def _error(gold: Gold) -> Figure:
    found = errors.groups(gold)
    if not found:
        return Figure("worst error", "none", "nothing failed")
    worst = found[0]
    detail = f"{worst['type']}: {errors.said(worst)}"
    return Figure("worst error", f"{worst['occurrences']:,}×", detail, is_bad=worst["fatal"] > 0)


def _error_before(gold: Gold, before: Gold) -> str:
    """How often the worst error occurred then."""
    found = errors.groups(gold)
    if not found:
        return _error(before).value
    key = errors.key(found[0])
    count = sum(one["occurrences"] for one in errors.groups(before) if errors.key(one) == key)
    return f"{count:,}×" if count else "not seen"


_HEAD = (_jobs, _success, _wait, _retries, _error)
