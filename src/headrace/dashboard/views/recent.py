"""Recent history as charts: what came and ended, how long jobs waited and ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from headrace import duration
from headrace.clock import from_us, to_us
from headrace.dashboard import charts
from headrace.dashboard.asked import Asked
from headrace.histograms import BUCKET_SECONDS, Histogram
from headrace.manager import History
from headrace.rollups import Counts

RANGES = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
RANGE = "1h"
ENDS = (
    ("completed", "completed"),
    ("failed", "failed"),
    ("dead", "dead"),
    ("cancelled", "cancelled"),
)
_POINTS_MAX = 180
_QUANTILES = ((0.5, "median", "c1"), (0.95, "95 %", "c4"), (0.99, "99 %", "c3"))


@dataclass(frozen=True)
class Recent:
    """The charts of some time, and its sums."""

    history: History
    moments: Sequence[datetime]
    counts: Sequence[Counts]
    """One for each moment."""

    @property
    def totals(self) -> Counts:
        return self.history.totals()

    @property
    def is_empty(self) -> bool:
        return not self.history.buckets

    @property
    def step(self) -> str:
        """`minute`, `5m`: what one moment of the charts stands for."""
        return duration.exact(self._step_seconds)

    @property
    def _step_seconds(self) -> float:
        if len(self.moments) < 2:  # noqa: PLR2004 - a step lies between two
            return self.history.bucket_seconds
        return (self.moments[1] - self.moments[0]).total_seconds()

    def traffic(self) -> Markup:
        """What ended, by how, in stacked bars."""
        series = [
            charts.Series(told, [getattr(one, name) for one in self.counts], name)
            for name, told in ENDS
            if name == "completed" or any(getattr(one, name) for one in self.counts)
        ]
        return charts.stacked(self.moments, series, f"Jobs that ended, by {self.step}")

    def flow(self) -> Markup:
        """What came, and what ended."""
        came = [one.submitted for one in self.counts]
        ended = [sum(getattr(one, name) for name, _ in ENDS) for one in self.counts]
        return charts.lines(
            self.moments,
            [charts.Series("submitted", came, "c1"), charts.Series("ended", ended, "c2")],
            f"Jobs submitted and ended, by {self.step}",
        )

    def trouble(self) -> Markup:
        """Attempts that brought nothing."""
        series = [
            charts.Series("retried", [one.retried for one in self.counts], "c4"),
            charts.Series("lost", [one.lost for one in self.counts], "c5"),
        ]
        return charts.stacked(self.moments, series, f"Attempts retried and lost, by {self.step}")

    def waits(self) -> Markup:
        return self._quantiles(lambda one: one.wait, "How long jobs waited from ready to claimed")

    def runs(self) -> Markup:
        return self._quantiles(lambda one: one.run, "How long attempts ran")

    def wait_spread(self) -> Markup:
        return _spread(self.totals.wait, "How many attempts waited how long")

    def run_spread(self) -> Markup:
        return _spread(self.totals.run, "How many attempts ran how long")

    def _quantiles(self, of: Callable[[Counts], Histogram], label: str) -> Markup:
        series = [
            charts.Series(name, [of(one).quantile(part) for one in self.counts], colour)
            for part, name, colour in _QUANTILES
        ]
        return charts.lines(self.moments, series, label, "s")

    def by_queue(self) -> list[tuple[str, Counts]]:
        """The sums of each queue, the busiest first."""
        found: dict[str, Counts] = {}
        for one in self.history.buckets:
            counts = one.counts
            found.setdefault(counts.queue, Counts(counts.tenant, counts.queue)).merge(counts)
        return sorted(found.items(), key=lambda one: (-one[1].started, one[0]))


async def recent(
    asked: Asked, *, span: str | None = None, queues: Sequence[str] | None = None
) -> Recent:
    """Of `span` (see RANGES) up to now."""
    until = asked.now
    since = until - RANGES.get(span or RANGE, RANGES[RANGE])
    history = await asked.manager.history(since, until, queues=queues)
    step_us = history.bucket_seconds * 1_000_000
    first, last = to_us(since) // step_us, to_us(until) // step_us
    # Several buckets make one point where there would be more points than one can see.
    together = -(-(last - first + 1) // _POINTS_MAX)
    merged: dict[int, Counts] = defaultdict(lambda: Counts("*", "*"))
    for one in history.buckets:
        merged[(to_us(one.at) // step_us - first) // together].merge(one.counts)
    points = range(-(-(last - first + 1) // together))
    return Recent(
        history,
        [from_us((first + i * together) * step_us) for i in points],
        [merged[i] for i in points],
    )


def _spread(histogram: Histogram, label: str) -> Markup:
    """From the shortest to the longest that there were."""
    if not histogram.buckets:
        return Markup("")
    span = range(min(histogram.buckets), max(histogram.buckets) + 1)
    names = [
        f"≤ {duration.brief(BUCKET_SECONDS[i])}"
        if i < len(BUCKET_SECONDS)
        else f"> {duration.brief(BUCKET_SECONDS[-1])}"
        for i in span
    ]
    return charts.histogram(names, [histogram.buckets.get(i, 0) for i in span], label)
