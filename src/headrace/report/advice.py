"""Advice, each with its evidence: what the figures speak for. It is shown and never applied by itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headrace.report import rollup, wording
from headrace.report.gold import Gold
from headrace.report.section import Advice
from headrace.report.sections import errors, objectives, paths, retries

JOBS_MIN = 10
"""Fewer jobs than this prove nothing."""
LOSSES_MIN = 3
HOPELESS = 0.2
"""Retrying helps so few that it is not worth its time."""
HOPEFUL = 0.8
"""Retrying helps so many that those given up were likely given up too soon."""
SHORT = 0.5
"""Of an hour's minutes: jobs found no worker for most of it."""
HEADROOM = 0.75
"""How busy workers should be, so that a burst finds room."""
LION_SHARE = 0.6
TAIL = 20.0
"""A run time this many times the median is a tail."""
_LEASE_EXPIRED = "lease_expired"


def on(gold: Gold) -> list[Advice]:
    """What the tables advise, the most pressing first; often nothing."""
    rules = (_capacity, _leases, _hopeless, _given_up, _tails, _share, _paths)
    return [found for rule in rules for found in rule(gold)]


def _capacity(gold: Gold) -> Iterator[Advice]:
    """Hours in most of which jobs were due and unclaimed, and types that started late."""
    hours = _hours(gold)
    short = {hour: one for hour, one in hours.items() if one.minutes_short >= SHORT * one.minutes}
    late = [
        row["type"]
        for row in objectives.by_type(gold)
        if row["worst_burn"] > 1 and row["worst_by"] == objectives.BURNS["start"]
    ]
    if not short or not late:
        return
    worst = max(short, key=lambda hour: short[hour].ready)
    wanted = math.ceil(_demand(gold, worst) / HEADROOM)
    if wanted <= short[worst].running:
        return
    yield Advice(
        f"Add capacity: room for about {wanted} jobs at once would have kept up in the worst hour; at most "
        f"{short[worst].running:,} ran in it.",
        f"In {wording.counted(len(short), 'hour')} jobs were due and unclaimed most of the time; from "
        f"{gold.when(worst)} on, up to {short[worst].ready:,} at once. "
        f"{wording.counted(len(late), 'type')} started late.",
    )


@dataclass
class _Hour:
    """One hour of all queues together, as the minutes tell in which something changed."""

    minutes: int = 0
    minutes_short: int = 0
    ready: int = 0
    running: int = 0


def _hours(gold: Gold) -> dict[datetime, _Hour]:
    now: dict[str, dict[str, Any]] = {}
    hours: dict[datetime, _Hour] = {}
    rows = gold["backlog"].sort_by("minute").to_pylist() if gold["backlog"].num_rows else []
    for minute, changes in itertools.groupby(rows, key=lambda row: row["minute"]):
        now.update({row["queue"]: row for row in changes})
        if not gold.since <= minute < gold.until:
            continue
        hour = hours.setdefault(minute.replace(minute=0), _Hour())
        ready = sum(one["ready"] for one in now.values())
        hour.minutes += 1
        hour.minutes_short += ready > 0
        hour.ready = max(hour.ready, ready)
        hour.running = max(hour.running, sum(one["running"] for one in now.values()))
    return hours


def _demand(gold: Gold, hour: datetime) -> float:
    """How many jobs at once the hour's work was: what ran in it, and what was left waiting at its end."""
    rows = [row for row in gold["latency"].to_pylist() if row["hour"] == hour]
    ran = sum(row["run_sum_seconds"] for row in rows)
    ended = sum(row["ended"] for row in rows)
    left = [row for row in gold["backlog"].to_pylist() if row["hour"] == hour]
    last = {row["queue"]: row["ready"] for row in sorted(left, key=lambda row: row["minute"])}
    waiting = sum(last.values()) * (ran / ended if ended else 0.0)
    return float(ran + waiting) / rollup.HOUR.total_seconds()


def _leases(gold: Gold) -> Iterator[Advice]:
    """Many losses on many workers speak for leases too short; on one worker, for that worker."""
    lost = [one for one in errors.groups(gold) if one["code"] == _LEASE_EXPIRED]
    total = sum(one["occurrences"] for one in lost)
    if total < LOSSES_MIN or not gold["workers"].num_rows:
        return
    rows = rollup.summed(gold["workers"], ["worker"], ["losses"]).to_pylist()
    losers = [row for row in rollup.longest(rows, "losses") if row["losses"]]
    types = wording.listed([f"{one['type']} ({one['occurrences']:,})" for one in lost[:3]])
    if len(losers) == 1:
        yield Advice(
            f"Look at {losers[0]['worker']}: it alone lost attempts. A longer lease would not help.",
            f"{wording.counted(total, 'attempt')} lost, all of them its own, of {types}.",
        )
    elif losers:
        yield Advice(
            "Consider a longer lease, or handlers that leave the worker room for its heartbeat: losses are "
            "not the fault of one worker.",
            f"{wording.counted(total, 'attempt')} lost on {len(losers)} workers, of {types}; the longest run "
            f"of these types took {wording.seconds(_longest_run(gold, {one['type'] for one in lost}))}.",
        )


def _longest_run(gold: Gold, types: set[str]) -> float:
    runs = [row["run_max_seconds"] for row in gold["latency"].to_pylist() if row["type"] in types]
    return max((run for run in runs if run is not None), default=0.0)


def _hopeless(gold: Gold) -> Iterator[Advice]:
    rows = [row for row in _retried(gold) if row["recovered"] <= HOPELESS]
    if rows:
        yield Advice(
            f"Fail {_types(rows)} for good instead of retrying: trying again rarely helps.",
            " ".join(
                f"{row['type']}: of {wording.counted(row['retried_jobs'], 'retried job')} "
                f"{row['recovered_jobs']:,} completed, and failed attempts ran for "
                f"{wording.seconds(row['wasted_seconds'])}{_blamed(gold, row, 'occurrences')}."
                for row in rows
            ),
        )


def _given_up(gold: Gold) -> Iterator[Advice]:
    rows = [
        row
        for row in _retried(gold)
        if row["recovered"] >= HOPEFUL and row["given_up_jobs"] >= LOSSES_MIN
    ]
    if rows:
        yield Advice(
            f"Give {_types(rows)} more attempts or a longer backoff: most of what is retried completes.",
            " ".join(
                f"{row['type']}: {wording.ratio(row['recovered'])} of "
                f"{wording.counted(row['retried_jobs'], 'retried job')} completed, yet "
                f"{row['given_up_jobs']:,} were given up{_blamed(gold, row, 'fatal')}."
                for row in rows
            ),
        )


def _retried(gold: Gold) -> list[dict[str, Any]]:
    """Types of which enough jobs were retried to tell what comes of it."""
    return [
        row | {"recovered": row["recovered_jobs"] / row["retried_jobs"]}
        for row in retries.by_type(gold)
        if row["retried_jobs"] >= JOBS_MIN
    ]


def _types(rows: list[dict[str, Any]]) -> str:
    return wording.listed([row["type"] for row in rows])


def _blamed(gold: Gold, row: dict[str, Any], by: str) -> str:
    """The error group that counts most for a type, in brackets."""
    found = [one for one in errors.groups(gold) if one["type"] == row["type"] and one[by]]
    if not found:
        return ""
    group = rollup.longest(found, by)[0]
    seen = f"{gold.when(group['first_seen'])} to {gold.when(group['last_seen'])}"
    return f" (most by “{errors.said(group)}”, {seen})"


def _tails(gold: Gold) -> Iterator[Advice]:
    rows = gold["latency"].to_pylist()
    types: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        types.setdefault(row["type"], []).append(row)
    for name, group in sorted(types.items()):
        buckets = rollup.added(row["run_buckets"] for row in group)
        top = max((row["run_max_seconds"] or 0.0 for row in group), default=0.0)
        middle = rollup.percentile(buckets, 0.5, top)
        tail = rollup.percentile(buckets, 0.99, top)
        if sum(buckets) < 10 * JOBS_MIN or not middle or tail is None or tail < TAIL * middle:
            continue
        yield Advice(
            f"Look at the slowest runs of {name}, and consider a timeout: a few take far longer than most.",
            f"Half of them ran for at most {wording.seconds(middle)}, 1 % for {wording.seconds(tail)} or "
            f"more, one for {wording.seconds(top)}.",
        )


def _share(gold: Gold) -> Iterator[Advice]:
    if not gold["tenants"].num_rows or not gold["backlog"].num_rows:
        return
    rows = rollup.summed(gold["tenants"], ["tenant"], ["run_seconds"]).to_pylist()
    whole = sum(row["run_seconds"] for row in rows)
    first = rollup.longest(rows, "run_seconds")[0]
    part = first["run_seconds"] / whole if whole else 0.0
    waited = max(row["ready"] for row in gold["backlog"].to_pylist())
    if len(rows) > 1 and part >= LION_SHARE and waited >= JOBS_MIN:
        yield Advice(
            f"Consider a limit for tenant {first['tenant']}: it takes the lion's share while jobs wait.",
            f"{wording.ratio(part)} of all run time went to it, of {len(rows)} tenants; up to {waited:,} "
            "jobs were due and unclaimed in one queue.",
        )


def _paths(gold: Gold) -> Iterator[Advice]:
    steps = paths.by_step(gold) if gold["paths"].num_rows else []
    whole = sum(one["run_seconds"] + one["wait_seconds"] for one in steps)
    if gold["paths"].num_rows < JOBS_MIN or not steps[1:] or not whole:
        return
    first = steps[0]
    part = (first["run_seconds"] + first["wait_seconds"]) / whole
    if part < LION_SHARE:
        return
    what = "runs" if first["run_seconds"] >= first["wait_seconds"] else "waits for a worker"
    yield Advice(
        f"To end chains sooner, begin with {first['type']}: it mostly {what} there.",
        f"{wording.ratio(part)} of the time on {wording.counted(gold['paths'].num_rows, 'critical path')} is "
        f"its own: {wording.seconds(first['run_seconds'])} running, "
        f"{wording.seconds(first['wait_seconds'])} waiting for a worker.",
    )
