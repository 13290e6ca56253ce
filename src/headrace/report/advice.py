"""Advice, each with its evidence: what the figures speak for. It is shown and never applied by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from headrace.report import capacity, rollup, wording
from headrace.report.gold import Gold
from headrace.report.percentiles import Spread
from headrace.report.section import Advice
from headrace.report.sections import errors, objectives, outcomes, paths, retries

JOBS_MIN = 10
"""Fewer jobs than this prove nothing."""
LOSSES_MIN = 3
HOPELESS = 0.2
"""Retrying helps so few that it is not worth its time."""
HOPEFUL = 0.8
"""Retrying helps so many that those given up were likely given up too soon."""
FAILING = 0.05
"""More jobs of a type than this part should not fail for good."""
TOLD_MAX = 3
"""Types that are named; the rest is counted."""
BURST = 10
"""Wanting so many times what there is speaks of the work, not of the workers."""
TOGETHER = 0.8
"""Of all losses: so many of them in a few moments have one cause."""
MOMENT = timedelta(minutes=2)
MOMENTS_MAX = 5
LION_SHARE = 0.6
TAIL = 20.0
"""A run time this many times the median is a tail."""
_LEASE_EXPIRED = "lease_expired"


def on(gold: Gold) -> list[Advice]:
    """What the tables advise, the most pressing first; often nothing."""
    rules = (_failing, _capacity, _leases, _hopeless, _given_up, _tails, _share, _paths)
    return [found for rule in rules for found in rule(gold)]


def _capacity(gold: Gold) -> Iterator[Advice]:
    """Types that started late: how many slots would have held their objective, or that slots were free."""
    late = objectives.late(gold)
    if not late:
        return
    hardest = min(late, key=lambda row: row["start_seconds"])
    seconds, ratio = hardest["start_seconds"], hardest["start_ratio"]
    need = capacity.need(gold, seconds, ratio)
    if need is None:
        return
    named = _named([row["name"] for row in late])
    waited = (
        f"{wording.ratio(ratio)} should start within {wording.seconds(seconds)}; {named} did not. Up to "
        f"{need.worst.ready:,} were due and unclaimed, at {gold.when(need.worst.at)}"
    )
    if need.is_idle:
        yield Advice(
            "Look at what keeps workers from jobs that are due: a paused queue, a limit, or queues that too "
            "few of them ask for. More of the same would not help.",
            f"{waited}, while most of the time less than half of the {need.had:,} jobs ran that ran at once "
            "at other times.",
        )
        return
    wanted = _rounded_up(need.slots)
    more = f"{wanted - need.had:,} more than the {need.had:,} that ran at once at most"
    burst = ""
    if wanted > BURST * need.had:
        burst = (
            " For a burst like this it may be cheaper to submit it more slowly, or to promise less."
        )
    yield Advice(
        f"Add capacity: about {wanted:,} slots, {more}, would have held what is promised of starts.{burst}",
        f"{waited}. A slot took {wording.rate(need.each)} jobs a minute; this supposes that the store and "
        "what the jobs call keep pace.",
    )


def _rounded_up(number: int) -> int:
    """To two digits: a model knows no more."""
    size: int = 10 ** max(len(str(number)) - 2, 0)
    return -(-number // size) * size


def _failing(gold: Gold) -> Iterator[Advice]:
    """Types of which more than a few jobs fail for good, whether or not they were retried."""
    rows = sorted(
        (
            row
            for row in outcomes.by_type(gold)
            if row["judged"] >= JOBS_MIN and row["failing"] > FAILING
        ),
        key=lambda row: row["bad"],
        reverse=True,
    )
    if not rows:
        return
    shown = rows[:TOLD_MAX]
    mend = " The commands below Errors run them again once it is mended."
    yield Advice(
        f"Look into why {_named([row['type'] for row in rows])} "
        f"{'fails' if len(rows) == 1 else 'fail'} for good: more than {wording.ratio(FAILING)} of the jobs "
        "do.",
        " ".join(
            f"{row['type']}: {wording.ratio(row['failing'])}, {row['bad']:,} of "
            f"{wording.counted(row['judged'], 'job')}{_blamed(gold, row, 'fatal')}."
            for row in shown
        )
        + (mend if any(one["fatal"] for one in errors.groups(gold)) else ""),
    )


def _leases(gold: Gold) -> Iterator[Advice]:
    """Many losses on many workers speak for leases too short; on one worker, for that worker."""
    lost = [one for one in errors.groups(gold) if one["code"] == _LEASE_EXPIRED]
    total = sum(one["occurrences"] for one in lost)
    if total < LOSSES_MIN or not gold["workers"].num_rows:
        return
    rows = rollup.summed(gold["workers"], ["worker"], ["losses"]).to_pylist()
    losers = [row for row in rollup.longest(rows, "losses") if row["losses"]]
    types = wording.listed([f"{one['type']} ({one['occurrences']:,})" for one in lost[:3]])
    moments = _moments(gold)
    if len(losers) == 1:
        yield Advice(
            f"Look at {losers[0]['worker']}: it alone lost attempts. A longer lease would not help.",
            f"{wording.counted(total, 'attempt')} lost, all of them its own, of {types}.",
        )
    elif losers and moments:
        at = wording.listed([gold.when(one) for one in moments])
        yield Advice(
            f"Look at what all workers share: the store, the network or the host stood still before {at}. A "
            "longer lease is no remedy, unless it outlasts such an outage.",
            f"{wording.counted(total, 'attempt')} lost on {len(losers)} workers, of {types}: nearly all "
            f"{'at once' if len(moments) == 1 else f'in {len(moments)} moments'}{_within(gold, moments)}.",
        )
    elif losers:
        yield Advice(
            "Consider a longer lease, or handlers that leave the worker room for its heartbeat: losses are "
            "not the fault of one worker.",
            f"{wording.counted(total, 'attempt')} lost on {len(losers)} workers, of {types}; the longest run "
            f"of these types took {wording.seconds(_longest_run(gold, {one['type'] for one in lost}))}.",
        )


def _moments(gold: Gold) -> list[datetime]:
    """When losses fell together: a few short times that hold nearly all. None if they were spread."""
    lost = rollup.summed(gold["throughput"], ["minute"], ["lost"]).to_pylist()
    lost = [row for row in lost if row["lost"]]
    moments: list[dict[str, Any]] = []
    for row in lost:
        if moments and row["minute"] - moments[-1]["last"] < MOMENT:
            moments[-1]["last"] = row["minute"]
            moments[-1]["lost"] += row["lost"]
        else:
            moments.append({"first": row["minute"], "last": row["minute"], "lost": row["lost"]})
    held = [
        one for one in moments if one["lost"] >= LOSSES_MIN and one["last"] - one["first"] < MOMENT
    ]
    part = sum(one["lost"] for one in held) / (sum(row["lost"] for row in lost) or 1)
    if part < TOGETHER or len(held) > MOMENTS_MAX:
        return []
    return [one["first"] for one in held]


def _within(gold: Gold, moments: list[datetime]) -> str:
    """How close together, where the lake tells: of one moment alone."""
    rows = [row for row in gold["errors"].to_pylist() if row["code"] == _LEASE_EXPIRED]
    if len(moments) > 1 or not rows:
        return ""
    spread = max(row["last_seen"] for row in rows) - min(row["first_seen"] for row in rows)
    return f", within {wording.seconds(spread.total_seconds())}" if spread < MOMENT else ""


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
                f"{row['recovered_jobs']:,} completed, and what was tried again had run for "
                f"{wording.seconds(row['retried_seconds'])}{_blamed(gold, row, 'occurrences')}."
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


def _named(types: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = types[TOLD_MAX:]
    return wording.listed(types[:TOLD_MAX] + [wording.counted(len(more), "more type")] * bool(more))


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
        runs = Spread(group, "run")
        middle, tail = runs.percentile("p50"), runs.percentile("p99")
        if runs.count < 10 * JOBS_MIN or middle is None or tail is None or runs.longest is None:
            continue
        # Surely: an estimate may lie in the same bucket as what it is compared with.
        if not middle.most or tail.least < TAIL * middle.most:
            continue
        yield Advice(
            f"Look at the slowest runs of {name}, and consider a timeout: a few take far longer than most.",
            f"Half of them ran for at most {wording.seconds(middle.most)}, 1 % for "
            f"{wording.seconds(tail.least)} or more, one for {wording.seconds(runs.longest)}.",
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
